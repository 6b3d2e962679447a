package fixterm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"blockdesk/fixgw/fixclient"
)

// Message processes a message of the session and returns its reports: none for a
// subscription that has ended. The message is not kept.
func (t *Terminal) Message(in *fixclient.Message) []Report {
	m := parse(in)
	if s := m.get(55); s != "" && len(t.symbols) < MaxOrders && m.typ() != "3" && m.typ() != "j" {
		if !(m.typ() == "8" && m.get(150) == "8") && s != unknownSymbol {
			t.symbols[s] = true
		}
	}
	reports := t.render(m)
	t.answered(m)
	return reports
}

// Again returns the reports of a message that was shown before and has been requested
// again. It changes no Terminal.
func Again(in *fixclient.Message) []Report {
	scratch := New("", nil)
	return scratch.render(parse(in))
}

func (t *Terminal) render(m message) []Report {
	switch m.typ() {
	case "8":
		return t.execution(m)
	case "9":
		return one(t.cancelReject(m))
	case "r":
		return one(t.massReport(m))
	case "3", "j":
		return one(reject(m))
	case "S":
		return one(t.quoted(m))
	case "AG":
		r := begin(m, "refused")
		r.Refused = true
		r.sentence = "no quote (" + m.get(131) + ")"
		r.add("quote_req_id", m.get(131))
		r.add("reason", m.get(658))
		return one(r)
	case "AI", "Z":
		return one(quoteEnd(m))
	case "B":
		return one(t.news(m))
	case "AE":
		return one(tradeCapture(m))
	case "AR":
		return one(captureAnswer(m))
	case "W", "X":
		return t.marketData(m)
	case "Y":
		return one(t.marketRefused(m))
	case "y", "d":
		return securities(m)
	case "f":
		return one(tradingStatus(m))
	}
	r := begin(m, "message")
	r.sentence = "of type " + m.typ()
	return one(r)
}

// execEvent returns the event of an ExecType (150).
func execEvent(m message) string {
	exec := m.get(150)
	if exec == "F" && m.get(39) != "2" {
		return "partly"
	}
	return cmp.Or(map[string]string{
		"0": "accepted", "4": "cancelled", "5": "amended", "8": "refused", "A": "pending",
		"C": "expired", "D": "restated", "F": "filled", "I": "status",
	}[exec], "report "+exec)
}

// claimState reports whether a code is that of a claim's report.
func claimState(code string) bool {
	switch code {
	case "AWAIT_PAYMENT", "PAID", "REFUND_DUE", "SETTLED":
		return true
	}
	return false
}

// execution renders an ExecutionReport (8), of an order or of a claim.
func (t *Terminal) execution(m message) []Report {
	if m.get(40) == "D" && m.get(150) != "8" || m.get(150) == "A" || claimState(codeOf(m.get(58))) {
		return one(t.claimReport(m))
	}
	r := begin(m, execEvent(m))
	r.Refused = m.get(150) == "8" || m.get(150) == "I" && m.get(39) == "8" && m.get(37) == "NONE"
	o := t.updateOrder(m)
	r.sentence = executionSentence(m, o, &r)
	for _, v := range []struct {
		name string
		tag  int
	}{
		{"order_id", 37},
		{"cl_ord_id", 11},
		{"orig_cl_ord_id", 41},
		{"exec_id", 17},
		{"symbol", 55},
		{"qty", 38},
		{"price", 44},
		{"last_qty", 32},
		{"last_price", 31},
		{"left", 151},
		{"filled", 14},
		{"avg_price", 6},
		{"reason", 103},
	} {
		r.add(v.name, m.get(v.tag))
	}
	r.add("side", sideWord(m.get(54)))
	r.add("status", statusWord(m.get(39)))
	return one(r)
}

// executionSentence returns the sentence for a report of an order.
func executionSentence(m message, o *order, r *Report) string {
	ids := fmt.Sprintf("(order %s, %s)", m.get(37), m.get(11))
	if m.get(37) == "NONE" {
		ids = "(" + m.get(11) + ")"
	}
	what := fmt.Sprintf("%s %s %s%s", sideWord(m.get(54)), short(m.get(38)), m.get(55), atPrice(m.get(44)))
	switch exec := m.get(150); {
	case exec == "F":
		what = fmt.Sprintf("%s %s of %s %s at %s, %s left", sideWord(m.get(54)), short(m.get(32)), short(o.qty), m.get(55), short(m.get(31)), short(m.get(151)))
	case exec == "I" && r.Refused:
		return "order " + m.get(11)
	case exec == "I":
		what += fmt.Sprintf(", %s: %s filled, %s left", statusWord(m.get(39)), short(m.get(14)), short(m.get(151)))
	case exec == "4" || exec == "C":
		what += fmt.Sprintf(", %s filled", short(m.get(14)))
	case exec != "8" && tifWord(m.get(59)) != "":
		what += " " + tifWord(m.get(59))
	}
	return strings.Join(strings.Fields(what+" "+ids), " ")
}

