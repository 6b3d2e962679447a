package rfq

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"blockdesk/engine/event"
	"blockdesk/market"
)

// TestViewSharing: the View stays the same until something shown changes; then unchanged
// parts are shared and the earlier View keeps its content.
func TestViewSharing(t *testing.T) {
	d := openDesk(t, 25_000)
	d.must(t, &PostTicket{Header: Header{RequestID: 50}, Label: "second", Capacities: []market.USD{500_000_000}})
	old := d.model.View()
	if d.model.View() != old {
		t.Fatal("another view of the same")
	}
	d.must(t, &RequestQuote{Header: Header{RequestID: 51}, Ticket: 1, Tranche: 1, Fill: 1, Rail: 1})
	d.refuse(t, &WithdrawTicket{Header: Header{RequestID: 52}, Ticket: 9}, event.ReasonUnknownTicket, 0)
	if d.model.View() != old {
		t.Fatal("a quote and a refusal changed the view")
	}
	before := fmt.Sprintf("%+v %+v %+v", *old, *old.Tickets[0], *old.Tickets[1])
	d.must(t, &TakeClaim{Header: Header{RequestID: 53}, Ticket: 1, Tranche: 1, Fill: 1, Rail: 1, Mode: Modular, Wallet: address("a")})
	now := d.model.View()
	switch {
	case now == old || now.Seq != d.seq || now.At != d.at:
		t.Errorf("seq %d at %d", now.Seq, now.At)
	case now.Ticket(2) != old.Ticket(2):
		t.Error("a ticket that did not change is not shared")
	case now.Ticket(1) == old.Ticket(1) || now.Ticket(1).Tranches[0].Reserved != 250_000_000:
		t.Error("a ticket that changed is shared")
	case now.Pair(0) == old.Pair(0) || now.Pair(0).Reserved == 0:
		t.Error("a pair that changed is shared")
	case &now.Operators[0] != &old.Operators[0]:
		t.Error("the operators are not shared")
	}
	d.must(t, &WithdrawTicket{Header: Header{RequestID: 54}, Ticket: 1})
	d.model.View()
	if after := fmt.Sprintf("%+v %+v %+v", *old, *old.Tickets[0], *old.Tickets[1]); after != before {
		t.Errorf("the old view changed\n%s\n%s", before, after)
	}
}

// TestReadModelOfMachine: the read model of a machine is a copy and continues on its own.
func TestReadModelOfMachine(t *testing.T) {
	d := busyDesk(t)
	b := d.m.ReadModel()
	old := b.View()
	shown := fmt.Sprintf("%+v %+v", *old, *old.Tickets[0])
	d.model = b
	d.must(t, &SetAnchor{Header: Header{RequestID: 300}, Price: 1_300_000_000})
	d.must(t, &SetTranche{Header: Header{RequestID: 301}, Ticket: 1, Tranche: 3, Capacity: 300_000_000})
	d.at += 2 * day
	d.expire(t)
	d.check(t)
	if now := fmt.Sprintf("%+v %+v", *old, *old.Tickets[0]); now != shown {
		t.Errorf("the machine changed a view\n%s\n%s", shown, now)
	}
	if b.View().Ticket(3) != nil || old.Ticket(3) == nil {
		t.Error("ticket 3 should be gone by now")
	}
}

func TestBoardRefusesWhatDoesNotFit(t *testing.T) {
	for name, rec := range map[string]Record{
		"tranche of nothing":     &TicketTranche{Ticket: 9},
		"tranche out of order":   &TicketTranche{Ticket: 1, Tranche: Tranche{ID: 3}},
		"tranche 0":              &TicketTranche{Ticket: 1},
		"unknown ticket removed": &Removed{What: TagTicket, ID: 9},
	} {
		t.Run(name, func(t *testing.T) {
			b := openDesk(t, 1000).m.ReadModel()
			defer func() {
				if recover() == nil {
					t.Error("Apply accepted the record")
				}
			}()
			b.Apply(rec, 99)
		})
	}
}

