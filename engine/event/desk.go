package event

import "unsafe"

// MaxDeskChunk is the most bytes of a record in one Desk event.
const MaxDeskChunk = 48

// deskRecord is the layout of a Desk event. Kind is where Event has it.
type deskRecord struct {
	Seq   uint64
	Data  [MaxDeskChunk]byte
	Kind  Kind
	Len   uint8
	Index uint16
	Count uint16
	Tag   uint16
}

var (
	_ [Size]byte                          = [unsafe.Sizeof(deskRecord{})]byte{}
	_ [unsafe.Offsetof(Event{}.Kind)]byte = [unsafe.Offsetof(deskRecord{}.Kind)]byte{}
)

// DeskChunk is a piece of a record of the RFQ desk. The pieces of a record, Index 0 to
// Count-1, are consecutive and have the same Seq and Tag.
type DeskChunk struct {
	Tag   uint16 // of the record: see package rfq
	Index uint16
	Count uint16
	Data  []byte // 1..MaxDeskChunk bytes; aliases the event
}

// SetDesk makes e a Desk event of the command seq. It truncates Data to MaxDeskChunk bytes.
func (e *Event) SetDesk(seq uint64, c DeskChunk) {
	r := (*deskRecord)(unsafe.Pointer(e))
	*r = deskRecord{Seq: seq, Kind: Desk, Index: c.Index, Count: c.Count, Tag: c.Tag}
	r.Len = uint8(copy(r.Data[:], c.Data))
}

// Desk returns the content of a Desk event; ok is false for other kinds.
func (e *Event) Desk() (c DeskChunk, ok bool) {
	if e.Kind != Desk {
		return DeskChunk{}, false
	}
	r := (*deskRecord)(unsafe.Pointer(e))
	return DeskChunk{Tag: r.Tag, Index: r.Index, Count: r.Count, Data: r.Data[:min(int(r.Len), MaxDeskChunk)]}, true
}
