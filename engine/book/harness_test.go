package book_test

import (
	"fmt"
	"slices"
	"strings"

	"blockdesk/engine/book"
	"blockdesk/engine/book/ladder"
	"blockdesk/engine/book/naive"
	"blockdesk/engine/event"
	"blockdesk/market"
)

// orderBook is the method set of package book.
type orderBook interface {
	Submit(o *book.Order, at int64, seq uint64, out *event.Sink)
	Amend(o *book.Order, at int64, seq uint64, out *event.Sink)
	Cancel(id market.OrderID, participant market.ParticipantID, at int64, seq uint64, out *event.Sink)
	MassCancel(participant market.ParticipantID, side market.Side, why event.Reason, at int64, seq uint64, out *event.Sink) int
	CancelFor(id market.OrderID, why event.Reason, at int64, seq uint64, out *event.Sink) bool
	Expire(at int64, seq uint64, out *event.Sink)
	Open(participant market.ParticipantID, side market.Side) int
	EndLater(participant market.ParticipantID, side market.Side, why event.Reason, at int64, seq uint64, out *event.Sink) int
	Sweep(at int64, n int, seq uint64, out *event.Sink) int
	Sweeping() bool
	Check(o *book.Order, more int, at int64, seq uint64, out *event.Sink) (event.Reason, int64)
	TakeOut(id market.OrderID, at int64, seq uint64, out *event.Sink)
	NextExpiry() int64
	OpenOrders(participant market.ParticipantID) int
	OrderCount() int
	Get(id market.OrderID) (book.LiveOrder, bool)
	Best(side market.Side) (market.Price, market.Qty)
	LastTrade() market.Price
	Depth(side market.Side, dst []market.Level) []market.Level
	Export(func(book.LiveOrder))
	Import(book.LiveOrder) error
	SetLastTrade(market.Price)
	Gather(o *book.Order, at int64, seq uint64, out *event.Sink)
	AmendGathered(o *book.Order, at int64, seq uint64, out *event.Sink)
	Gathered(side market.Side) market.Qty
	NextLevel(side market.Side, after market.Price) (market.Price, market.Qty)
	Uncross(price market.Price, n int, at int64, seq uint64, out *event.Sink) int
	Release(n int, at int64, seq uint64, out *event.Sink) int
	Elect(at int64, seq uint64, out *event.Sink)
}

var (
	_ orderBook = (*naive.Book)(nil)
	_ orderBook = (*ladder.Book)(nil)
)

// implementations are those that every test of this package runs on.
var implementations = []struct {
	name string
	make func(book.Options) orderBook
}{
	{"naive", func(o book.Options) orderBook { return naive.New(o) }},
	{"ladder", func(o book.Options) orderBook { return ladder.New(o) }},
}

func export(b orderBook) []book.LiveOrder {
	var all []book.LiveOrder
	b.Export(func(r book.LiveOrder) { all = append(all, r) })
	return all
}