// TestViewPrices: a reader computes the prices of a quote.
func TestViewPrices(t *testing.T) {
	d := openDesk(t, 25_000)
	v := d.model.View()
	ref, why := v.Reference(v.Ticket(1), d.mids, d.at)
	if why != 0 || ref != 1_250_000_000 {
		t.Fatalf("%d, %v", ref, why)
	}
	stock := v.FillsInStock(0, ref)
	best := v.BestPrice(v.Ticket(1).Tranche(1), ref, stock)
	q := last[*Quote](t, d.must(t, &RequestQuote{Header: Header{RequestID: 60}, Ticket: 1, Tranche: 1, Fill: 3, Rail: 1}))
	if best != q.Terms.Price {
		t.Errorf("best %d, quote %d", best, q.Terms.Price)
	}
	if got := v.BestPrice(&Tranche{Capacity: 249_999_999}, ref, stock); got != 0 {
		t.Errorf("best of too little: %d", got)
	}
	if v.Ticket(2) != nil || v.Pair(1) != nil || v.Ticket(1).Tranche(0) != nil || v.Ticket(1).Tranche(2) != nil {
		t.Error("there is something that is not there")
	}
	if _, why := v.Reference(&Ticket{Instrument: 5}, d.mids, d.at); why != event.ReasonUnknownPair {
		t.Error(why)
	}
	p := *v.Pair(0)
	p.Source = SourceBook
	bookless := View{Pairs: []Pair{p}}
	if _, why := bookless.Reference(v.Ticket(1), nil, d.at); why != event.ReasonPriceUnavailable {
		t.Error(why)
	}
	if _, why := bookless.PairReference(0, nil, d.at); why != event.ReasonPriceUnavailable {
		t.Error(why)
	}
	if got, why := v.PairReference(0, d.mids, d.at); got != v.Pair(0).Anchor || why != 0 {
		t.Error(got, why)
	}
	if _, why := v.PairReference(5, d.mids, d.at); why != event.ReasonUnknownPair {
		t.Error(why)
	}
	p.MaxAge = second
	stale := View{Pairs: []Pair{p}}
	if _, why := stale.Reference(v.Ticket(1), d.mids, d.at+2*second); why != event.ReasonPriceStale {
		t.Error(why)
	}
}

// TestBestPriceIsInStock: the best price is that of a quote that the engine gives, whatever
// the inventory and the balance on the chain leave.
func TestBestPriceIsInStock(t *testing.T) {
	d := openDesk(t, 2_500_000)
	token := uint64(60)
	for _, left := range []uint64{1 << 50, 1, 3_000_000_000_000, 900_000_000_000, 100_000_000_000, 19_000_000_000, 900_000_000, 300_000_000} {
		token++
		if left%2 == 0 {
			p := d.model.View().Pair(0)
			d.must(t, &SetInventory{Header: Header{RequestID: token}, Instrument: 0, Atoms: p.Reserved + p.Sold + left})
		} else {
			d.must(t, &SetBalance{Header: Header{RequestID: token}, Instrument: 0, Atoms: left})
		}
		v := d.model.View()
		ref, why := v.Reference(v.Ticket(1), d.mids, d.at)
		if why != 0 {
			t.Fatal(why)
		}
		stock, want := v.FillsInStock(0, ref), market.USDPrice(0)
		for f := market.FillUSD(1); f <= market.FillCount; f++ {
			token++
			r := outcomeOf(d.apply(t, &RequestQuote{Header: Header{RequestID: token}, Ticket: 1, Tranche: 1, Fill: f, Rail: 1})).Reason
			switch price := v.Policy.Price(ref, f); {
			case (r == event.ReasonNone) != stock.Has(f):
				t.Errorf("%d atoms left: %s in stock %v, a quote of it: %v", left, f, stock.Has(f), r)
			case r == event.ReasonNone && (want == 0 || price < want):
				want = price
			}
		}
		if got := v.BestPrice(v.Ticket(1).Tranche(1), ref, stock); got != want {
			t.Errorf("%d atoms left: best price %d, the best quote %d", left, got, want)
		}
		if left%2 != 0 { // what the next inventories are measured by
			token++
			d.must(t, &SetBalance{Header: Header{RequestID: token}, Instrument: 0, Atoms: 1 << 50})
		}
	}
	if d.model.View().FillsInStock(9, 1) != 0 {
		t.Error("an unknown pair has stock")
	}
}

