package event

import "unsafe"

// MaxDeskChunk is the most bytes of a record that one Desk event carries.
const MaxDeskChunk = 48

// deskRecord is the shape of a Desk event. Kind lies where Event has it.
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

// DeskChunk is one piece of a record of the RFQ desk. All pieces of a record
// follow one another, Index 0 to Count-1, with one Seq and one Tag.
type DeskChunk struct {
	Tag   uint16 // of the record: see package rfq
	Index uint16
	Count uint16
	Data  []byte // 1..MaxDeskChunk bytes; aliases the event
}

// SetDesk makes e a Desk event of the command seq. Data past MaxDeskChunk bytes
// is cut.
func (e *Event) SetDesk(seq uint64, c DeskChunk) {
	r := (*deskRecord)(unsafe.Pointer(e))
	*r = deskRecord{Seq: seq, Kind: Desk, Index: c.Index, Count: c.Count, Tag: c.Tag}
	r.Len = uint8(copy(r.Data[:], c.Data))
}

// Desk returns what a Desk event carries; ok is false for every other kind.
func (e *Event) Desk() (c DeskChunk, ok bool) {
	if e.Kind != Desk {
		return DeskChunk{}, false
	}
	r := (*deskRecord)(unsafe.Pointer(e))
	return DeskChunk{Tag: r.Tag, Index: r.Index, Count: r.Count, Data: r.Data[:min(int(r.Len), MaxDeskChunk)]}, true
}
