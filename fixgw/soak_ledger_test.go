package fixgw

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"blockdesk/fixgw/session/sessiontest"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
)

// ledger records the messages that one session has received, and checks these rules:
//
//   - an outgoing number is used for one message only, also over crashes;
//   - two reports with the same ExecID (17) have the same content;
//   - new reports come in the order of the engine's events;
//   - an order's reports are New, then fills and changes, then at most one end,
//     and CumQty, LeavesQty and AvgPx follow from the fills reported so far.
//
// Missing reports are checked at the end of the test. One goroutine at a time.
type ledger struct {
	set     *market.Instruments
	numbers map[int]string    // the message that used a number of the gateway, by number
	reports map[string]string // the content of a report, by ExecID
	places  map[string]place  // of the reports that events have caused
	newest  place
	orders  map[string]*reportedOrder // by OrderID (37)
	fills   map[string]fill           // by ExecID
	answers map[string]string
}

// place is the event of a report: ExecID is Seq-index-epoch.
type place struct{ seq, index uint64 }

func (p place) before(q place) bool { return p.seq < q.seq || p.seq == q.seq && p.index < q.index }

// reportedOrder is the state of one order according to its reports; quantities in lots.
type reportedOrder struct {
	in                 *market.Instrument
	clOrdID, side      string
	total, cum, leaves market.Qty
	notional           *big.Int // lots × ticks of all fills
	ended              bool
}

// fill is one side of a trade.
type fill struct {
	symbol, side string
	qty, price   string
}

func newLedger(set *market.Instruments) *ledger {
	return &ledger{
		set: set, numbers: map[int]string{}, reports: map[string]string{}, places: map[string]place{},
		orders: map[string]*reportedOrder{}, fills: map[string]fill{}, answers: map[string]string{},
	}
}

// sayings returns a message without what differs between the first time and a
// resend.
func sayings(m sessiontest.Message) string {
	var b strings.Builder
	wire.EachField(m, func(tag int, value []byte) {
		switch tag {
		case 8, 9, 10, 34, 43, 49, 52, 56, 97, 122:
		default:
			fmt.Fprintf(&b, "%d=%s|", tag, value)
		}
	})
	return b.String()
}

// number notes the number of a message that is no gap fill.
func (l *ledger) number(seq int, m sessiontest.Message) error {
	said := sayings(m)
	was, known := l.numbers[seq]
	again := m.Get(43) == "Y"
	switch {
	case known && was != said:
		return fmt.Errorf("number %d is used for two messages: %s and %s", seq, was, said)
	case known && !again:
		return fmt.Errorf("number %d comes twice, and not as a possible duplicate: %s", seq, said)
	case !known:
		l.numbers[seq] = said
	}
	return nil
}

// take follows an application message that has come in its turn.
func (l *ledger) take(m sessiontest.Message) error {
	switch typ := m.Get(35); typ {
	case "8":
		return l.report(m)
	case "9":
		// A rejection by the gateway itself uses no ClOrdID up, and what the engine
		// says again after a crash may know less: see follower.refused.
		return l.answer(m.Get(11), "")
	case "r":
		if m.Get(531) == "0" {
			return l.answer(m.Get(11), "")
		}
		return l.answer(m.Get(11), m.Pick(37, 530, 531, 533))
	}
	return nil
}

// answer notes the first answer to a request, and holds the others to it; text
// is "" where they may differ.
func (l *ledger) answer(clOrdID, text string) error {
	was, known := l.answers[clOrdID]
	switch {
	case !known || was == "":
		l.answers[clOrdID] = text
	case text != "" && was != text:
		return fmt.Errorf("%s is answered by %q and by %q", clOrdID, was, text)
	}
	return nil
}

// parsePlace reads an ExecID; local means that no event has caused the report.
func parsePlace(execID string) (p place, local bool, err error) {
	if strings.HasPrefix(execID, "G") {
		return place{}, true, nil
	}
	parts := strings.Split(strings.TrimSuffix(execID, "M"), "-")
	if len(parts) != 3 {
		return place{}, false, fmt.Errorf("ExecID %q", execID)
	}
	seq, err1 := strconv.ParseUint(parts[0], 10, 64)
	index, err2 := strconv.ParseUint(parts[1], 10, 64)
	if err1 != nil || err2 != nil {
		return place{}, false, fmt.Errorf("ExecID %q", execID)
	}
	return place{seq, index}, false, nil
}

// report follows an 8.
func (l *ledger) report(m sessiontest.Message) error {
	execID, said := m.Get(17), sayings(m)
	if was, known := l.reports[execID]; known {
		if was != said {
			return fmt.Errorf("ExecID %s said %s, now %s", execID, was, said)
		}
		return nil
	}
	l.reports[execID] = said
	at, local, err := parsePlace(execID)
	switch {
	case err != nil:
		return err
	case local && m.Get(150) == "8":
		return nil // refused before the engine: the ClOrdID is free
	case local && m.Get(150) == "I":
		return nil
	case local:
		return fmt.Errorf("a report that no event has caused: %s", said)
	case !l.newest.before(at):
		return fmt.Errorf("report %s comes after that of %v", execID, l.newest)
	}
	l.newest, l.places[execID] = at, at
	if err := l.answer(m.Get(11), ""); err != nil {
		return err
	}
	if err := l.follow(m); err != nil {
		return fmt.Errorf("%w: %s", err, said)
	}
	return nil
}

