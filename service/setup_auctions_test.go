package service

import (
	"slices"
	"testing"
	"time"

	"blockdesk/engine"
	"blockdesk/engine/event"
	"blockdesk/service/config"
)

// TestConfigureAuctions: a new instrument with opening_call_s begins in its opening auction, by
// its configured times and reference; a later start with the same configuration begins none, and
// a changed one sets the rules alone.
func TestConfigureAuctions(t *testing.T) {
	t.Parallel()
	c := &config.Config{Instruments: []config.Instrument{
		{Symbol: "A/USD", PriceDecimals: 2, QtyDecimals: 2, Tick: "0.01", Lot: "0.01", MinQty: "0.01", MaxQty: "1000", MaxPrice: "1000", BookSource: "matched"},
		{
			Symbol: "B/USD", PriceDecimals: 2, QtyDecimals: 2, Tick: "0.01", Lot: "0.01", MinQty: "0.01", MaxQty: "1000", MaxPrice: "1000", BookSource: "matched",
			OpeningCallS: 60, VolatilityBps: 300, VolatilityCallS: 20, ReferencePrice: "1.50",
		},
	}}
	state, out := engine.NewState(engine.StateOptions{}), event.NewGrowingSink(8)
	start := func() (kinds []engine.Kind) {
		t.Helper()
		instruments, err := c.MarketInstruments()
		if err != nil {
			t.Fatal(err)
		}
		commands, err := configure(c, state, instruments, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range commands {
			commands[i].Seq, commands[i].At = state.Seq()+1, int64(time.Second)
			state.Apply(&commands[i], out)
			kinds = append(kinds, commands[i].Kind)
		}
		return kinds
	}
	if got, want := start(), []engine.Kind{engine.DefineInstrument, engine.DefineInstrument, engine.SetAuctions, engine.SetInstrument}; !slices.Equal(got, want) {
		t.Errorf("the first start sends kinds %v, want %v", got, want)
	}
	ends := map[int]int64{}
	for _, e := range out.Events() {
		if e.Kind == event.Auction {
			ends[int(e.Instrument)] = int64(e.Other)
		}
	}
	if len(ends) != 1 || ends[1] != int64(61*time.Second) {
		t.Errorf("auctions end at %v, want that of instrument 1 at 61 s", ends)
	}
	want := engine.AuctionRules{BandBps: 300, Call: 20 * time.Second, Opening: time.Minute, Reference: 150}
	if got := state.AuctionRules(1); got != want {
		t.Errorf("rules %+v, want %+v", got, want)
	}
	if got := start(); len(got) != 0 {
		t.Errorf("a second start sends kinds %v", got)
	}
	c.Instruments[0].OpeningCallS, c.Instruments[1].OpeningCallS = 5, 0
	if got, want := start(), []engine.Kind{engine.SetAuctions, engine.SetAuctions}; !slices.Equal(got, want) {
		t.Errorf("a changed configuration sends kinds %v, want %v", got, want)
	}
}

// TestAuctionKeysAreChecked: each wrong combination is refused with the instrument's name.
func TestAuctionKeysAreChecked(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*config.Instrument){
		"a band without a call":     func(in *config.Instrument) { in.VolatilityBps = 100 },
		"a call without a band":     func(in *config.Instrument) { in.VolatilityCallS = 100 },
		"a reference off the tick":  func(in *config.Instrument) { in.ReferencePrice = "1.005" },
		"an opening on a mirror":    func(in *config.Instrument) { in.OpeningCallS, in.BookSource = 1, "mirrored" },
		"a reference on no decimal": func(in *config.Instrument) { in.ReferencePrice = "x" },
	} {
		in := config.Instrument{Symbol: "A/USD", PriceDecimals: 2, QtyDecimals: 2, Tick: "0.01", Lot: "0.01", MinQty: "0.01", MaxQty: "1000", MaxPrice: "1000", BookSource: "matched"}
		change(&in)
		c := &config.Config{Instruments: []config.Instrument{in}}
		instruments, err := c.MarketInstruments()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := c.AuctionRules(instruments); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