// updateOrder updates an order from a report, and returns it.
func (t *Terminal) updateOrder(m message) *order {
	id, clOrdID := m.get(37), m.get(11)
	o := t.orders[id]
	if o == nil {
		o = t.orders[clOrdID]
	}
	if o == nil {
		o = &order{clOrdID: clOrdID}
		if id == "NONE" {
			o.qty = m.get(38)
			return o // a refusal of an unknown order
		}
		t.addOrder(o)
	}
	t.addName(o, clOrdID)
	if id != "NONE" {
		o.id, o.clOrdID = id, clOrdID
		t.addName(o, id)
	}
	set := func(to *string, tag int) {
		if v := m.get(tag); v != "" {
			*to = v
		}
	}
	set(&o.symbol, 55)
	set(&o.side, 54)
	set(&o.qty, 38)
	set(&o.price, 44)
	set(&o.ordType, 40)
	set(&o.tif, 59)
	set(&o.left, 151)
	set(&o.filled, 14)
	set(&o.status, 39)
	o.known = true
	return o
}

func (t *Terminal) cancelReject(m message) Report {
	r := begin(m, "refused")
	r.Refused = true
	what := "cancel"
	if m.get(434) == "2" {
		what = "amend"
	}
	r.sentence = fmt.Sprintf("%s of %s (%s)", what, m.get(41), m.get(11))
	r.add("order_id", m.get(37))
	r.add("cl_ord_id", m.get(11))
	r.add("orig_cl_ord_id", m.get(41))
	r.add("status", statusWord(m.get(39)))
	r.add("reason", m.get(102))
	return r
}

func (t *Terminal) massReport(m message) Report {
	r := begin(m, "cancelled")
	r.sentence = fmt.Sprintf("%s orders (%s)", m.get(533), m.get(11))
	if m.get(531) == "0" {
		r.Event, r.Refused = "refused", true
		r.sentence = fmt.Sprintf("cancel-all (%s)", m.get(11))
	}
	r.add("cl_ord_id", m.get(11))
	r.add("orders", m.get(533))
	r.add("symbol", m.get(55))
	return r
}

// reject renders a session Reject (3) or a BusinessMessageReject (j).
func reject(m message) Report {
	r := begin(m, "refused")
	r.Refused = true
	r.sentence = fmt.Sprintf("message %s of type %s", m.get(45), m.get(372))
	if tag := m.get(371); tag != "" {
		r.sentence += ", tag " + tag
	}
	r.add("ref_msg_type", m.get(372))
	r.add("ref_seq_num", m.get(45))
	r.add("ref_tag", m.get(371))
	r.add("ref_id", m.get(379))
	r.add("reason", m.get(373)+m.get(380))
	return r
}

// securities renders the instruments of a SecurityList (y) or a SecurityDefinition (d).
func securities(m message) []Report {
	r := begin(m, "instrument")
	r.add("security_req_id", m.get(320))
	if result := m.get(560); m.typ() == "y" && result != "" && result != "0" || m.typ() == "d" && m.get(323) == "5" {
		r.Event, r.Refused = "refused", true
		r.sentence = "instruments (" + m.get(320) + ")"
		return one(r)
	}
	r.Text, r.Code = "", ""
	var symbols []string
	for _, e := range m.groups(55) {
		if !slices.Contains(symbols, e.get(55)) {
			symbols = append(symbols, e.get(55))
			r.Lines = append(r.Lines, strings.TrimRight(fmt.Sprintf("%-16s %s", e.get(55), instrumentFacts(e)), " "))
		}
	}
	r.sentence = fmt.Sprintf("%d", len(symbols))
	r.add("symbols", strings.Join(symbols, " "))
	return one(r)
}

// instrumentFacts returns the fields of a security that matter to a trader.
func instrumentFacts(e message) string {
	var out []string
	for _, f := range []struct {
		name string
		tag  int
	}{{"", 107}, {"currency ", 15}, {"", 58}} {
		if v := e.get(f.tag); v != "" {
			out = append(out, f.name+v)
		}
	}
	return strings.Join(out, ", ")
}

// tradingStatus renders a SecurityStatus (f).
func tradingStatus(m message) Report {
	r := begin(m, "status")
	var word string
	switch m.get(326) {
	case "2":
		word = "is halted"
	case "3":
		word = "resumes"
	case "17":
		word = "trades"
	case "18":
		word = "is not available"
	case "21":
		word = "gathers orders for an auction"
		if p := m.get(332); p != "" {
			word += ", which would trade at " + p
		}
	case "20":
		word, r.Refused = "is not known", true
	default:
		word = "has trading status " + m.get(326)
	}
	r.sentence = m.get(55) + " " + word
	r.add("symbol", m.get(55))
	r.add("trading_status", m.get(326))
	return r
}
