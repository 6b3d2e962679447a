package engine

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/engine/quotes"
	"blockdesk/market"
)

// quotes makes the commands of a transcript's line
//
//	quote who=1 session=2 id=FIRST ref=x [fills=N window=NS] [reset] [cancel | cancel-all] [eN=SET:NUMBER:IN:BID:QTY:ASK:QTY:MAX]...
func (a arguments) quotes() ([]Command, error) {
	q := quotes.Mass{
		Ref: []byte(a["ref"]), STP: book.STP(a.number("stp", 1)), Response: 2, FirstID: market.OrderID(a.number("id", 0)),
		CancelAll: a["cancel-all"] != "", Cancel: a["cancel"] != "", Reset: a["reset"] != "", Protect: a["window"] != "",
		MaxFills: uint32(a.number("fills", 0)), Window: a.number("window", 0),
	}
	for i := 1; a[fmt.Sprint("e", i)] != ""; i++ {
		var e quotes.Entry
		text := strings.ReplaceAll(a[fmt.Sprint("e", i)], ":", " ")
		if n, err := fmt.Sscan(text, &e.Set, &e.Number, &e.Instrument, &e.BidPrice, &e.BidQty, &e.AskPrice, &e.AskQty, &e.MaxQty); n < 7 {
			return nil, fmt.Errorf("%q: %w", text, err)
		}
		q.Entries = append(q.Entries, e)
	}
	cs, err := MassQuoteCommands(nil, &q)
	if err != nil {
		return nil, err
	}
	last := &cs[len(cs)-1]
	last.Order.Participant, last.Origin = market.ParticipantID(a.number("who", 0)), uint16(a.number("session", 0))
	return cs, nil
}

