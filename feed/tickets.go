package feed

import (
	"bytes"
	"slices"
	"sync"
	"time"

	"blockdesk/market"
)

const (
	// ticketsInterval is the shortest time between two looks at the desk's tickets:
	// what changes in between is one update. A look costs as much as the desk has
	// tickets.
	ticketsInterval = 10 * time.Millisecond
	// maxTicketsUpdate bounds an update of tickets in bytes: where more has
	// changed, as when a price of many tickets has, subscribers get a snapshot.
	maxTicketsUpdate = 64 << 10
)

// Tickets tells the desk's tickets as they are now: it calls each for every one
// that market-tickets shows, by ID, with its record, a JSON object whose bytes
// never change. It returns the Seq of the last command that changed something of
// the desk, at the least up to which the records are true, and that command's
// time, Unix ns. A call never tells an older state than the one before. The feed
// calls it on one goroutine at a time, within Run.
type Tickets func(each func(in market.InstrumentID, id market.TicketID, record []byte)) (seq uint64, at int64)

// ticketRecord is one ticket as its record says it.
type ticketRecord struct {
	id   market.TicketID
	text []byte
}

// ticketBook is all tickets of one instrument. It never changes. Its engineSeq is
// the Seq of the desk's last change when the book was made, so that a book has
// all up to there, whichever pair it was of.
type ticketBook struct {
	position
	instrument market.InstrumentID
	records    []ticketRecord // by id

	once  sync.Once
	frame []byte // of the snapshot, once it was asked for
}

// snapshot returns the frame of the whole book. It is made at the first call, for
// all shards: with the most tickets that a desk can have it is large (see doc.go),
// which nobody should hold twice.
func (b *ticketBook) snapshot(in *market.Instrument) []byte {
	b.once.Do(func() { b.frame = ticketsSnapshot(in, b) })
	return b.frame
}

// ticketPublisher follows the desk's tickets. It looks when it is told that there is
// something new, on a goroutine of its own, since Run's waits for the engine's
// events: the tickets become visible when the desk has stored them.
type ticketPublisher struct {
	feed *Feed
	wake chan struct{} // holds one: there is something to see

	// The goroutine's own.
	enc     encoder
	found   [][]ticketRecord // of this look, by instrument
	changed []ticketRecord
	removed []market.TicketID
	pubs    []publication
}

// TicketsChanged says that Options.Tickets may tell something new. It never
// blocks; any goroutine may call it at any time.
func (f *Feed) TicketsChanged() {
	select {
	case f.tickets.wake <- struct{}{}:
	default:
	}
}

// run looks until halted is closed.
func (d *ticketPublisher) run(halted <-chan struct{}) {
	pause := time.NewTimer(ticketsInterval)
	defer pause.Stop()
	for {
		select {
		case <-pause.C:
		case <-halted:
			return
		}
		select {
		case <-d.wake:
		case <-halted:
			return
		}
		d.refresh()
		pause.Reset(ticketsInterval)
	}
}

// look makes new books of the instruments whose tickets have changed and
// publishes them.
func (d *ticketPublisher) refresh() {
	f := d.feed
	for i := range d.found {
		d.found[i] = d.found[i][:0]
	}
	seq, at := f.o.Tickets(func(in market.InstrumentID, id market.TicketID, record []byte) {
		if int(in) < len(d.found) {
			d.found[in] = append(d.found[in], ticketRecord{id, record})
		}
	})
	now := position{epoch: f.epoch.Load(), engineSeq: seq, at: at}
	for i := range d.found {
		d.publishChanges(market.InstrumentID(i), now)
		clear(d.found[i])
	}
	if len(d.pubs) > 0 {
		for _, s := range f.shards {
			s.inbox.publish(d.pubs, enginePos{})
		}
	}
	f.stats.deskSeq.Store(seq)
	clear(d.pubs)
	d.pubs = d.pubs[:0]
}

// compare holds what was found of one instrument against its book and makes the
// next book where they differ.
func (d *ticketPublisher) publishChanges(in market.InstrumentID, now position) {
	f := d.feed
	cur, found := f.books[in].Load(), d.found[in]
	d.diff(cur.records, found)
	follows := now.epoch == cur.epoch
	if follows && len(d.changed) == 0 && len(d.removed) == 0 {
		return
	}
	now.seq = 1
	if follows {
		now.seq = cur.seq + 1
	}
	next := &ticketBook{position: now, instrument: in, records: slices.Clone(found)}
	f.books[in].Store(next)
	pub := publication{book: next}
	ref := topicRef{in: f.set.Get(in), kind: tickets}
	if t := f.topic(ref); follows && t.needed() {
		if frame := d.update(ref.in, now); frame != nil {
			pub.frames[tickets] = frame
			f.stats.encoded.Add(1)
		}
	}
	d.pubs = append(d.pubs, pub)
}

// update returns the frame that leads to p, or nil where it would be larger than
// maxTicketsUpdate. One that is much larger is not begun: the encoder would keep
// its room.
func (d *ticketPublisher) update(in *market.Instrument, p position) []byte {
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

// difference sets changed to the records of next that are not in prev, and gone
// to the tickets of prev that next has no more. Both are sorted by id.
func (d *ticketPublisher) diff(prev, next []ticketRecord) {
	d.changed, d.removed = d.changed[:0], d.removed[:0]
	for _, r := range next {
		for len(prev) > 0 && prev[0].id < r.id {
			d.removed = append(d.removed, prev[0].id)
			prev = prev[1:]
		}
		if len(prev) > 0 && prev[0].id == r.id {
			old := prev[0].text
			prev = prev[1:]
			if sameText(old, r.text) {
				continue
			}
		}
		d.changed = append(d.changed, r)
	}
	for _, r := range prev {
		d.removed = append(d.removed, r.id)
	}
}

// sameText reports whether two records read the same. Most are the same bytes in
// the same place.
func sameText(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || bytes.Equal(a, b))
}

// publishTickets moves one instrument to its next book and queues its update. A
// publication that adopt has overtaken is dropped.
func (s *shard) publishTickets(p *publication) {
	i := p.book.instrument
	cur := s.books[i]
	if p.book.epoch < cur.epoch || p.book.epoch == cur.epoch && p.book.seq <= cur.seq {
		return
	}
	s.books[i] = p.book
	m := encodedMessage{frame: p.frames[tickets]}
	if p.book.epoch != cur.epoch || p.book.seq != cur.seq+1 {
		m = encodedMessage{}
	}
	t := s.topic(topicRef{in: s.feed.set.Get(i), kind: tickets})
	for _, sub := range t.subs {
		s.deliver(sub, &m)
	}
}

// follow starts run, which ends with halted, and returns at once. Where the
// service has no desk it does nothing.
func (d *ticketPublisher) follow(group *sync.WaitGroup, halted <-chan struct{}) {
	if d.feed.o.Tickets == nil {
		return
	}
	d.refresh() // so that the first reader finds the books of this epoch
	group.Go(func() { d.run(halted) })
}