// describe prints an event on one line, with the field names of package event's table for
// its kind.
func describe(e *event.Event) string {
	var s strings.Builder
	put := func(format string, a ...any) { fmt.Fprintf(&s, format, a...) }
	side := ""
	if e.Side != 0 {
		side = e.Side.String() + " "
	}
	why := event.Reason(e.Code)
	switch e.Kind {
	case event.Accepted:
		put("accepted %d %s%d@%d shown=%d", e.OrderID, side, e.Qty, e.Price, e.Aux)
	case event.Rejected:
		put("rejected %d %s%d@%d %v limit=%d", e.OrderID, side, e.Qty, e.Price, why, e.Aux)
	case event.Traded:
		put("traded %d %s%d@%d maker=%d trade=%d p%d×p%d", e.OrderID, side, e.Qty, e.Price, e.Other, e.Aux, e.Participant, e.Code)
	case event.Rested:
		put("rested %d %s%d@%d shown=%d", e.OrderID, side, e.Qty, e.Price, e.Aux)
	case event.Cancelled:
		put("cancelled %d %s%d@%d was-shown=%d %v", e.OrderID, side, e.Qty, e.Price, e.Aux, why)
	case event.Reduced:
		put("reduced %d %s%d@%d shown-less=%d %v", e.OrderID, side, e.Qty, e.Price, e.Aux, why)
	case event.Unrested:
		put("unrested %d %s%d@%d was-shown=%d", e.OrderID, side, e.Qty, e.Price, e.Aux)
	case event.Amended:
		put("amended %d %s%d@%d shown=%d", e.OrderID, side, e.Qty, e.Price, e.Aux)
	case event.AmendRejected:
		put("amend-rejected %d %s%d@%d %v limit=%d", e.OrderID, side, e.Qty, e.Price, why, e.Aux)
	case event.CancelRejected:
		put("cancel-rejected %d %v", e.OrderID, why)
	case event.Replenished:
		put("replenished %d %s%d@%d shown=%d", e.OrderID, side, e.Qty, e.Price, e.Aux)
	case event.AuctionTraded:
		put("auction-traded %d %s%d@%d older=%d trade=%d p%d×p%d", e.OrderID, side, e.Qty, e.Price, e.Other, e.Aux, e.Participant, e.Code)
	case event.Triggered:
		put("triggered %d %s%d@%d by=%d", e.OrderID, side, e.Qty, e.Price, e.Aux)
	default:
		put("kind %d of %d", e.Kind, e.OrderID)
	}
	return s.String()
}

// op is one command of a random flow.
type op struct {
	kind        opKind
	order       book.Order
	participant market.ParticipantID
	side        market.Side
	at          int64
}

type opKind uint8

const (
	opSubmit opKind = iota
	opAmend
	opCancel
	opMassCancel
	opExpire
	opCancelFor
	opEndLater
	opSweep // of order.Qty orders
	opTakeOut
	opGather
	opAmendGathered
	opUncross // order.Qty pairs at order.Price
	opRelease // order.Qty orders
	opElect
)

func (o op) String() string {
	switch o.kind {
	case opSubmit:
		return fmt.Sprintf("submit %+v", o.order)
	case opAmend:
		return fmt.Sprintf("amend %+v", o.order)
	case opCancel:
		return fmt.Sprintf("cancel %d by %d", o.order.ID, o.participant)
	case opMassCancel:
		return fmt.Sprintf("mass cancel by %d side %d", o.participant, o.side)
	case opEndLater:
		return fmt.Sprintf("end later by %d side %d", o.participant, o.side)
	case opSweep:
		return fmt.Sprintf("sweep %d at %d", o.order.Qty, o.at)
	case opTakeOut:
		return fmt.Sprintf("take out %d", o.order.ID)
	case opCancelFor:
		return fmt.Sprintf("cancel %d for the engine", o.order.ID)
	case opGather:
		return fmt.Sprintf("gather %+v", o.order)
	case opAmendGathered:
		return fmt.Sprintf("amend gathered %+v", o.order)
	case opUncross:
		return fmt.Sprintf("uncross %d at %d", o.order.Qty, o.order.Price)
	case opRelease:
		return fmt.Sprintf("release %d", o.order.Qty)
	case opElect:
		return "elect"
	default:
		return fmt.Sprintf("expire at %d", o.at)
	}
}

// dropRefusedTerms takes new terms out of an amend of a quote or a stop, for which the engine
// refuses them.
func (o *op) dropRefusedTerms(b orderBook) {
	if r, ok := b.Get(o.order.ID); ok && (r.Flags&book.FlagQuote != 0 || r.Type == book.Stop) {
		o.order.Flags &^= book.FlagAmendTerms
	}
}

