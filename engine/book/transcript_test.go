package book_test

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/market"
)

// TestTranscripts runs testdata/*.txt on both implementations: `new` starts an empty book,
// `run` applies commands, one a line, and prints each with its events, then the book.
//
//	limit buy 1 10@100 by=7 tif=gtd expire=50 post-only display=3 stp=cancel-oldest
//	market sell 2 10 tif=fok
//	stop buy 3 10 trigger=105
//	stop-limit buy 4 10@106 trigger=105
//	amend 1 qty=5 price=101 trigger=104 open by=7
//	amend 1 by=7 tif=gtd expire=60 display=3 terms
//	cancel 1 by=7
//	mass-cancel by=7 side=buy
//	expire at=50
//
// An order without `by` belongs to participant 0, to which self-trade prevention does not
// apply.
func TestTranscripts(t *testing.T) {
	for _, impl := range implementations {
		t.Run(impl.name, func(t *testing.T) {
			datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
				if filepath.Ext(path) != ".txt" {
					return
				}
				s := story{make: impl.make}
				s.reset(t, 0)
				datadriven.RunTest(t, path, s.command)
			})
		})
	}
}

// story is a transcript being run.
type story struct {
	make func(book.Options) orderBook
	book orderBook
	seq  uint64
	out  *event.Sink
	laws *laws
}

func (s *story) reset(t *testing.T, maxOrders int) {
	t.Helper()
	s.book, s.seq, s.out, s.laws = s.make(book.Options{MaxOrders: maxOrders}), 0, event.NewGrowingSink(64), newLaws()
}

func (s *story) command(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "new":
		limit := 0
		d.MaybeScanArgs(t, "max-orders", &limit)
		s.reset(t, limit)
		return ""
	case "run":
		var answer strings.Builder
		for _, line := range strings.Split(d.Input, "\n") {
			if line = strings.TrimSpace(line); line != "" {
				s.run(t, d, line, &answer)
			}
		}
		s.describeBook(&answer)
		return answer.String()
	default:
		d.Fatalf(t, "unknown directive %q", d.Cmd)
		return ""
	}
}

// run runs one line and prints its events.
func (s *story) run(t *testing.T, d *datadriven.TestData, line string, answer *strings.Builder) {
	o, err := parseOp(line)
	if err != nil {
		d.Fatalf(t, "%q: %v", line, err)
	}
	s.seq++
	s.out.Reset()
	n := o.do(s.book, s.seq, s.out)
	fmt.Fprintf(answer, "%s\n", line)
	for i := range s.out.Events() {
		e := &s.out.Events()[i]
		fmt.Fprintf(answer, "    %s\n", describe(e))
		if e.Seq != s.seq || e.At != o.at {
			d.Fatalf(t, "%q: event %d has seq %d, at %d", line, i, e.Seq, e.At)
		}
	}
	if o.kind == opMassCancel {
		fmt.Fprintf(answer, "    = %d\n", n)
	}
	if err := s.laws.follow(&o, s.out.Events()); err != nil {
		d.Fatalf(t, "%q: %v", line, err)
	}
	for side := market.Buy; side <= market.Sell; side++ {
		if err := s.laws.compareDepth(side, s.book.Depth(side, make([]market.Level, 0, 64))); err != nil {
			d.Fatalf(t, "%q: %v", line, err)
		}
	}
}

// describeBook prints the live orders in canonical order.
func (s *story) describeBook(answer *strings.Builder) {
	fmt.Fprintf(answer, "book: %d live, last %d", s.book.OrderCount(), s.book.LastTrade())
	if next := s.book.NextExpiry(); next != 0 {
		fmt.Fprintf(answer, ", next expiry %d", next)
	}
	answer.WriteString("\n")
	s.book.Export(func(r book.LiveOrder) {
		if r.Waiting {
			fmt.Fprintf(answer, "    %v stop %d at %d: %d of %d@%d\n", r.Side, r.ID, r.Stop, r.Open, r.Qty, r.Price)
			return
		}
		fmt.Fprintf(answer, "    %v %d: %d of %d@%d", r.Side, r.ID, r.Open, r.Qty, r.Price)
		if r.Shown != r.Open {
			fmt.Fprintf(answer, " showing %d", r.Shown)
		}
		answer.WriteString("\n")
	})
}

