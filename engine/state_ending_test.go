package engine

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/market"
)

// endingRun applies the same commands to a fast state, a naive one and one that is restored
// from the fast one's snapshot again and again, and compares their events. It checks that an
// order that a mass cancel has ended never trades.
type endingRun struct {
	t      *testing.T
	states [3]*State
	outs   [3]*event.Sink
	seq    uint64
	ended  map[market.OrderID]bool
	// announced is what mass cancels and kills ended, cancelled what was taken out for a mass cancel.
	announced, cancelled int
	most                 int // Cancelled events of one command
}

func newEndingRun(t *testing.T) *endingRun {
	r := &endingRun{t: t, ended: map[market.OrderID]bool{}}
	for i := range r.states {
		r.states[i] = NewState(StateOptions{Naive: i == 1, MaxOrders: 1 << 16})
		r.outs[i] = event.NewGrowingSink(1 << 12)
	}
	def, err := DefineInstrumentCommand(&market.Instrument{
		Symbol: "T0/USD", Base: "T0", Quote: "USD", PriceDecimals: 2, QtyDecimals: 3,
		Tick: 1, Lot: 1, MinQty: 1, MaxQty: 1000, MaxPrice: 10_000, Source: market.Matched,
	})
	if err != nil {
		t.Fatal(err)
	}
	r.apply(Command{Kind: StartEpoch, Arg: 1, Status: StatusInSlices}, 1)
	r.apply(def, 1)
	for p := market.ParticipantID(1); p <= 3; p++ {
		limits, err := SetRiskCommand(p, AllInstruments, Limits{MaxQty: 1000, MaxNotional: market.Uint128{Hi: 1}, MaxOpenOrders: 1 << 16, BandBps: MaxBandBps})
		if err != nil {
			t.Fatal(err)
		}
		r.apply(limits, 1)
	}
	return r
}

// apply applies c to all states at time at and returns the events.
func (r *endingRun) apply(c Command, at int64) []event.Event {
	r.t.Helper()
	r.seq++
	c.Seq, c.At = r.seq, at
	var want []event.Event
	for i, s := range r.states {
		r.outs[i].Reset()
		s.Apply(&c, r.outs[i])
		events := r.outs[i].Events()
		if i == 0 {
			want = events
			continue
		}
		for k := range max(len(want), len(events)) {
			if k >= len(want) || k >= len(events) || want[k] != events[k] {
				r.t.Fatalf("command %d (%+v): event %d of %d and %d differs in state %d:\n%+v\n%+v", r.seq, c, k, len(want), len(events), i,
					want[min(k, len(want)):], events[min(k, len(events)):])
			}
		}
	}
	r.follow(&c, want)
	return want
}

func (r *endingRun) follow(c *Command, events []event.Event) {
	r.t.Helper()
	cancelled := 0
	for i := range events {
		e := &events[i]
		switch e.Kind {
		case event.Traded:
			if r.ended[e.OrderID] || r.ended[market.OrderID(e.Other)] {
				r.t.Fatalf("command %d: an ended order trades: %+v", r.seq, *e)
			}
		case event.Cancelled:
			cancelled++
			if r.ended[e.OrderID] {
				delete(r.ended, e.OrderID)
				r.cancelled++
			}
		case event.MassCancelled, event.ParticipantSet:
			before := len(r.ended)
			r.states[0].Orders(0, func(o book.LiveOrder) {
				if o.Flags&(book.FlagMassCancelled|book.FlagKilled) != 0 {
					r.ended[o.ID] = true
				}
			})
			if added := len(r.ended) - before; added > 0 {
				if e.Kind == event.MassCancelled && added != int(e.Qty) {
					r.t.Fatalf("command %d: %d orders ended, announced %d", r.seq, added, e.Qty)
				}
				r.announced += added
			}
		}
	}
	if c.Kind != MassCancel {
		r.most = max(r.most, cancelled)
	}
}