// TestMassQuoteGolden pins the bytes of a mass quote, which are in journals.
func TestMassQuoteGolden(t *testing.T) {
	q := quotes.Mass{
		Ref: []byte("quote-1"), STP: book.STPCancelOldest, Response: 2, Reset: true, Protect: true, MaxFills: 3, Window: int64(time.Second), FirstID: 77,
		Entries: []quotes.Entry{{Set: 1, Number: 2, Instrument: 3, BidPrice: 4, AskPrice: 5, BidQty: 6, AskQty: 7, MaxQty: 8}},
	}
	const want = "010c01000202070" + "04d0000000000000003000000" + "00ca9a3b00000000" + "0000000000000000" + "71756f74652d31" +
		"0100020003000000" + "0400000000000000" + "0500000000000000" + "0600000000000000" + "0700000000000000" + "0800000000000000"
	if got := hex.EncodeToString(q.Append(nil)); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	again, err := quotes.Decode(q.Append(nil), nil)
	if err != nil || fmt.Sprintf("%+v", again) != fmt.Sprintf("%+v", q) {
		t.Errorf("%+v, %v", again, err)
	}
	data := q.Append(nil)
	for n := range data {
		if _, err := quotes.Decode(data[:n], nil); !errors.Is(err, quotes.ErrInvalid) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// TestMassQuoteLimits: the largest mass quote has commands, one entry more has none.
func TestMassQuoteLimits(t *testing.T) {
	q := quotes.Mass{STP: book.STPCancelNewest, FirstID: 1, Ref: []byte(strings.Repeat("x", MaxRef))}
	for i := range quotes.MaxEntries {
		q.Entries = append(q.Entries, quotes.Entry{Set: 1, Instrument: market.InstrumentID(i), BidPrice: 1, BidQty: 1})
	}
	if cs, err := MassQuoteCommands(nil, &q); err != nil || len(cs) > MaxPieces {
		t.Errorf("%d commands: %v", len(cs), err)
	}
	for name, change := range map[string]func(*quotes.Mass){
		"an entry more":        func(q *quotes.Mass) { q.Entries = append(q.Entries, q.Entries[0]) },
		"no entries":           func(q *quotes.Mass) { q.Entries = nil },
		"no ids":               func(q *quotes.Mass) { q.FirstID = 0 },
		"a long id":            func(q *quotes.Mass) { q.Ref = append(q.Ref, 'x') },
		"a long window":        func(q *quotes.Mass) { q.Window = quotes.MaxWindow + 1 },
		"no self-trade mode":   func(q *quotes.Mass) { q.STP = 0 },
		"a price without size": func(q *quotes.Mass) { q.Entries[0].BidQty = 0 },
		"set 0":                func(q *quotes.Mass) { q.Entries[0].Set = 0 },
	} {
		bad := q
		bad.Entries = append([]quotes.Entry(nil), q.Entries...)
		change(&bad)
		if _, err := MassQuoteCommands(nil, &bad); !errors.Is(err, quotes.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestQuotesAgree: random mass quotes between random orders give the same events and the same
// state on both books, also through snapshots, and a quote protection is never exceeded by
// more than the command that reached it.
func TestQuotesAgree(t *testing.T) {
	for seed := range uint64(6) {
		fast, slow := newScript(false), newScript(true)
		const head = "define in=0 symbol=A/USD max=1000\ndefine in=1 symbol=B/USD max=1000\n" +
			"risk who=1 in=all open=30 qty=300\nrisk who=2 in=all\nrisk who=3 in=all"
		fast.run(t, head)
		slow.run(t, head)
		rng := rand.New(rand.NewPCG(seed, 3))
		kinds, pulls := map[event.Kind]int{}, 0
		for i := range 4000 {
			line := quoteLine(rng, i)
			a, b := fast.run(t, line), slow.run(t, line)
			if a != b {
				t.Fatalf("seed %d: ladder:\n%s\nnaive:\n%s", seed, a, b)
			}
			for _, e := range fast.out.Events() {
				kinds[e.Kind]++
				if e.Kind == event.Cancelled && event.Reason(e.Code) == event.ReasonQuoteProtection {
					pulls++
				}
			}
			if i%97 == 0 {
				if fast.state.Hash() != slow.state.Hash() {
					t.Fatalf("seed %d, line %d: the hashes differ", seed, i)
				}
				fast.state = roundTrip(t, fast.state)
			}
			checkQuoteOrders(t, fast.state)
		}
		if kinds[event.QuoteRejected] < 50 || kinds[event.Traded] < 200 || pulls < 5 {
			t.Errorf("seed %d: %v, %d pulled", seed, kinds, pulls)
		}
	}
}

// checkQuoteOrders: every order with FlagQuote is a side of exactly one quote, with its price
// order kept: the bid below the offer.
func checkQuoteOrders(t *testing.T, s *State) {
	t.Helper()
	owned := map[market.OrderID]bool{}
	for participant := range market.ParticipantID(4) {
		for _, set := range slices.Concat(s.quotes.Of(participant, 1), s.quotes.Of(participant, 2)) {
			for _, e := range set.Quotes {
				for _, id := range e.IDs {
					if _, ok := s.instruments[e.Instrument].book.get(id); ok {
						if owned[id] || set.Pulled {
							t.Fatalf("order %d belongs to two quotes, or to a pulled set", id)
						}
						owned[id] = true
					}
				}
			}
		}
	}
	for in := range s.instruments {
		s.Orders(market.InstrumentID(in), func(o book.LiveOrder) {
			if (o.Flags&book.FlagQuote != 0) != owned[o.ID] {
				t.Fatalf("order %d: flags %d, owned %v", o.ID, o.Flags, owned[o.ID])
			}
		})
	}
}

func quoteLine(rng *rand.Rand, i int) string {
	at, participant := i*10, 1+rng.IntN(3)
	price := func() int { return 90 + rng.IntN(20) }
	switch roll := rng.IntN(20); {
	case roll < 8:
		line := fmt.Sprintf("quote at=%d who=%d session=%d id=%d ref=q%d stp=%d", at, participant, 1+rng.IntN(2), 1_000_000+i*10, i, 1+rng.IntN(4))
		if rng.IntN(3) == 0 {
			line += fmt.Sprintf(" fills=%d window=%d", rng.IntN(4), rng.IntN(500))
		}
		if rng.IntN(3) == 0 {
			line += " reset"
		}
		for n := range 1 + rng.IntN(3) {
			bid := price()
			bidQty, ask, askQty := 1+rng.IntN(20), bid+rng.IntN(6), 1+rng.IntN(20)
			if rng.IntN(6) == 0 {
				bid, bidQty = 0, 0
			}
			if rng.IntN(6) == 0 {
				ask, askQty = 0, 0
			}
			line += fmt.Sprintf(" e%d=%d:%d:%d:%d:%d:%d:%d:%d", n+1, 1+rng.IntN(2), n, rng.IntN(3), bid, bidQty, ask, askQty, rng.IntN(2)*15)
		}
		return line
	case roll == 8:
		return fmt.Sprintf("quote at=%d who=%d session=%d ref=z%d cancel e1=0:1:%d:0:0:0:0:0", at, participant, 1+rng.IntN(2), i, rng.IntN(2))
	case roll == 9:
		return fmt.Sprintf("quote at=%d who=%d session=%d cancel-all", at, participant, 1+rng.IntN(2))
	case roll == 10:
		return fmt.Sprintf("mass-cancel at=%d who=%d in=all", at, participant)
	case roll == 11:
		return fmt.Sprintf("cancel at=%d id=%d who=%d in=%d", at, 1_000_000+rng.IntN(i+1)*10, participant, rng.IntN(2))
	default:
		return fmt.Sprintf("new at=%d id=%d who=%d in=%d side=%s qty=%d price=%d stp=%d tif=%s", at, i+1, participant, rng.IntN(2),
			[]string{"buy", "sell"}[rng.IntN(2)], 1+rng.IntN(30), price(), 1+rng.IntN(4), []string{"gtc", "ioc"}[rng.IntN(2)])
	}
}

// TestMassQuotesDoNotAllocate: neither a mass quote that moves quotes nor an order that
// reaches a protection allocates, once the sets and books have their size.
func TestMassQuotesDoNotAllocate(t *testing.T) {
	s := newScript(false)
	s.run(t, "define in=0 symbol=A/USD\ndefine in=1 symbol=B/USD\nrisk who=1 in=all open=50\nrisk who=2 in=all")
	var round []Command
	for _, line := range []string{
		"quote who=1 session=1 id=10 ref=first fills=1 window=1000 reset e1=1:1:0:100:10:102:10:0 e2=1:2:1:50:5:51:5:0",
		"quote who=1 session=1 id=20 ref=second e1=1:1:0:101:10:103:8:0 e2=1:2:1:50:4:52:5:0",
		"new id=30 who=2 side=sell qty=3 price=101 tif=ioc",
		"quote who=1 session=1 id=40 ref=third reset e1=1:1:0:100:10:102:10:0 e2=1:2:1:50:5:51:5:0",
		"quote who=1 session=1 cancel-all",
	} {
		cs, err := s.parse(line)
		if err != nil {
			t.Fatal(err)
		}
		round = append(round, cs...)
	}
	out := &event.Sink{Buf: make([]event.Event, 256), Limit: 1 << 62}
	seq, at, pulled := s.state.Seq(), int64(0), 0
	runRound := func() {
		for i := range round {
			seq++
			at++
			round[i].Seq, round[i].At = seq, at
			from := out.Pos
			s.state.Apply(&round[i], out)
			for ; from < out.Pos; from++ {
				if event.Reason(out.At(from).Code) == event.ReasonQuoteProtection && out.At(from).Kind == event.Cancelled {
					pulled++
				}
			}
		}
	}
	for range 1000 {
		runRound()
	}
	if allocs := testing.AllocsPerRun(1000, runRound); allocs != 0 {
		t.Errorf("%v allocations in %d commands", allocs, len(round))
	}
	if pulled < 4*2000 {
		t.Errorf("%d quotes pulled: the order does not reach the protection", pulled)
	}
}

// TestQuoteSnapshotGolden pins the bytes of quote sets in a snapshot, and no damage to them
// restores to another state.
func TestQuoteSnapshotGolden(t *testing.T) {
	s := newScript(false)
	s.run(t, "define in=0 symbol=A/USD\ndefine in=1 symbol=B/USD\nrisk who=1 in=all\nrisk who=2 in=all\n"+
		"quote at=1 who=1 session=7 id=10 ref=q1 fills=1 window=1000 e1=1:1:0:99:10:101:10:5 e2=1:2:1:50:5:0:0:8\n"+
		"new at=5 id=1 who=2 side=sell qty=3 price=99 tif=ioc\n"+
		"quote at=6 who=1 session=8 id=20 ref=q2 fills=4 window=500 e1=2:1:0:98:10:102:10:0\n"+
		"new at=7 id=2 who=2 side=sell qty=3 price=98 tif=ioc")
	data := s.state.AppendSnapshot(nil)
	checkGolden(t, data, "testdata/snapshot_v4.hex", len(data)-2-2*32-3*40)
}

// checkGolden compares a snapshot with its golden file. No damage to its bytes from damaged on
// may restore to another state.
func checkGolden(t *testing.T, data []byte, path string, damaged int) {
	t.Helper()
	text := strings.Join(lines(hex.EncodeToString(data), 64), "\n") + "\n"
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("the encoding differs from %s:\n%s", path, text)
	}
	for i := damaged; i < len(data); i++ {
		for _, bit := range []byte{1, 0x80} {
			bad := bytes.Clone(data)
			bad[i] ^= bit
			if again, err := RestoreState(bad, StateOptions{MaxOrders: 100}); err == nil && !bytes.Equal(again.AppendSnapshot(nil), bad) {
				t.Errorf("byte %d: another state is restored", i)
			}
		}
	}
}
