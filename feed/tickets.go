package feed

import (
	"bytes"
	"slices"
	"sync"
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

// ticketPublisher publishes changes of the desk's tickets. It reads them on a goroutine
// of its own when it is woken, because tickets become visible after Run has seen their
// events: when the desk has stored them.
type ticketPublisher struct {
	feed   *Feed
	source Tickets       // nil = no desk, and no channel tickets
	wake   chan struct{} // buffered: the tickets may have changed

	// Of the goroutine.
	enc     encoder
	found   [][]ticketRecord // of this reading, by instrument
	changed []ticketRecord
	removed []market.TicketID
	pubs    []publication
}

// ServeTickets adds the channel tickets, with the tickets that source returns.
func (f *Feed) ServeTickets(source Tickets) { f.tickets.source = source }

// TicketsChanged makes the feed read the desk's tickets again. It never blocks; any
// goroutine may call it at any time.
func (f *Feed) TicketsChanged() {
	select {
	case f.tickets.wake <- struct{}{}:
	default:
	}
}

// run refreshes the books until halted is closed.
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

// refresh reads all tickets and publishes the books that have changed.
func (d *ticketPublisher) refresh() {
	f := d.feed
	for i := range d.found {
		d.found[i] = d.found[i][:0]
	}
	seq, at := d.source(func(in market.InstrumentID, id market.TicketID, record []byte) {
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

// publishChanges compares an instrument's tickets with its book and makes the next book
// if they differ.
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

// update returns the update to p, or nil if it would be larger than maxTicketsUpdate. A
// much larger one is not encoded at all, because the encoder would keep its memory.
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

// diff sets changed to the records of next that are not in prev, and removed to the
// tickets of prev that are not in next. Both lists are sorted by id.
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
			if bytes.Equal(old, r.text) {
				continue
			}
		}
		d.changed = append(d.changed, r)
	}
	for _, r := range prev {
		d.removed = append(d.removed, r.id)
	}
}

// publishTickets moves one instrument to its next book and queues its update. It drops a
// publication that reload has overtaken.
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

// start starts run in group, if there is a desk.
func (d *ticketPublisher) start(group *sync.WaitGroup, halted <-chan struct{}) {
	if d.source == nil {
		return
	}
	d.refresh() // make the books of this epoch before the first subscriber
	group.Go(func() { d.run(halted) })
}