// restart replaces the third state by one that is restored from the first one's snapshot.
func (r *endingRun) restart() {
	r.t.Helper()
	data := r.states[0].AppendSnapshot(nil)
	restored, err := RestoreState(data, StateOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	r.states[2] = restored
	if naive := r.states[1].AppendSnapshot(nil); !bytes.Equal(naive, data) {
		r.t.Fatalf("command %d: the naive state has another snapshot", r.seq)
	}
}

// TestEndingInSlices: mass cancels, kills and expiries of many orders end in slices, the same
// in both books and across restarts at any point, and what has ended never trades.
func TestEndingInSlices(t *testing.T) {
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 5))
		r := newEndingRun(t)
		at := int64(10)
		order := func(id market.OrderID) Command {
			c := Command{Kind: NewOrder, Order: book.Order{
				ID: id, Participant: 1 + market.ParticipantID(rng.IntN(3)), Side: market.Buy + market.Side(rng.IntN(2)),
				Qty: 1 + market.Qty(rng.IntN(9)), Type: book.Limit, TIF: book.GTC, STP: book.STP(1 + rng.IntN(4)),
			}}
			o := &c.Order
			o.Price = 1000 - market.Price(rng.IntN(60))
			if o.Side == market.Sell {
				o.Price = 1001 + market.Price(rng.IntN(60))
			}
			switch rng.IntN(12) {
			case 0, 1:
				o.TIF, o.ExpireAt = book.GTD, at+50+int64(rng.IntN(3))*100
			case 2:
				o.Type, o.Stop, o.Price = book.Stop, o.Price, 0
			case 3:
				o.Display = 1
			}
			return c
		}
		id := market.OrderID(0)
		for range 1600 {
			id++
			r.apply(order(id), at)
		}
		for step := range 500 {
			at += int64(rng.IntN(2))
			var c Command
			switch roll := rng.IntN(100); {
			case roll < 3 || step == 5:
				c = Command{Kind: MassCancel, Order: book.Order{Participant: market.ParticipantID(rng.IntN(4)), Side: market.Side(rng.IntN(3))}}
			case roll < 5:
				c = Command{Kind: SetParticipant, Status: StatusKilled + uint8(rng.IntN(2)), Order: book.Order{Participant: 1 + market.ParticipantID(rng.IntN(3))}}
			case roll < 9:
				c = Command{Kind: Tick}
			case roll < 20:
				c = Command{Kind: CancelOrder, Order: book.Order{ID: 1 + market.OrderID(rng.IntN(int(id))), Participant: market.ParticipantID(rng.IntN(4))}}
			case roll < 35:
				c = Command{Kind: AmendOrder, Order: book.Order{
					ID: 1 + market.OrderID(rng.IntN(int(id))), Participant: 1 + market.ParticipantID(rng.IntN(3)),
					Qty: 1 + market.Qty(rng.IntN(12)), Price: 990 + market.Price(rng.IntN(21)),
				}}
			default:
				id++
				c = order(id)
				if o := &c.Order; rng.IntN(2) == 0 && o.Type == book.Limit { // one that may take
					o.Price, o.ExpireAt, o.Display = 980+market.Price(rng.IntN(41)), 0, 0
					o.TIF = book.TIF(1 + rng.IntN(3))
					o.Qty *= 8
					if rng.IntN(4) == 0 && o.TIF == book.GTC {
						o.Flags = book.FlagPostOnly
					}
				}
			}
			r.apply(c, at)
			if step%7 == 0 {
				r.restart()
			}
		}
		for range 50 {
			at += 1000
			r.apply(Command{Kind: Tick}, at)
		}
		if r.announced == 0 || r.announced != r.cancelled || len(r.ended) != 0 {
			t.Errorf("seed %d: announced %d ended orders, %d were taken out, %d are left", seed, r.announced, r.cancelled, len(r.ended))
		}
		if next := r.states[0].NextExpiry(); next != 0 || len(r.states[0].sweeps) != 0 {
			t.Errorf("seed %d: next expiry %d, sweeps %v", seed, next, r.states[0].sweeps)
		}
	}
}

