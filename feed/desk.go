package feed

import (
	"sync"
	"time"

	"blockdesk/market"
)

// deskPublisher publishes changes of the desk's tickets and sales. It reads them on a
// goroutine of its own when it is woken, because they become visible after Run has seen
// their events: when the desk has stored them.
type deskPublisher struct {
	feed    *Feed
	tickets Tickets // nil = no channel tickets
	hold    func() time.Duration
	sales   Sales         // nil = no channel rfq_trades
	wake    chan struct{} // buffered: tickets or sales may have changed

	mu   sync.Mutex
	sold map[market.InstrumentID]struct{} // instruments with new sales

	// Of the goroutine.
	enc     encoder
	found   [][]deskRecord // tickets of this reading, by instrument
	changed []deskRecord
	removed []market.TicketID
	pubs    []publication
}

// ServeTickets adds the channel tickets, with the tickets that source returns. hold returns
// for how long the records of now stay as they are while no command changes the desk: a price
// may grow too old by itself. The feed calls both from one goroutine at a time, within Run,
// and reads the tickets again when hold ends.
func (f *Feed) ServeTickets(source Tickets, hold func() time.Duration) {
	f.desk.tickets, f.desk.hold = source, hold
}

// TicketsChanged makes the feed read the desk's tickets again. It never blocks; any
// goroutine may call it at any time.
func (f *Feed) TicketsChanged() { f.desk.signal() }

// ServeSales adds the channel rfq_trades, with the sales that source returns.
func (f *Feed) ServeSales(source Sales) { f.desk.sales = source }

// SalesChanged makes the feed read the newest sales of an instrument. It never blocks for
// long; any goroutine may call it at any time.
func (f *Feed) SalesChanged(in market.InstrumentID) {
	d := &f.desk
	d.mu.Lock()
	if d.sold == nil {
		d.sold = map[market.InstrumentID]struct{}{}
	}
	d.sold[in] = struct{}{}
	d.mu.Unlock()
	d.signal()
}

func (f *Feed) channels() (c otherChannels) {
	c[l3], c[tickets], c[sales] = f.orders.on, f.desk.tickets != nil, f.desk.sales != nil
	return c
}

// start starts run in group, if there is a desk.
func (d *deskPublisher) start(group *sync.WaitGroup, halted <-chan struct{}) {
	if d.tickets == nil && d.sales == nil {
		return
	}
	d.refresh() // make the lists of this epoch before the first subscriber
	group.Go(func() { d.run(halted) })
}

// run refreshes the lists until halted is closed.
func (d *deskPublisher) run(halted <-chan struct{}) {
	pause := time.NewTimer(ticketsInterval)
	defer pause.Stop()
	stale := time.NewTimer(0) // the lists were made before
	defer stale.Stop()
	for {
		select {
		case <-pause.C:
		case <-halted:
			return
		}
		select {
		case <-d.wake:
		case <-stale.C:
		case <-halted:
			return
		}
		if d.tickets != nil {
			stale.Reset(d.hold()) // before the reading: a change in between is read again
		}
		d.refresh()
		pause.Reset(ticketsInterval)
	}
}

// refresh publishes the lists that have changed.
func (d *deskPublisher) refresh() {
	if d.tickets != nil {
		d.refreshTickets()
	}
	if d.sales != nil {
		d.refreshSales()
	}
	if len(d.pubs) > 0 {
		for _, s := range d.feed.shards {
			s.inbox.publish(d.pubs, enginePos{})
		}
	}
	clear(d.pubs)
	d.pubs = d.pubs[:0]
}

// signal wakes the goroutine. It never blocks.
func (d *deskPublisher) signal() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}