// do applies o, without what the engine refuses, and returns the result of a mass cancel.
func (o *op) do(b orderBook, seq uint64, out *event.Sink) int {
	switch o.kind {
	case opSubmit:
		b.Submit(&o.order, o.at, seq, out)
	case opAmend:
		o.dropRefusedTerms(b)
		b.Amend(&o.order, o.at, seq, out)
	case opCancel:
		b.Cancel(o.order.ID, o.participant, o.at, seq, out)
	case opMassCancel:
		return b.MassCancel(o.participant, o.side, event.ReasonMassCancel, o.at, seq, out)
	case opEndLater:
		reason := event.ReasonMassCancel
		if o.order.Qty > 0 {
			reason = event.ReasonKilled
		}
		return b.EndLater(o.participant, o.side, reason, o.at, seq, out)
	case opSweep:
		return b.Sweep(o.at, int(o.order.Qty), seq, out)
	case opTakeOut:
		b.TakeOut(o.order.ID, o.at, seq, out)
	case opCancelFor:
		if b.CancelFor(o.order.ID, event.ReasonQuoteProtection, o.at, seq, out) {
			return 1
		}
	case opGather:
		b.Gather(&o.order, o.at, seq, out)
	case opAmendGathered:
		o.dropRefusedTerms(b)
		b.AmendGathered(&o.order, o.at, seq, out)
	case opUncross:
		return b.Uncross(o.order.Price, int(o.order.Qty), o.at, seq, out)
	case opRelease:
		return b.Release(int(o.order.Qty), o.at, seq, out)
	case opElect:
		b.Elect(o.at, seq, out)
	default:
		b.Expire(o.at, seq, out)
	}
	return 0
}

// failer is *testing.T or *rapid.T.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// twin runs the two books side by side and checks, after every command, that they agree and
// that the laws of laws_test.go hold.
type twin struct {
	tb    failer
	a, b  orderBook
	outA  *event.Sink
	outB  *event.Sink
	laws  *laws
	seq   uint64
	trail []string

	fillsA, fillsB []book.QuoteFill
}

func newTwin(tb failer, opt book.Options) *twin {
	t := &twin{tb: tb, outA: event.NewGrowingSink(64), outB: event.NewGrowingSink(64), laws: newLaws()}
	opt.Fills, opt.Due = &t.fillsA, nil
	t.a = naive.New(opt)
	opt.Fills = &t.fillsB
	t.b = ladder.New(opt)
	return t
}

// step applies o to both books and returns what they return. With whole it also runs the
// checks that walk the whole book.
func (t *twin) step(o op, whole bool) int {
	t.tb.Helper()
	t.seq++
	t.outA.Reset()
	t.outB.Reset()
	t.trail = append(t.trail, o.String())
	n, m := o.do(t.a, t.seq, t.outA), o.do(t.b, t.seq, t.outB)
	ea, eb := t.outA.Events(), t.outB.Events()
	for i := range max(len(ea), len(eb)) {
		if i >= len(ea) || i >= len(eb) || ea[i] != eb[i] {
			t.fail("event %d differs:\nnaive:\n%s\nladder:\n%s", i, lines(ea), lines(eb))
		}
	}
	if !slices.Equal(t.fillsA, t.fillsB) {
		t.fail("fills of quotes:\nnaive  %v\nladder %v", t.fillsA, t.fillsB)
	}
	t.fillsA, t.fillsB = t.fillsA[:0], t.fillsB[:0]
	if n != m {
		t.fail("naive returns %d, ladder %d", n, m)
	}
	if err := t.laws.follow(&o, ea); err != nil {
		t.fail("%v\n%s", err, lines(ea))
	}
	if o.kind == opEndLater {
		t.a.Export(func(r book.LiveOrder) {
			if r.Flags&ending != 0 {
				t.laws.ended[r.ID] = true
			}
		})
	}
	t.compare(whole)
	return n
}

// compare compares all readers of both books.
func (t *twin) compare(whole bool) {
	t.tb.Helper()
	a, b := t.a, t.b
	if a.Sweeping() != b.Sweeping() {
		t.fail("sweeping: naive %v, ladder %v", a.Sweeping(), b.Sweeping())
	}
	if a.OrderCount() != b.OrderCount() || a.LastTrade() != b.LastTrade() {
		t.fail("naive: %d orders, last trade %d; ladder: %d, %d", a.OrderCount(), a.LastTrade(), b.OrderCount(), b.LastTrade())
	}
	for s := market.Buy; s <= market.Sell; s++ {
		pa, qa := a.Best(s)
		pb, qb := b.Best(s)
		if pa != pb || qa != qb {
			t.fail("best %v: naive %d@%d, ladder %d@%d", s, qa, pa, qb, pb)
		}
	}
	bid, _ := b.Best(market.Buy)
	ask, _ := b.Best(market.Sell)
	if bid != 0 && ask != 0 && bid >= ask {
		t.fail("crossed: bid %d, ask %d", bid, ask)
	}
	if !whole {
		return
	}
	t.compareWhole()
}