func TestViewLocked(t *testing.T) {
	v := &View{Locks: []Lock{{Scope: LockAll}, {Scope: LockPair, Instrument: 2, Locked: true}, {Scope: LockRail, Rail: 2, Locked: true}}}
	for _, c := range []struct {
		in   market.InstrumentID
		rail market.Rail
		want *Lock
	}{
		{0, 1, nil},
		{2, 1, &v.Locks[1]},
		{2, 2, &v.Locks[1]},
		{0, 2, &v.Locks[2]},
		{0, 0, nil},
		{2, 0, &v.Locks[1]},
	} {
		if got := v.Locked(c.in, c.rail); got != c.want {
			t.Errorf("pair %d rail %d: %+v", c.in, c.rail, got)
		}
	}
	v.Locks[0].Locked = true
	if v.Locked(9, 0) != &v.Locks[0] {
		t.Error("the lock on all is not seen")
	}
	if clock := (&View{Locks: []Lock{{Scope: LockClock, Locked: true}}}); clock.Locked(9, 0) != &clock.Locks[0] {
		t.Error("the clock's lock is not seen")
	}
}

// TestViewOfThousand: a changed ticket costs a copy of the pointers and of itself, whatever
// the number of others.
func TestViewOfThousand(t *testing.T) {
	const tickets, bound = 1000, 6
	var b ReadModel
	for id := market.TicketID(1); id <= tickets; id++ {
		b.Apply(&Ticket{ID: id, State: TicketOpen}, uint64(id))
		b.Apply(&TicketTranche{Ticket: id, Tranche: Tranche{ID: 1, Capacity: 1 << 40}}, uint64(id))
	}
	b.View()
	rec, seq := &Ticket{ID: 500, State: TicketOpen}, uint64(tickets)
	tr := &TicketTranche{Ticket: 500, Tranche: Tranche{ID: 1, Capacity: 1 << 40}}
	if n := testing.AllocsPerRun(100, func() {
		seq++
		b.Apply(rec, seq)
		b.Apply(tr, seq)
		b.View()
	}); n > bound {
		t.Errorf("%v allocations, at most %d", n, bound)
	}
	if v := b.View(); Sellable(v.Tickets) == nil || Sellable(v.Tickets).ID != 1 || !reflect.DeepEqual(v.Ticket(500).Tranches, []Tranche{tr.Tranche}) {
		t.Errorf("%+v", Sellable(v.Tickets))
	}
}

