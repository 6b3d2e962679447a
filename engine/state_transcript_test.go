package engine

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// TestTranscripts runs testdata/state: a line is a command, its events follow. Each file
// starts from nothing and runs on both books, which must answer the same.
//
//	verb [id] [key=value | word]...
//
// at=N sets the clock from that command on. A desk request is written "desk" and its kind:
// see deskRequest. With pieces=I,J only those pieces of a request or refresh are sent.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/state", func(t *testing.T, path string) {
		fast, slow := newScript(false), newScript(true)
		slow.saves = true
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "run" {
				d.Fatalf(t, "unknown directive %q", d.Cmd)
			}
			answer := fast.run(t, d.Input)
			if again := slow.run(t, d.Input); again != answer {
				d.Fatalf(t, "ladder:\n%s\nnaive:\n%s", answer, again)
			}
			if fast.state.Hash() != slow.state.Hash() {
				d.Fatalf(t, "the books' hashes differ")
			}
			fast.state = roundTrip(t, fast.state)
			return answer
		})
	})
}

type script struct {
	state *State
	out   *event.Sink
	at    int64
	// saves makes the state go through its snapshot after every command.
	saves bool
}

func newScript(naive bool) *script {
	return &script{state: NewState(StateOptions{Naive: naive, MaxOrders: 100}), out: event.NewGrowingSink(8)}
}

func roundTrip(t *testing.T, s *State) *State {
	t.Helper()
	again, err := RestoreState(s.AppendSnapshot(nil), StateOptions{Naive: s.naive, MaxOrders: s.maxOrders})
	if err != nil {
		t.Fatal(err)
	}
	return again
}

func (s *script) run(t *testing.T, input string) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(input) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		commands, err := s.parse(line)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		fmt.Fprintf(&b, "%s\n", line)
		for i := range commands {
			c := &commands[i]
			c.Seq, c.At = s.state.Seq()+1, s.at
			s.out.Reset()
			s.state.Apply(c, s.out)
			describeAll(&b, s.out.Events())
			if s.saves {
				s.state = roundTrip(t, s.state)
			}
		}
	}
	return b.String()
}

// parse parses one line of a transcript.
func (s *script) parse(line string) ([]Command, error) {
	words := strings.Fields(line)
	a := arguments{}
	for _, w := range words[1:] {
		key, value, found := strings.Cut(w, "=")
		if !found {
			value = "true"
		}
		a[key] = value
	}
	if at, ok := a["at"]; ok {
		n, err := strconv.ParseInt(at, 10, 64)
		if err != nil {
			return nil, err
		}
		s.at = n
	}
	switch words[0] {
	case "desk":
		return a.deskCommands(words[1])
	case "refresh":
		return a.refresh()
	case "quote":
		return a.quotes()
	case "list", "cancel-list":
		return a.list(words[0] == "cancel-list")
	}
	c, err := a.command(words[0])
	return []Command{c}, err
}

func (a arguments) command(verb string) (Command, error) {
	c := Command{Instrument: market.InstrumentID(a.number("in", 0)), Origin: uint16(a.number("session", 0))}
	if a["in"] == "all" {
		c.Instrument = AllInstruments
	}
	a.order(&c.Order)
	if ref := a["ref"]; ref != "" {
		c.SetRef([]byte(ref))
	}
	switch verb {
	case "new":
		c.Kind = NewOrder
	case "amend":
		c.Kind = AmendOrder
	case "cancel":
		c.Kind = CancelOrder
	case "mass-cancel":
		c.Kind = MassCancel
	case "tick":
		c.Kind = Tick
	case "halt":
		c.Kind, c.Status = SetInstrument, StatusHalted
	case "resume":
		c.Kind, c.Status = SetInstrument, StatusTrading
	case "auction":
		c.Kind, c.Status, c.Arg = SetInstrument, StatusAuction, uint64(a.number("for", 0))
	case "auctions":
		return SetAuctionsCommand(c.Instrument, AuctionRules{
			BandBps: uint16(a.number("band", 0)), Call: time.Duration(a.number("call", 0)),
			Opening: time.Duration(a.number("opening", 0)), Reference: market.Price(a.number("reference", 0)),
		})
	case "kill":
		c.Kind, c.Status = SetParticipant, StatusKilled
	case "revive":
		c.Kind, c.Status = SetParticipant, StatusLive
	case "epoch":
		c.Kind, c.Arg = StartEpoch, uint64(a.number("n", 0))
		c.Order = book.Order{Qty: market.Qty(a.number("max-orders", 0))}
	case "define":
		return a.definition(c.Instrument)
	case "risk":
		return SetRiskCommand(c.Order.Participant, c.Instrument, Limits{
			MaxQty: market.Qty(a.number("qty", 0)), MaxNotional: market.Uint128{Lo: uint64(a.number("notional", 0))},
			MaxOpenOrders: int32(a.number("open", 0)), BandBps: uint16(a.number("band", 0)),
		})
	case "trade":
		return MirrorTradeCommand(&MirrorSwap{
			Instrument: c.Instrument, Ordinal: uint64(a.number("ordinal", 0)), Price: c.Order.Price, Qty: c.Order.Qty,
			Side: c.Order.Side, At: a.number("block", 0), Slot: uint64(a.number("slot", 0)),
		})
	case "raw":
		c.Kind, c.Status = Kind(a.number("kind", 0)), uint8(a.number("status", 0))
	default:
		return Command{}, fmt.Errorf("unknown verb")
	}
	return c, nil
}

type arguments map[string]string

func (a arguments) number(key string, otherwise int64) int64 {
	n, err := strconv.ParseInt(a[key], 10, 64)
	if err != nil {
		return otherwise
	}
	return n
}