func (t *twin) compareWhole() {
	t.tb.Helper()
	for s := market.Buy; s <= market.Sell; s++ {
		if a, b := t.a.Gathered(s), t.b.Gathered(s); a != b {
			t.fail("gathered on side %v: naive %d, ladder %d", s, a, b)
		}
		for p := market.Price(0); ; {
			a, q := t.a.NextLevel(s, p)
			if b, r := t.b.NextLevel(s, p); a != b || q != r {
				t.fail("level of %v behind %d: naive %d@%d, ladder %d@%d", s, p, q, a, r, b)
			}
			if p = a; p == 0 {
				break
			}
		}
		for _, limit := range []int{0, 1, 3, 1 << 12} {
			da := t.a.Depth(s, make([]market.Level, 0, limit))
			db := t.b.Depth(s, make([]market.Level, 0, limit))
			if fmt.Sprint(da) != fmt.Sprint(db) {
				t.fail("depth of %v:\nnaive  %v\nladder %v", s, da, db)
			}
		}
		if err := t.laws.compareDepth(s, t.b.Depth(s, make([]market.Level, 0, 1<<12))); err != nil {
			t.fail("%v", err)
		}
	}
	ra, rb := export(t.a), export(t.b)
	for i := range max(len(ra), len(rb)) {
		if i >= len(ra) || i >= len(rb) || ra[i] != rb[i] {
			t.fail("export differs at %d:\nnaive  %+v\nladder %+v", i, ra[min(i, len(ra)):], rb[min(i, len(rb)):])
		}
	}
	if err := t.laws.compareExport(ra); err != nil {
		t.fail("%v", err)
	}
	if len(ra) != t.b.OrderCount() {
		t.fail("export gives %d orders of %d", len(ra), t.b.OrderCount())
	}
	var truth int64
	open := map[market.ParticipantID]int{}
	for i := range ra {
		r := &ra[i]
		if r.Flags&ending == 0 {
			open[r.Participant]++
		}
		if r.ExpireAt > 0 && (truth == 0 || r.ExpireAt < truth) {
			truth = r.ExpireAt
		}
	}
	for _, x := range []orderBook{t.a, t.b} {
		for i := range ra {
			if got, ok := x.Get(ra[i].ID); (!ok || got != ra[i]) && !x.Sweeping() || ok && ra[i].Flags&ending != 0 {
				t.fail("%T.Get(%d) = %+v, %v, want %+v", x, ra[i].ID, got, ok, ra[i])
			}
		}
		if got, ok := x.Get(1 << 60); ok || got != (book.LiveOrder{}) {
			t.fail("%T.Get of no order: %+v, %v", x, got, ok)
		}
		if next := x.NextExpiry(); truth != 0 && (next == 0 || next > truth) || truth == 0 && next != 0 {
			t.fail("%T: next expiry %d, the true one is %d", x, next, truth)
		}
		for participant := market.ParticipantID(0); participant < 8; participant++ {
			if x.OpenOrders(participant) != open[participant] {
				t.fail("%T: participant %d has %d open, should be %d", x, participant, x.OpenOrders(participant), open[participant])
			}
		}
	}
}

// ending are the flags of orders that a mass cancel has ended.
const ending = book.FlagMassCancelled | book.FlagKilled

func lines(events []event.Event) string {
	var s strings.Builder
	for i := range events {
		fmt.Fprintf(&s, "  %s   %+v\n", describe(&events[i]), events[i])
	}
	return s.String()
}

// fail prints the last commands before the failure.
func (t *twin) fail(format string, a ...any) {
	t.tb.Helper()
	from := max(0, len(t.trail)-40)
	t.tb.Fatalf("after command %d: %s\nthe last commands:\n%s", t.seq, fmt.Sprintf(format, a...),
		strings.Join(t.trail[from:], "\n"))
}