// parseOp reads one line of a transcript.
func parseOp(line string) (op, error) {
	words := strings.Fields(line)
	o := op{order: book.Order{TIF: book.GTC, STP: book.STPCancelNewest}}
	p := opParser{op: &o, words: words[1:]}
	switch words[0] {
	case "limit", "market", "stop", "stop-limit":
		o.order.Type = map[string]book.Type{"limit": book.Limit, "market": book.Market, "stop": book.Stop, "stop-limit": book.StopLimit}[words[0]]
		p.side()
		p.id()
		p.size()
	case "amend":
		o.kind = opAmend
		p.id()
	case "cancel":
		o.kind = opCancel
		p.id()
	case "mass-cancel":
		o.kind = opMassCancel
	case "expire":
		o.kind = opExpire
	default:
		return o, fmt.Errorf("unknown command %q", words[0])
	}
	for len(p.words) > 0 && p.err == nil {
		p.option(p.next())
	}
	if p.sameTIF {
		o.order.TIF = 0
	}
	o.participant = o.order.Participant
	o.side = o.order.Side
	return o, p.err
}

type opParser struct {
	op    *op
	words []string
	err   error
	// sameTIF: an amend without a time in force, which other lines have by default.
	sameTIF bool
}

func (p *opParser) next() string {
	if len(p.words) == 0 {
		p.err = fmt.Errorf("ends too early")
		return ""
	}
	w := p.words[0]
	p.words = p.words[1:]
	return w
}

func (p *opParser) number(s string) int64 {
	n, err := strconv.ParseInt(s, 0, 64)
	if err != nil {
		p.err = err
	}
	return n
}

func (p *opParser) id() { p.op.order.ID = market.OrderID(p.number(p.next())) }

func (p *opParser) side() {
	switch w := p.next(); w {
	case "buy":
		p.op.order.Side = market.Buy
	case "sell":
		p.op.order.Side = market.Sell
	default:
		p.err = fmt.Errorf("side %q", w)
	}
}

// size parses "qty@price" or "qty".
func (p *opParser) size() {
	qty, price, limit := strings.Cut(p.next(), "@")
	p.op.order.Qty = market.Qty(p.number(qty))
	if limit {
		p.op.order.Price = market.Price(p.number(price))
	}
}

func (p *opParser) option(w string) {
	name, value, _ := strings.Cut(w, "=")
	o := &p.op.order
	switch name {
	case "by":
		o.Participant = market.ParticipantID(p.number(value))
	case "at":
		p.op.at = p.number(value)
	case "tif":
		o.TIF = map[string]book.TIF{"gtc": book.GTC, "ioc": book.IOC, "fok": book.FOK, "gtd": book.GTD, "day": book.Day}[value]
	case "expire":
		o.ExpireAt = p.number(value)
	case "post-only":
		o.Flags |= book.FlagPostOnly
	case "open":
		o.Flags |= book.FlagOpenQty
	case "terms":
		o.Flags |= book.FlagAmendTerms
	case "all":
		o.Display = market.MaxQty
	case "same-tif":
		p.sameTIF = true
	case "min":
		o.Flags |= book.FlagMinQty
		o.Display = market.Qty(p.number(value))
	case "display":
		o.Display = market.Qty(p.number(value))
	case "stp":
		o.STP = map[string]book.STP{
			"cancel-newest": book.STPCancelNewest, "cancel-oldest": book.STPCancelOldest,
			"cancel-both": book.STPCancelBoth, "decrement": book.STPDecrement,
		}[value]
	case "trigger":
		o.Stop = market.Price(p.number(value))
	case "qty":
		o.Qty = market.Qty(p.number(value))
	case "price":
		o.Price = market.Price(p.number(value))
	case "side":
		p.words = append([]string{value}, p.words...)
		p.side()
	default:
		p.err = fmt.Errorf("option %q", w)
	}
	if o.TIF == 0 || o.STP == 0 {
		p.err = fmt.Errorf("option %q", w)
	}
}