// TestOffer: the ticket that a buyer who names none gets.
func TestOffer(t *testing.T) {
	ticket := func(id market.TicketID, in market.InstrumentID, priority uint16, state TicketState, rails market.Rails, capacities ...market.USD) *Ticket {
		o := &Ticket{ID: id, Instrument: in, Priority: priority, State: state, Rails: rails}
		for i, c := range capacities {
			o.Tranches = append(o.Tranches, Tranche{ID: market.TrancheID(i + 1), Capacity: c * 1_000_000})
		}
		return o
	}
	usdc := market.Rails(0).With(market.RailUSDC)
	const at = 1000
	dear, past := ticket(6, 0, 0, TicketOpen, usdc, 9000), ticket(7, 0, 0, TicketOpen, usdc, 9000)
	dear.Reference, past.ExpiresAt = 2_000_000_000, at // outside the corridor; due to expire
	v := &View{Pairs: []Pair{{Instrument: 0, Anchor: 1_000_000_000, CorridorBps: 100}, {Instrument: 1}, {Instrument: 2}}, Tickets: []*Ticket{
		ticket(1, 0, 1, TicketWithdrawn, market.AllRails, 9_000_000),
		ticket(2, 0, 2, TicketOpen, usdc, 250, 25_000),
		ticket(3, 0, 1, TicketOpen, usdc, 250),
		ticket(4, 0, 3, TicketOpen, market.AllRails, 1000),
		ticket(5, 1, 0, TicketExhausted, market.AllRails, 0),
		dear, past,
	}}
	for _, c := range []struct {
		in      market.InstrumentID
		fill    string
		rail    market.Rail
		ticket  market.TicketID
		tranche market.TrancheID
		why     event.Reason
	}{
		{0, "250", market.RailUSDC, 3, 1, 0},
		{0, "1000", market.RailUSDC, 2, 2, 0},
		{0, "250", market.RailSOL, 4, 1, 0},
		{0, "25000", market.RailSOL, 0, 0, event.ReasonCapacityExhausted},
		{0, "250000", market.RailUSDC, 0, 0, event.ReasonCapacityExhausted},
		{1, "250", market.RailUSDC, 0, 0, event.ReasonUnknownTicket},
		{2, "250", market.RailUSDC, 0, 0, event.ReasonUnknownTicket},
		{3, "250", market.RailUSDC, 0, 0, event.ReasonUnknownPair},
	} {
		fill, ok := market.ParseFill([]byte(c.fill))
		if !ok {
			t.Fatal(c.fill)
		}
		got, tranche, why := v.Offer(c.in, fill, c.rail, at)
		id := market.TicketID(0)
		if got != nil {
			id = got.ID
		}
		if id != c.ticket || tranche != c.tranche || why != c.why {
			t.Errorf("%+v: ticket %d, tranche %d, reason %v", c, id, tranche, why)
		}
	}
	fill, _ := market.ParseFill([]byte("250"))
	for _, l := range []Lock{{Scope: LockAll, Locked: true}, {Scope: LockPair, Instrument: 0, Locked: true}, {Scope: LockRail, Rail: market.RailUSDC, Locked: true}} {
		v.Locks = []Lock{l}
		if got, _, why := v.Offer(0, fill, market.RailUSDC, at); got != nil || why != event.ReasonLocked {
			t.Errorf("lock %+v: %+v, %v", l, got, why)
		}
	}
}

// TestReadModelTicket: a returned ticket never changes; CanApply reports what Apply would
// panic on.
func TestReadModelTicket(t *testing.T) {
	b := NewReadModel([]*Ticket{{ID: 3, Label: "a"}, {ID: 5}})
	tranche := func(ticket market.TicketID, id market.TrancheID, capacity market.USD) *TicketTranche {
		return &TicketTranche{Ticket: ticket, Tranche: Tranche{ID: id, Capacity: capacity}}
	}
	for n, c := range []struct {
		rec  Record
		fits bool
	}{
		{tranche(4, 1, 1), false},
		{tranche(3, 0, 1), false},
		{tranche(3, 2, 1), false},
		{&Removed{What: TagTicket, ID: 4}, false},
		{&Removed{What: TagQuote, ID: 4}, true},
		{tranche(3, 1, 1), true},
		{tranche(3, 1, 2), true},
		{tranche(3, 2, 1), true},
		{&Ticket{ID: 4}, true},
		{tranche(4, 1, 1), true},
		{&Removed{What: TagTicket, ID: 5}, true},
		{&Ticket{ID: 3, Label: "b"}, true},
	} {
		given := b.Ticket(3)
		before := fmt.Sprintf("%+v", *given)
		if b.CanApply(c.rec) != c.fits {
			t.Fatalf("record %d fits: %v", n, !c.fits)
		}
		if c.fits {
			b.Apply(c.rec, uint64(n+1))
		}
		if after := fmt.Sprintf("%+v", *given); after != before {
			t.Errorf("record %d changed a ticket that was given: %s, was %s", n, after, before)
		}
	}
	if last := b.Ticket(3); last.Label != "b" || len(last.Tranches) != 2 || last.Tranches[0].Capacity != 2 || b.Ticket(5) != nil {
		t.Errorf("%+v", last)
	}
}