// follow applies a new report of an event to its order.
func (l *ledger) follow(m sessiontest.Message) error {
	o := l.orders[m.Get(37)]
	typ := m.Get(150)
	if typ == "0" || typ == "8" {
		if o != nil {
			return fmt.Errorf("order %s begins twice", m.Get(37))
		}
		return l.begin(m, typ == "8")
	}
	switch {
	case o == nil:
		return fmt.Errorf("order %s has not begun", m.Get(37))
	case o.ended:
		return fmt.Errorf("order %s goes on after its end", m.Get(37))
	case o.side != m.Get(54) || o.in.Symbol != m.Get(55):
		return fmt.Errorf("not the order's side or symbol")
	}
	status := m.Get(39)
	switch typ {
	case "F":
		if err := l.fill(o, m); err != nil {
			return err
		}
		want := "1"
		if o.cum == o.total {
			want, o.ended = "2", true
		}
		if status != want {
			return fmt.Errorf("OrdStatus after a fill is %s, want %s", status, want)
		}
	case "5", "D":
		total, err := o.in.ParseQty([]byte(m.Get(38)))
		if err != nil {
			return err
		}
		o.total, o.leaves = total, total-o.cum
		if typ == "5" {
			if m.Get(41) != o.clOrdID {
				return fmt.Errorf("OrigClOrdID is not %s", o.clOrdID)
			}
			o.clOrdID = m.Get(11)
		}
	case "4", "C":
		o.leaves, o.ended = 0, true
		if status != typ {
			return fmt.Errorf("OrdStatus at the end is %s, want %s", status, typ)
		}
	default:
		return fmt.Errorf("ExecType %s", typ)
	}
	return o.check(m)
}

// begin adds a new or a refused order.
func (l *ledger) begin(m sessiontest.Message, refused bool) error {
	in := l.set.Lookup([]byte(m.Get(55)))
	if in == nil {
		return fmt.Errorf("symbol %q", m.Get(55))
	}
	total, err := in.ParseQty([]byte(m.Get(38)))
	if err != nil {
		return err
	}
	o := &reportedOrder{in: in, clOrdID: m.Get(11), side: m.Get(54), total: total, leaves: total, notional: new(big.Int)}
	l.orders[m.Get(37)] = o
	if refused {
		o.leaves, o.ended = 0, true
	}
	return o.check(m)
}

func (l *ledger) fill(o *reportedOrder, m sessiontest.Message) error {
	qty, err := o.in.ParseQty([]byte(m.Get(32)))
	if err != nil {
		return err
	}
	price, err := o.in.ParsePrice([]byte(m.Get(31)))
	if err != nil {
		return err
	}
	o.cum += qty
	o.leaves = o.total - o.cum
	o.notional.Add(o.notional, new(big.Int).Mul(big.NewInt(int64(qty)), big.NewInt(int64(price))))
	l.fills[m.Get(17)] = fill{m.Get(55), m.Get(54), m.Get(32), m.Get(31)}
	return nil
}

// check compares the quantities and the average of a report with what the ones
// before it add up to.
func (o *reportedOrder) check(m sessiontest.Message) error {
	for _, c := range []struct {
		tag  int
		want market.Qty
	}{{38, o.total}, {14, o.cum}, {151, o.leaves}} {
		if got := string(o.in.AppendQty(nil, c.want)); m.Get(c.tag) != got {
			return fmt.Errorf("tag %d is not %d lots", c.tag, c.want)
		}
	}
	if o.leaves < 0 {
		return fmt.Errorf("%d lots are left", o.leaves)
	}
	if want := o.average(); m.Get(6) != want {
		return fmt.Errorf("AvgPx is not %s", want)
	}
	return nil
}

// average is AvgPx by another way than appendAvgPx's: rounded down, with
// AvgPxDigits more than the instrument's where it is not exact.
func (o *reportedOrder) average() string {
	if o.cum == 0 {
		return "0"
	}
	digits := int64(o.in.PriceDecimals) + wire.AvgPxDigits
	units := new(big.Int).Mul(o.notional, big.NewInt(int64(o.in.Tick)))
	units.Mul(units, new(big.Int).Exp(big.NewInt(10), big.NewInt(wire.AvgPxDigits), nil))
	units.Div(units, big.NewInt(int64(o.cum)))
	exact := new(big.Int).Mod(new(big.Int).Mul(o.notional, big.NewInt(int64(o.in.Tick))), big.NewInt(int64(o.cum))).Sign() == 0
	text := units.String()
	if missing := int(digits) + 1 - len(text); missing > 0 {
		text = strings.Repeat("0", missing) + text
	}
	whole, part := text[:len(text)-int(digits)], text[len(text)-int(digits):]
	if exact {
		part = part[:o.in.PriceDecimals]
	}
	if part == "" {
		return whole
	}
	return whole + "." + part
}

// live returns the orders that have not ended, by OrderID.
func (l *ledger) live() map[string]*reportedOrder {
	live := map[string]*reportedOrder{}
	for id, o := range l.orders {
		if !o.ended {
			live[id] = o
		}
	}
	return live
}

// compare returns how the sent reports differ from those of the journal; both by
// ExecID.
func (l *ledger) compare(want map[string]string) []string {
	var wrong []string
	for execID, text := range want {
		if got := l.reports[execID]; got != text {
			wrong = append(wrong, fmt.Sprintf("report %s: sent %q, the journal says %q", execID, got, text))
		}
	}
	for execID := range l.places {
		if _, ok := want[execID]; !ok {
			wrong = append(wrong, fmt.Sprintf("report %s is of nothing durable: %s", execID, l.reports[execID]))
		}
	}
	slices.Sort(wrong)
	return wrong
}
