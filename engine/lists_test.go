package engine

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/engine/lists"
	"blockdesk/internal/runtest"
	"blockdesk/market"
)

// list makes the commands of a transcript's line
//
//	list who=1 session=2 id=FIRST ref=x [oN=IN:SIDE:QTY:PRICE[:WORD]...]...
//	cancel-list who=1 session=2 ref=x [more] [on=IN] [side=SIDE] [cN=IN:ID]...
//
// A word is post, ioc, fok, gtd, market, stop@PRICE, display@QTY, min@QTY or terms.
func (a arguments) list(cancel bool) ([]Command, error) {
	l := lists.List{Ref: []byte(a["ref"]), Cancel: cancel, More: a["more"] != "", FirstID: market.OrderID(a.number("id", 0))}
	if cancel {
		l.On = market.InstrumentID(a.number("on", int64(AllInstruments)))
		l.Side = map[string]market.Side{"buy": market.Buy, "sell": market.Sell}[a["side"]]
		for i := 1; a[fmt.Sprint("c", i)] != ""; i++ {
			var e lists.Entry
			if _, err := fmt.Sscanf(a[fmt.Sprint("c", i)], "%d:%d", &e.Instrument, &e.Order.ID); err != nil {
				return nil, err
			}
			l.Entries = append(l.Entries, e)
		}
	}
	for i := 1; a[fmt.Sprint("o", i)] != ""; i++ {
		e, err := listedOrder(a[fmt.Sprint("o", i)])
		if err != nil {
			return nil, err
		}
		e.Order.ID, e.Ref = l.FirstID+market.OrderID(i-1), fmt.Appendf(nil, "%s-%d", l.Ref, i)
		l.Entries = append(l.Entries, e)
	}
	cs, err := ListCommands(nil, &l)
	if err != nil {
		return nil, err
	}
	last := &cs[len(cs)-1]
	last.Order.Participant, last.Origin = market.ParticipantID(a.number("who", 0)), uint16(a.number("session", 0))
	return cs, nil
}

func listedOrder(text string) (e lists.Entry, err error) {
	words := strings.Split(text, ":")
	o := &e.Order
	*o = book.Order{Type: book.Limit, TIF: book.GTC, STP: book.STPCancelNewest}
	var side string
	if _, err = fmt.Sscan(strings.Join(words[:4], " "), &e.Instrument, &side, &o.Qty, &o.Price); err != nil {
		return e, fmt.Errorf("%q: %w", text, err)
	}
	o.Side = map[string]market.Side{"buy": market.Buy, "sell": market.Sell}[side]
	for _, word := range words[4:] {
		name, value, _ := strings.Cut(word, "@")
		var n int64
		if value != "" {
			if _, err = fmt.Sscan(value, &n); err != nil {
				return e, fmt.Errorf("%q: %w", text, err)
			}
		}
		switch name {
		case "post":
			o.Flags |= book.FlagPostOnly
		case "ioc":
			o.TIF = book.IOC
		case "fok":
			o.TIF = book.FOK
		case "market":
			o.Type, o.TIF = book.Market, book.IOC
		case "stop":
			o.Type, o.Stop = book.StopLimit, market.Price(n)
		case "display":
			o.Display = market.Qty(n)
		case "min":
			o.Flags, o.Display = o.Flags|book.FlagMinQty, market.Qty(n)
		case "terms":
			o.Flags, e.Arg = o.Flags|book.FlagTerms, 9
		default:
			return e, fmt.Errorf("%q: word %q", text, word)
		}
	}
	return e, nil
}