// TestSellableNow: the ticket that sells first of those that sell now.
func TestSellableNow(t *testing.T) {
	d := openDesk(t, 1000)
	d.must(t, &SetPair{Header: token(1), Pair: testPair(1)})
	for i, r := range []*PostTicket{
		{Label: "first", Instrument: 1, Priority: 0, Rails: market.Rails(0).With(market.RailSOL), Capacities: []market.USD{250_000_000}, ExpiresAt: testAt + hour},
		{Label: "second", Priority: 1, Capacities: []market.USD{250_000_000}},
	} {
		r.RequestID = uint64(10 + i)
		d.must(t, r)
	}
	d.must(t, &AmendTicket{Header: token(2), Ticket: 1, Priority: 2})
	now := func(want market.TicketID, why ...event.Reason) {
		t.Helper()
		v := d.model.View()
		var got market.TicketID
		if s := v.SellableNow(d.mids, d.at); s != nil {
			got = s.ID
		}
		if got != want {
			t.Errorf("ticket %d sells; want %d", got, want)
		}
		for i, want := range why {
			if got := v.SaleRefusal(v.Ticket(2), market.Rail(i+1), d.mids, d.at); got != want {
				t.Errorf("ticket 2 over rail %d: %v; want %v", i+1, got, want)
			}
		}
	}
	refused := event.ReasonRailNotAccepted
	now(3, refused, event.ReasonPriceUnavailable)
	d.must(t, &SetAnchor{Header: token(3), Instrument: 1, Price: 1_000_000_000})
	now(3, refused, event.ReasonInventory)
	d.must(t, &SetInventory{Header: token(4), Instrument: 1, Atoms: 1 << 50})
	now(2, refused, event.ReasonNone)
	for _, lock := range []SetLock{{Scope: LockAll}, {Scope: LockPair, Instrument: 1}, {Scope: LockRail, Rail: market.RailSOL}} {
		for _, locked := range []bool{true, false} {
			lock.Header, lock.Locked = token(5), locked
			d.must(t, &lock)
			switch {
			case !locked:
				now(2, refused, event.ReasonNone)
			case lock.Scope == LockAll:
				now(0, event.ReasonLocked, event.ReasonLocked)
			default:
				now(3)
			}
		}
	}
	d.must(t, &SetBalance{Header: token(6), Instrument: 1, Atoms: 249_999_999})
	now(3, refused, event.ReasonInventory)
	d.must(t, &SetBalance{Header: token(6), Instrument: 1, Atoms: 1 << 50})
	d.must(t, &TakeClaim{Header: token(7), Ticket: 2, Tranche: 1, Fill: 1, Rail: market.RailSOL, Mode: Modular, Wallet: address("a")})
	now(3, refused, event.ReasonCapacityExhausted)
	d.at += hour // not swept yet
	now(3, event.ReasonTicketExpired, event.ReasonTicketExpired)
	if price, why := d.model.View().RailPrice(market.RailSOL, d.at); price != 150_000_000_000 || why != 0 {
		t.Errorf("SOL at %d: %v", price, why)
	}
	locked := func() bool {
		return slices.ContainsFunc(d.model.View().Locks, func(l Lock) bool { return l.Scope == LockDeliveries && l.Locked })
	}
	if locked() {
		t.Error("deliveries are locked")
	}
	d.must(t, &SetLock{Header: token(8), Scope: LockDeliveries, Locked: true})
	if !locked() {
		t.Error("deliveries are not locked")
	}
}
