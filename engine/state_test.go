package engine

import (
	"math"
	"testing"

	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/market"
)

func applyTo(s *State, c Command) []event.Event {
	out := event.NewGrowingSink(8)
	c.Seq = s.Seq() + 1
	s.Apply(&c, out)
	return out.Events()
}

func mustApply(t testing.TB, s *State, c Command, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range applyTo(s, c) {
		if e.Kind == event.Rejected {
			t.Fatalf("refused: %v", event.Reason(e.Code))
		}
	}
}

func TestSeqMustFollow(t *testing.T) {
	s := sampleState(t, false, sampleCommands()[:5])
	for _, seq := range []uint64{0, 1, 5, 7, math.MaxUint64} {
		before, out := s.Hash(), event.NewGrowingSink(8)
		c := testOrder(9, 1)
		c.Seq, c.At = seq, 77
		s.Apply(&c, out)
		e := out.Events()
		if len(e) != 1 || e[0].Kind != event.Rejected || e[0].Aux != 6 || e[0].Seq != 5 || e[0].Code != uint16(event.ReasonInvalidCommand) {
			t.Errorf("seq %d: %+v", seq, e)
		}
		if s.Hash() != before {
			t.Errorf("seq %d changed the state", seq)
		}
	}
}

func TestInstrumentLimit(t *testing.T) {
	s := NewState(StateOptions{Naive: true})
	for id := range market.MaxInstruments {
		in := testInstrument(market.InstrumentID(id))
		c, err := DefineInstrumentCommand(&in)
		mustApply(t, s, c, err)
	}
	in := testInstrument(market.MaxInstruments)
	c, err := DefineInstrumentCommand(&in)
	if err != nil {
		t.Fatal(err)
	}
	e := applyTo(s, c)
	if len(e) != 1 || e[0].Code != uint16(event.ReasonUnknownInstrument) || e[0].Aux != market.MaxInstruments-1 {
		t.Errorf("instrument %d: %+v", market.MaxInstruments, e)
	}
	if n := len(s.Instruments()); n != market.MaxInstruments {
		t.Errorf("%d instruments", n)
	}
	if last := market.InstrumentID(market.MaxInstruments - 1); s.Instruments()[last] != testInstrument(last) {
		t.Errorf("instrument %d became %+v", last, s.Instruments()[last])
	}
}

// Every number is a participant at once.
func TestAllParticipants(t *testing.T) {
	s := NewState(StateOptions{})
	// From the top down: the highest number makes the longest list at once.
	for i := range MaxParticipants {
		c, err := SetRiskCommand(market.ParticipantID(65535-i), AllInstruments, Limits{})
		mustApply(t, s, c, err)
	}
	c, err := SetRiskCommand(65535, AllInstruments, Limits{MaxQty: 5})
	mustApply(t, s, c, err)
	if l, ok := s.Limits(65535, 3); !ok || l.MaxQty != 5 {
		t.Errorf("limits of a known participant: %+v %v", l, ok)
	}
	roundTrip(t, s)
}

func TestEpochLimit(t *testing.T) {
	s := NewState(StateOptions{})
	s.epoch = MaxEpoch - 1
	if e := applyTo(s, Command{Kind: StartEpoch, Arg: MaxEpoch}); e[0].Kind != event.EpochStarted || s.Epoch() != MaxEpoch {
		t.Errorf("the last epoch: %+v", e)
	}
	if e := applyTo(s, Command{Kind: StartEpoch, Arg: MaxEpoch + 1}); e[0].Kind != event.Rejected || s.Epoch() != MaxEpoch {
		t.Errorf("one beyond: %+v", e)
	}
}

func TestReaders(t *testing.T) {
	s := NewState(StateOptions{})
	if s.NextExpiry() != 0 || s.Status(0) != 0 || s.LastTrade(0) != 0 || s.ParticipantStatus(1) != 0 || len(s.Instruments()) != 0 {
		t.Error("an empty state shows something")
	}
	if _, ok := s.Limits(1, 0); ok {
		t.Error("limits of nobody")
	}
	in := testInstrument(0)
	c, err := DefineInstrumentCommand(&in)
	mustApply(t, s, c, err)
	limits := Limits{MaxQty: 100, MaxNotional: market.Uint128{Hi: 1, Lo: 2}, MaxOpenOrders: 3, BandBps: 4}
	c, err = SetRiskCommand(1, AllInstruments, limits)
	mustApply(t, s, c, err)
	for _, id := range []market.InstrumentID{0, 7, AllInstruments} {
		if l, ok := s.Limits(1, id); !ok || l != limits {
			t.Errorf("limits on %d: %+v", id, l)
		}
	}
	gtd := testOrder(1, 1)
	gtd.Order.TIF, gtd.Order.ExpireAt, gtd.At = 4, 900, 500
	mustApply(t, s, gtd, nil)
	if s.NextExpiry() != 900 || s.At() != 500 || s.Status(0) != StatusTrading || s.ParticipantStatus(1) != StatusLive {
		t.Errorf("next expiry %d, at %d, status %d, %d", s.NextExpiry(), s.At(), s.Status(0), s.ParticipantStatus(1))
	}
	taker := testOrder(2, 1)
	taker.Order.Side, taker.Order.TIF, taker.Order.Participant = market.Sell, 2, 2
	c, err = SetRiskCommand(2, AllInstruments, Limits{})
	mustApply(t, s, c, err)
	taker.Order.Qty = 4
	mustApply(t, s, taker, nil)
	if s.LastTrade(0) != 100 {
		t.Errorf("last trade %d", s.LastTrade(0))
	}
	mustApply(t, s, Command{Kind: Tick, At: 900}, nil)
	if s.NextExpiry() != 0 {
		t.Errorf("next expiry %d after the only one", s.NextExpiry())
	}
}

func TestNewStateRefusesOptions(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	NewState(StateOptions{MaxOrders: -1})
}

// TestPrefetchChangesNothing: prefetching any command, also one that Apply refuses, leaves
// the state as it is.
func TestPrefetchChangesNothing(t *testing.T) {
	for _, naive := range []bool{false, true} {
		s, sink := NewState(StateOptions{Naive: naive}), event.NewGrowingSink(64)
		commands := append(head(), benchFlow(3_000)...)
		for i := range commands {
			c := &commands[i]
			c.Seq = uint64(i + 1)
			s.Prefetch(c)
			s.Apply(c, sink)
		}
		before := s.Hash()
		for _, in := range []market.InstrumentID{0, 1, AllInstruments} {
			for _, id := range []market.OrderID{0, 1, 2_000, math.MaxUint64} {
				s.Prefetch(&Command{Kind: CancelOrder, Instrument: in, Order: book.Order{ID: id}})
			}
		}
		if s.Hash() != before {
			t.Errorf("naive %v: the hash has changed", naive)
		}
	}
}
