package feed

import (
	"sync"

	"blockdesk/market"
)

// deskHead is an upper bound of the size of a message of the desk's channels without its
// records, in bytes.
const deskHead = headRoom + 256

// deskRecord is a ticket, or a sale, with its JSON record.
type deskRecord struct {
	id   uint64 // the TicketID, or the number of the sale
	text []byte
}

// deskList is the immutable list of an instrument's tickets, by id, or of its newest sales,
// oldest first. The engineSeq of tickets is the Seq of the desk's last change of any pair
// when the list was made; that of sales, of the newest one.
type deskList struct {
	position
	instrument market.InstrumentID
	kind       kind
	records    []deskRecord

	once  sync.Once
	frame []byte // of the snapshot, once it was requested
}

// snapshot returns the frame of the whole list. The first call encodes it for all shards,
// because with the most tickets that a desk can have it is large (see doc.go).
func (b *deskList) snapshot(in *market.Instrument) []byte {
	b.once.Do(func() { b.frame = deskSnapshot(in, b) })
	return b.frame
}

// otherChannels are the channels that exist beside l2, trades and ticker, by kind.
type otherChannels [numKinds]bool

func (c *otherChannels) has(k kind) bool { return k < l3 || c[k] }

// deskSnapshot returns a newly allocated frame with all records of a list.
func deskSnapshot(in *market.Instrument, b *deskList) []byte {
	size := deskHead
	for i := range b.records {
		size += len(b.records[i].text) + 1
	}
	e := encoder{buf: make([]byte, 0, size)}
	e.open(in, b.kind, "snapshot", b.position, 0)
	e.records(b.kind, b.records)
	e.text(`}`)
	return e.end(finText)
}