func (a arguments) order(o *book.Order) {
	o.ID = market.OrderID(a.number("id", 0))
	o.Participant = market.ParticipantID(a.number("who", 0))
	o.Price, o.Stop = market.Price(a.number("price", 0)), market.Price(a.number("stop", 0))
	o.Qty, o.Display = market.Qty(a.number("qty", 0)), market.Qty(a.number("display", 0))
	o.ExpireAt = a.number("expire", 0)
	o.Side = map[string]market.Side{"buy": market.Buy, "sell": market.Sell, "sideways": 7}[a["side"]]
	o.STP = book.STPCancelNewest
	o.Type, o.TIF = book.Limit, book.GTC
	if name, ok := a["type"]; ok {
		o.Type = map[string]book.Type{"limit": book.Limit, "market": book.Market, "stop": book.Stop, "stop-limit": book.StopLimit}[name]
	}
	if name, ok := a["tif"]; ok {
		o.TIF = map[string]book.TIF{"gtc": book.GTC, "ioc": book.IOC, "fok": book.FOK, "gtd": book.GTD, "day": book.Day}[name]
	}
	if _, ok := a["stp"]; ok {
		o.STP = book.STP(a.number("stp", 0))
	}
	if a["post-only"] != "" {
		o.Flags |= book.FlagPostOnly
	}
	if a["of-open"] != "" {
		o.Flags |= book.FlagOpenQty
	}
	if a["terms"] != "" { // of an amend: only what the line has
		o.Flags |= book.FlagAmendTerms
		if _, ok := a["tif"]; !ok {
			o.TIF = 0
		}
	}
}

func (a arguments) definition(id market.InstrumentID) (Command, error) {
	base, quote, _ := strings.Cut(a["symbol"], "/")
	in := market.Instrument{
		ID: id, Symbol: a["symbol"], Base: base, Quote: quote, PriceDecimals: uint8(a.number("price-decimals", 2)), QtyDecimals: 3,
		Tick: uint64(a.number("tick", 1)), Lot: uint64(a.number("lot", 1)), MinQty: market.Qty(a.number("min", 1)),
		MaxQty: market.Qty(a.number("max", 1000)), MaxPrice: market.Price(a.number("max-price", 10_000)), Source: market.Matched,
	}
	if a["mirrored"] != "" {
		in.Source = market.Mirrored
	}
	return DefineInstrumentCommand(&in)
}

var kindWords = map[event.Kind]string{
	event.Accepted: "accepted", event.Rejected: "rejected", event.Traded: "traded", event.Rested: "rested",
	event.Cancelled: "cancelled", event.Reduced: "reduced", event.Unrested: "unrested", event.Amended: "amended",
	event.AmendRejected: "amend-rejected", event.CancelRejected: "cancel-rejected", event.Replenished: "replenished",
	event.Triggered: "triggered", event.MassCancelled: "mass-cancelled", event.InstrumentSet: "instrument-set",
	event.ParticipantSet: "participant-set", event.EpochStarted: "epoch-started",
	event.Quoted: "quoted", event.QuoteRejected: "quote-rejected", event.MassQuoted: "mass-quoted", event.Terms: "terms",
	event.Listed:        "listed",
	event.AuctionTraded: "auction-traded", event.Auction: "auction",
	event.MirrorLevel: "mirror-level", event.Mirrored: "mirrored", event.MirrorTraded: "mirror-traded",
}

// describeAll prints the events of one command, a line each; those of the desk as records.
func describeAll(b *strings.Builder, events []event.Event) {
	var desk rfq.Reader
	for i := range events {
		e := &events[i]
		if e.Kind != event.Desk {
			fmt.Fprintf(b, "  %s\n", describe(e))
		} else if record, seq, ok := desk.Add(e); ok {
			fmt.Fprintf(b, "  #%d desk %s\n", seq, describeRecord(record))
		}
	}
}

// describe prints an event: its kind, then its nonzero fields.
func describe(e *event.Event) string {
	if ref, ok := e.Reference(); ok {
		return fmt.Sprintf("#%d reference id=%d in=%d who=%d session=%d %q", e.Seq, ref.OrderID, ref.Instrument, ref.Participant, ref.Origin, ref.Text)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "#%d %s", e.Seq, kindWords[e.Kind])
	part := func(name string, n int64) {
		if n != 0 {
			fmt.Fprintf(&b, " %s=%d", name, n)
		}
	}
	part("id", int64(e.OrderID))
	part("other", int64(e.Other))
	if e.Side.Valid() {
		fmt.Fprintf(&b, " %v", e.Side)
	}
	part("qty", int64(e.Qty))
	part("price", int64(e.Price))
	part("aux", e.Aux)
	part("who", int64(e.Participant))
	if e.Instrument == AllInstruments {
		b.WriteString(" in=all")
	} else {
		part("in", int64(e.Instrument))
	}
	switch e.Kind {
	case event.Rejected, event.AmendRejected, event.CancelRejected, event.Cancelled, event.Reduced, event.QuoteRejected:
		fmt.Fprintf(&b, " %v", event.Reason(e.Code))
	case event.AuctionTraded:
		part("older-who", int64(e.Code))
	case event.Auction:
		part("uncrossing", int64(e.Code))
	case event.Traded:
		part("maker-who", int64(e.Code))
	case event.MassQuoted:
		part("cancels", int64(e.Code))
	case event.MassCancelled:
		part("more", int64(e.Code))
	case event.Listed:
		fmt.Fprintf(&b, " %v", event.Reason(e.Code))
	case event.InstrumentSet, event.ParticipantSet:
		part("status", int64(e.Code))
	}
	return b.String()
}