// TestListGolden pins the bytes of a list, which are in journals.
func TestListGolden(t *testing.T) {
	orders := lists.List{Ref: []byte("list-1"), FirstID: 77, Entries: []lists.Entry{{
		Order: book.Order{ID: 77, Price: 1, Stop: 2, Qty: 3, Display: 4, ExpireAt: 5, Side: market.Sell, Type: book.StopLimit, TIF: book.GTD, Flags: book.FlagTerms, STP: book.STPDecrement},
		Arg:   6, Instrument: 7, Ref: []byte("o"),
	}}}
	cancels := lists.List{
		Ref: []byte("q"), Cancel: true, More: true, On: AllInstruments, Side: market.Buy,
		Entries: []lists.Entry{{Order: book.Order{ID: 8}, Instrument: 9}},
	}
	for _, c := range []struct {
		list *lists.List
		want string
	}{
		{&orders, "01000100" + "0006" + "0000" + "4d00000000000000" + "6c6973742d31" + "0100000000000000" + "0200000000000000" + "0300000000000000" +
			"0400000000000000" + "0500000000000000" + "0600000000000000" + "0700" + "020404080401" + "6f"},
		{&cancels, "01030100" + "0101" + "ffff" + "0000000000000000" + "71" + "0800000000000000" + "0900"},
	} {
		data := c.list.Append(nil)
		if got := hex.EncodeToString(data); got != c.want {
			t.Errorf("%s\nwant %s", got, c.want)
		}
		if again, err := lists.Decode(data, nil); err != nil || !reflect.DeepEqual(&again, c.list) {
			t.Errorf("%+v, %v\nwant %+v", again, err, c.list)
		}
		for n := range data {
			if _, err := lists.Decode(data[:n], nil); !errors.Is(err, lists.ErrInvalid) {
				t.Errorf("%d bytes: %v", n, err)
			}
		}
		if _, err := lists.Decode(append(data, 0), nil); !errors.Is(err, lists.ErrInvalid) {
			t.Errorf("a byte more: %v", err)
		}
	}
}