// TestSlices: a mass cancel of many orders answers at once with their number, counts as done
// for the limit on open orders and for prices, and no command takes more than its slice out.
func TestSlices(t *testing.T) {
	r := newEndingRun(t)
	const many = 2000
	for i := range many {
		r.apply(Command{Kind: NewOrder, Order: book.Order{
			ID: market.OrderID(i + 1), Participant: 1, Side: market.Buy, Qty: 1, Price: 500 + market.Price(i%10), Type: book.Limit, TIF: book.GTC, STP: book.STPCancelNewest,
		}}, 2)
	}
	events := r.apply(Command{Kind: MassCancel, Instrument: AllInstruments, Order: book.Order{Participant: 1}}, 3)
	if len(events) != 1 || events[0].Kind != event.MassCancelled || events[0].Qty != many {
		t.Fatalf("%+v", events)
	}
	b := r.states[0].instruments[0].book
	if b.open(1) != 0 || b.best(market.Buy) != 0 || r.states[0].NextExpiry() != overdue {
		t.Fatalf("%d open orders, best bid %d, next expiry %d", b.open(1), b.best(market.Buy), r.states[0].NextExpiry())
	}
	r.restart()
	if n := len(r.apply(Command{Kind: Tick}, 4)); n != tickSlice {
		t.Errorf("a tick takes %d orders out", n)
	}
	unknown := r.apply(Command{Kind: CancelOrder, Order: book.Order{ID: 1, Participant: 1}}, 5)
	if n := len(unknown); n != commandSlice+2 || unknown[n-2].Kind != event.Cancelled || unknown[n-2].OrderID != 1 || unknown[n-1].Kind != event.CancelRejected {
		t.Errorf("a cancel of an ended order: %+v", unknown)
	}
	fok := r.apply(Command{Kind: NewOrder, Order: book.Order{
		ID: many + 1, Participant: 2, Side: market.Sell, Qty: 1, Price: 1, Type: book.Limit, TIF: book.FOK, STP: book.STPCancelNewest,
	}}, 6)
	if last := fok[len(fok)-1]; last.Kind != event.Rejected || event.Reason(last.Code) != event.ReasonFOKUnfillable {
		t.Errorf("a fill or kill against ended orders: %+v", last)
	}
	for r.states[0].NextExpiry() != 0 {
		r.apply(Command{Kind: Tick}, 7)
	}
	if r.announced != many || r.cancelled != many {
		t.Errorf("announced %d, cancelled %d of %d", r.announced, r.cancelled, many)
	}
}

// rest enters n bids of participant 1 at one price.
func (r *endingRun) rest(n int) {
	for i := range n {
		r.apply(Command{Kind: NewOrder, Order: book.Order{
			ID: market.OrderID(i + 1), Participant: 1, Side: market.Buy, Qty: 1, Price: 5, Type: book.Limit, TIF: book.GTC, STP: book.STPCancelNewest,
		}}, 2)
	}
}

// TestEndingNeedsSlices: a snapshot with ending orders of a state without slices is damaged,
// and an epoch of an unknown rule is refused.
func TestEndingNeedsSlices(t *testing.T) {
	r := newEndingRun(t)
	r.rest(300)
	r.apply(Command{Kind: MassCancel, Order: book.Order{Participant: 1}}, 3)
	data := r.states[0].AppendSnapshot(nil)
	const flagsAt = 10
	data[flagsAt] = 0
	if _, err := RestoreState(data, StateOptions{}); !errors.Is(err, ErrSnapshot) {
		t.Errorf("without the flag: %v", err)
	}
	refused := r.apply(Command{Kind: StartEpoch, Arg: 2, Status: StatusInSlices + 1}, 4)
	if last := refused[len(refused)-1]; last.Kind != event.Rejected {
		t.Errorf("%+v", last)
	}
	format := FormatCheck{}
	if begin := (Command{Kind: StartEpoch, Arg: 2, Status: StatusInSlices}); format.Format(&begin) != Format2 {
		t.Error("format 1 has no slices")
	}
}

// TestEndingSnapshotGolden pins the bytes of version 5, with ending orders.
func TestEndingSnapshotGolden(t *testing.T) {
	r := newEndingRun(t)
	r.rest(260)
	r.apply(Command{Kind: MassCancel, Order: book.Order{Participant: 1}}, 3)
	r.apply(Command{Kind: NewOrder, Order: book.Order{
		ID: 300, Participant: 1, Side: market.Sell, Qty: 1, Price: 6, Type: book.Limit, TIF: book.GTC, STP: book.STPCancelNewest,
	}}, 4)
	for range 15 {
		r.apply(Command{Kind: SetInstrument, Status: StatusTrading}, 5)
	}
	got := r.states[0].AppendSnapshot(nil)
	const path = "testdata/snapshot_v5.hex"
	text := strings.Join(lines(hex.EncodeToString(got), 64), "\n") + "\n"
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("the encoding differs from %s:\n%s", path, text)
	}
	if s, err := RestoreState(got, StateOptions{}); err != nil || len(s.sweeps) != 1 {
		t.Errorf("restored: %v, %v", s, err)
	}
}
