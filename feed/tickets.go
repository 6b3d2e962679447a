package feed

import (
	"bytes"
	"slices"
	"time"

	"blockdesk/market"
)

const (
	// ticketsInterval is the shortest time between two readings of the desk's tickets,
	// because a reading visits all tickets.
	ticketsInterval = 10 * time.Millisecond
	// maxTicketsUpdate bounds an update of tickets in bytes. After a larger change, such
	// as a new reference price, subscribers get a snapshot.
	maxTicketsUpdate = 64 << 10
)

// Tickets calls each for every ticket of market-tickets, in the order of their ids, with
// its record, a JSON object whose bytes never change. It returns the Seq of the last
// command that changed the desk, up to which the records are current, and that command's
// time in Unix nanoseconds. A later call never returns an older state. The feed calls it
// from one goroutine at a time, within Run.
type Tickets func(each func(in market.InstrumentID, id market.TicketID, record []byte)) (seq uint64, at int64)

// refreshTickets reads all tickets and collects the lists that have changed.
func (d *deskPublisher) refreshTickets() {
	f := d.feed
	for i := range d.found {
		d.found[i] = d.found[i][:0]
	}
	seq, at := d.tickets(func(in market.InstrumentID, id market.TicketID, record []byte) {
		if int(in) < len(d.found) {
			d.found[in] = append(d.found[in], deskRecord{uint64(id), record})
		}
	})
	now := position{epoch: f.epoch.Load(), engineSeq: seq, at: at}
	for i := range d.found {
		d.publishChanges(market.InstrumentID(i), now)
		clear(d.found[i])
	}
	f.stats.deskSeq.Store(seq)
}

// publishChanges compares an instrument's tickets with its list and makes the next list
// if they differ.
func (d *deskPublisher) publishChanges(in market.InstrumentID, now position) {
	f := d.feed
	current, found := f.deskList(in, tickets), d.found[in]
	cur := current.Load()
	d.diff(cur.records, found)
	follows := now.epoch == cur.epoch
	if follows && len(d.changed) == 0 && len(d.removed) == 0 {
		return
	}
	now.seq = 1
	if follows {
		now.seq = cur.seq + 1
	}
	next := &deskList{position: now, instrument: in, kind: tickets, records: slices.Clone(found)}
	current.Store(next)
	pub := publication{list: next}
	ref := topicRef{in: f.set.Get(in), kind: tickets}
	if t := f.topic(ref); follows && t.needed() {
		if frame := d.update(ref.in, now); frame != nil {
			pub.frames[tickets] = frame
			f.stats.encoded.Add(1)
		}
	}
	d.pubs = append(d.pubs, pub)
}

// update returns the update to p, or nil if it would be larger than maxTicketsUpdate. A
// much larger one is not encoded at all, because the encoder would keep its memory.
func (d *deskPublisher) update(in *market.Instrument, p position) []byte {
	size := 0
	for i := range d.changed {
		size += len(d.changed[i].text)
	}
	if size > maxTicketsUpdate {
		return nil
	}
	frame := d.enc.ticketsUpdate(in, p, d.changed, d.removed)
	if len(frame) > maxTicketsUpdate {
		return nil
	}
	return bytes.Clone(frame)
}

// diff sets changed to the records of next that are not in prev, and removed to the
// tickets of prev that are not in next. Both lists are sorted by id.
func (d *deskPublisher) diff(prev, next []deskRecord) {
	d.changed, d.removed = d.changed[:0], d.removed[:0]
	for _, r := range next {
		for len(prev) > 0 && prev[0].id < r.id {
			d.removed = append(d.removed, market.TicketID(prev[0].id))
			prev = prev[1:]
		}
		if len(prev) > 0 && prev[0].id == r.id {
			old := prev[0].text
			prev = prev[1:]
			if bytes.Equal(old, r.text) {
				continue
			}
		}
		d.changed = append(d.changed, r)
	}
	for _, r := range prev {
		d.removed = append(d.removed, market.TicketID(r.id))
	}
}