// TestListLimits: the largest lists have commands, one entry more has none.
func TestListLimits(t *testing.T) {
	full := func(cancel bool, n int) *lists.List {
		l := &lists.List{Ref: []byte(strings.Repeat("x", MaxRef)), Cancel: cancel}
		if !cancel {
			l.FirstID = 1
		}
		for i := range n {
			e := lists.Entry{Order: book.Order{ID: market.OrderID(i + 1)}}
			if !cancel {
				e.Ref = []byte(strings.Repeat("y", MaxRef))
			}
			l.Entries = append(l.Entries, e)
		}
		return l
	}
	for _, c := range []struct {
		cancel bool
		most   int
	}{{false, lists.MaxOrders}, {true, lists.MaxCancels}} {
		if cs, err := ListCommands(nil, full(c.cancel, c.most)); err != nil || len(cs) > MaxPieces {
			t.Errorf("%d entries: %d commands: %v", c.most, len(cs), err)
		}
		if _, err := ListCommands(nil, full(c.cancel, c.most+1)); !errors.Is(err, lists.ErrInvalid) {
			t.Errorf("%d entries: %v", c.most+1, err)
		}
	}
	for name, change := range map[string]func(*lists.List){
		"no orders":     func(l *lists.List) { l.Entries = nil },
		"no ids":        func(l *lists.List) { l.FirstID = 0 },
		"a long id":     func(l *lists.List) { l.Ref = append(l.Ref, 'x') },
		"no ClOrdID":    func(l *lists.List) { l.Entries[1].Ref = nil },
		"another id":    func(l *lists.List) { l.Entries[1].Order.ID++ },
		"a participant": func(l *lists.List) { l.Entries[1].Order.Participant = 1 },
		"more of it":    func(l *lists.List) { l.More = true },
	} {
		l := full(false, 3)
		change(l)
		if _, err := ListCommands(nil, l); !errors.Is(err, lists.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

const listHead = "define in=0 symbol=A/USD max=1000\ndefine in=1 symbol=B/USD max=1000\nepoch n=1 max-orders=40\n" +
	"risk who=1 in=all open=12 qty=300\nrisk who=2 in=all\nrisk who=3 in=all band=2000"

// TestListsAgree: random lists between random orders give the same events and state on both
// books. Each is whole: all its orders are accepted, or all are rejected and no book changes.
func TestListsAgree(t *testing.T) {
	seed := runtest.Seed(t)
	accepted, refused, ended := 0, 0, 0
	for round := range uint64(4) {
		fast, slow := newScript(false), newScript(true)
		fast.run(t, listHead)
		slow.run(t, listHead)
		rng := rand.New(rand.NewPCG(seed, round))
		for i := range 2000 {
			line := listLine(rng, i)
			before := booksOf(fast.state)
			a, b := fast.run(t, line), slow.run(t, line)
			if a != b || fast.state.Hash() != slow.state.Hash() {
				t.Fatalf("round %d: ladder:\n%s\nnaive:\n%s", round, a, b)
			}
			if !strings.HasPrefix(line, "list") {
				continue
			}
			whole := checkWhole(t, line, fast.out.Events())
			if whole {
				accepted++
			} else {
				refused++
				if after := booksOf(fast.state); after != before {
					t.Fatalf("%s\na refused list has changed the books:\n%s\n%s", line, before, after)
				}
			}
			for _, e := range fast.out.Events() {
				if e.Kind == event.Cancelled && (event.Reason(e.Code) == event.ReasonPostOnly || event.Reason(e.Code) == event.ReasonFOK) {
					ended++
				}
			}
		}
	}
	t.Logf("%d lists accepted, %d refused, %d orders ended by the orders before them", accepted, refused, ended)
	if accepted == 0 || refused == 0 || ended == 0 {
		t.Error("the scripts did not meet every case")
	}
}

// checkWhole checks that the events accept all orders of a list or none, and returns which.
func checkWhole(t *testing.T, line string, events []event.Event) bool {
	t.Helper()
	n, accepted, rejected := strings.Count(line, " o"), 0, 0
	done := events[len(events)-1]
	for i := range events {
		e := &events[i]
		switch own := e.OrderID >= done.OrderID && e.OrderID < done.OrderID+market.OrderID(n); {
		case e.Kind == event.Accepted && own:
			accepted++
		case e.Kind == event.Rejected && own:
			rejected++
		}
	}
	if done.Kind != event.Listed || int(done.Qty) != n || accepted+rejected != n || accepted*rejected != 0 || (done.Code == 0) != (accepted == n) {
		t.Fatalf("%s\n%d orders: %d accepted, %d rejected, %+v", line, n, accepted, rejected, done)
	}
	return accepted == n
}

func booksOf(s *State) string {
	var text strings.Builder
	for in := range market.InstrumentID(2) {
		s.Orders(in, func(r book.LiveOrder) { fmt.Fprintf(&text, "%+v\n", r) })
	}
	return text.String()
}

// listLine returns a line of a random script.
func listLine(rng *rand.Rand, i int) string {
	participant, id := 1+rng.IntN(3), 1000*(i+1)
	order := func() string {
		text := fmt.Sprintf("%d:%s:%d:%d", rng.IntN(2), [...]string{"buy", "sell"}[rng.IntN(2)], 1+rng.IntN(20), 95+rng.IntN(10))
		switch rng.IntN(12) {
		case 0, 1:
			text += ":post"
		case 2:
			text += ":ioc:terms"
		case 3, 4:
			text += ":fok"
		case 5:
			text += fmt.Sprintf(":stop@%d", 95+rng.IntN(10))
		case 6:
			text += ":display@1"
		case 7:
			text += ":ioc:min@1"
		}
		return text
	}
	switch roll := rng.IntN(10); {
	case roll < 3:
		return fmt.Sprintf("new id=%d who=%d side=%s qty=%d price=%d in=%d", id, participant, [...]string{"buy", "sell"}[rng.IntN(2)], 1+rng.IntN(20), 95+rng.IntN(10), rng.IntN(2))
	case roll < 4:
		return fmt.Sprintf("mass-cancel who=%d in=%d", participant, rng.IntN(2))
	case roll < 5:
		line := fmt.Sprintf("cancel-list who=%d session=1 ref=q%d", participant, i)
		for n := range rng.IntN(5) {
			line += fmt.Sprintf(" c%d=%d:%d", n+1, rng.IntN(2), 1000*max(0, i-rng.IntN(10))+rng.IntN(3))
		}
		return line
	}
	line := fmt.Sprintf("list who=%d session=1 id=%d ref=l%d", participant, id, i)
	for n := range 1 + rng.IntN(6) {
		line += fmt.Sprintf(" o%d=%s", n+1, order())
	}
	return line
}

// TestListAfterCrash: wherever a crash cuts the journal between the pieces of a list, the next
// start has no order of it; with all pieces it has all.
func TestListAfterCrash(t *testing.T) {
	a := arguments{"who": "2", "session": "1", "id": "100", "ref": "list"}
	for i := range lists.MaxOrders {
		a[fmt.Sprint("o", i+1)] = fmt.Sprintf("0:buy:5:%d", 50+i)
	}
	cs, err := a.list(false)
	if err != nil {
		t.Fatal(err)
	}
	for kept := range len(cs) + 1 {
		s := newScript(false)
		s.run(t, listHead)
		apply := func(c Command) {
			c.Seq, c.At = s.state.Seq()+1, 1
			s.state.Apply(&c, s.out)
		}
		for _, c := range cs[:kept] {
			apply(c)
		}
		apply(Command{Kind: StartEpoch, Arg: 2})
		n := 0
		s.state.Orders(0, func(book.LiveOrder) { n++ })
		if want := map[bool]int{true: lists.MaxOrders}[kept == len(cs)]; n != want {
			t.Errorf("%d of %d pieces: %d orders, want %d", kept, len(cs), n, want)
		}
	}
}
