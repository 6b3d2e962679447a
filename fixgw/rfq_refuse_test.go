package fixgw

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"blockdesk/engine"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/fixgw/session/sessiontest"
	"blockdesk/fixgw/wire"
	"blockdesk/fixgw/wire/wiretest"
	"blockdesk/market"
)

// TestQuoteRequestRefused: every refusal before the engine, by its exact reason;
// the id may be used again.
func TestQuoteRequestRefused(t *testing.T) {
	t.Parallel()
	d := newShop(t, []string{"TK"}, nil)
	tk := d.dial("TK", nil)
	const group = "146=1|55=SLUSD/USDC|"
	for _, c := range []struct{ body, reason, text string }{
		{"131=" + strings.Repeat("x", wire.MaxQuoteReqID+1) + "|" + group + "152=250|", "99", "INVALID_FIELD: QuoteReqID (131)"},
		{"131=r|146=2|55=SLUSD/USDC|152=250|55=SLUSD/USDC|152=250|", "99", "UNSUPPORTED: NoRelatedSym (146)"},
		{"131=r|146=1|55=NO/PE|152=250|", "1", "UNKNOWN_SYMBOL: "},
		{"131=r|" + group + "54=2|152=250|", "99", "UNSUPPORTED: Side (54)"},
		{"131=r|146=1|55=SLUSD/USDC|537=0|152=250|", "99", "UNSUPPORTED: QuoteType (537)"},
		{"131=r|" + group + "38=5|", "99", "UNSUPPORTED: OrderQty (38)"},
		{"131=r|" + group, "99", "MISSING_FIELD: CashOrderQty (152)"},
		{"131=r|" + group + "152=300|", "99", `INVALID_FIELD: CashOrderQty (152) "300": must be one of 250 1000 `},
		{"131=r|" + group + "152=250.0000001|", "99", "INVALID_FIELD: CashOrderQty (152)"},
		{"131=r|" + group + "152=250|15=EUR|", "99", "INVALID_FIELD: Currency (15)"},
		{"131=r|" + group + "48=T9/T9-1|22=8|152=250|", "1", "UNKNOWN_TICKET: unknown_ticket"},
		{"131=r|" + group + "48=T1/T1-9|22=8|152=250|", "1", "UNKNOWN_TICKET: unknown_tranche"},
		{"131=r|" + group + "48=T1|22=8|152=250|", "1", "UNKNOWN_TICKET: unknown_tranche"},
		{"131=r|" + group + "48=T1/T2-1|22=8|152=250|", "1", "UNKNOWN_TICKET: unknown_tranche"},
		{"131=r|" + group + "48=T1/T1-1|22=4|152=250|", "99", "UNSUPPORTED: SecurityIDSource (22)"},
		{"131=r|146=1|55=92C/SLUSD|48=T1/T1-1|22=8|152=250|", "1", "INVALID_FIELD: Symbol (55)"},
		{"131=r|146=1|55=92C/SLUSD|152=250|", "8", "REFUS_DVP: unknown_pair"},
		{"131=r|" + group + "152=2500000|", "3", "CAPACITY_EXHAUSTED: "},
		// By the engine; the id is used up then.
		{"131=e1|" + group + "48=T1/T1-1|22=8|152=2500000|", "3", "CAPACITY_EXHAUSTED: capacity_exhausted: the tranche does not have enough left: 1000.000000 USD"},
	} {
		tk.send("R", c.body)
		m := tk.wantNext("35=AG 146=1 658=" + c.reason)
		m.Text(t, c.text)
		if !strings.HasPrefix(c.body, "131="+m.Get(131)+"|") {
			t.Errorf("%s answers %s", m, c.body)
		}
	}
	tk.quoted("r", "152=250.00|") // the zeros of a client that has floats
	tk.send("R", "131=e1|"+group+"152=250|")
	tk.wantNext("35=AG 97= 131=e1 658=99").Text(t, "DUPLICATE_CLORDID: QuoteReqID (131)")
	tk.send("R", "131=e1|"+group+"48=T1/T1-1|22=8|152=2500000|")
	tk.wantNext("35=AG 97=Y 131=e1 658=3")
}

// TestDeskRefuses: what the desk itself refuses, of quotes and of claims.
func TestDeskRefuses(t *testing.T) {
	t.Parallel()
	d := newShop(t, []string{"TK", "XX"}, nil)
	tk, xx := d.dial("TK", nil), d.dial("XX", nil)
	d.post(0, 250)
	sold := tk.quoted("sold", "48=T2/T2-1|22=8|152=250|")
	live, rare := tk.quoted("live", ""), tk.quoted("rare", "")
	xx.take("x", xx.quoted("x", "48=T2/T2-1|22=8|152=250|"))
	xx.wantNext("35=8 11=x 150=A")
	refuse := func(id, quoteReason, orderReason, text string, quote sessiontest.Message) {
		t.Helper()
		if quoteReason != "" {
			tk.rfq("q"+id, "48=T1/T1-1|22=8|152=250|")
			tk.wantNext("35=AG 131=q"+id+" 658="+quoteReason).Text(t, text)
		}
		if quote != nil {
			tk.take("d"+id, quote)
			m := tk.wantNext("35=8 37=NONE 150=8 39=8 55=SLUSD/USDC 151=0 11=d" + id + " 103=" + orderReason)
			m.Text(t, text)
			tk.send("AJ", "693=d"+id+"|117="+quote.Get(117)+"|694=1|55=SLUSD/USDC|")
			tk.wantNext("35=8 37=NONE 150=8 103="+orderReason+" 693=d"+id).Text(t, text)
		}
	}
	refuse("sold", "", "3", "CAPACITY_EXHAUSTED: capacity_exhausted: ", sold)
	// A stopped participant; its claims go on.
	claim := tk.claimed("before").Get(37)
	stop := engine.Command{Kind: engine.SetParticipant, Status: engine.StatusKilled}
	stop.Order.Participant = 1
	d.submit(stop, nil)
	refuse("killed", "6", "0", "REFUS_DVP: killed: ", live)
	d.pay(claim, 1, 250_000_000)
	tk.wantNext("35=8 11=before 150=0")
	stop.Status = engine.StatusLive
	d.submit(stop, nil)
	d.submitDesk(&rfq.SetInventory{Instrument: 0, Atoms: 1})
	refuse("inventory", "9", "3", "REFUS_DVP: inventory: ", live)
	d.submitDesk(&rfq.SetInventory{Instrument: 0, Atoms: 1e12})
	d.submitDesk(&rfq.AmendTicket{Ticket: 1, Rails: market.Rails(0).With(market.RailSOL)})
	refuse("rail", "99", "", "INVALID_FIELD: rail_not_accepted: ", nil)
	tk.take("honoured", live) // an amended ticket does not touch a quote
	tk.wantNext("35=8 11=honoured 150=A")
	d.submitDesk(&rfq.AmendTicket{Ticket: 1, Rails: market.AllRails, Reference: 2_000_000_000})
	refuse("corridor", "5", "", "REFUS_DVP: price_corridor: ", nil)
	d.submitDesk(&rfq.AmendTicket{Ticket: 1, Rails: market.AllRails})
	// Locks and the end of a ticket end the quote as well, which TestQuoteEnds holds.
	d.submitDesk(&rfq.SetLock{Scope: rfq.LockAll, Locked: true})
	for range 2 {
		id := tk.wantNext("35=Z").Get(117)
		if tk.wantNext("35=AI 297=6 117=" + id); id != rare.Get(117) && id != sold.Get(117) {
			t.Errorf("quote %s has ended", id)
		}
	}
	refuse("locked", "2", "", "REFUS_DVP: locked: ", nil)
	d.submitDesk(&rfq.SetLock{Scope: rfq.LockAll})
	d.submitDesk(&rfq.WithdrawTicket{Ticket: 1})
	refuse("gone", "4", "", "CAPACITY_EXHAUSTED: ticket_withdrawn: ", nil)
}

// TestAcceptanceRefused: the fields of an acceptance must agree with its quote.
func TestAcceptanceRefused(t *testing.T) {
	t.Parallel()
	d := newShop(t, []string{"TK", "NW"}, func(o *Options) { o.Participants[1].Wallet = "" })
	tk, nw := d.dial("TK", nil), d.dial("NW", nil)
	quote := tk.quoted("r", "")
	id := quote.Get(117)
	for _, c := range []struct{ body, reason, text string }{
		{"11=c|40=D|55=SLUSD/USDC|54=1|152=250|", "99", "MISSING_FIELD: QuoteID (117)"},
		{"11=c|40=D|117=nonsense|55=SLUSD/USDC|54=1|152=250|", "4", "CLAIM_EXPIRED: quote_expired"},
		{"11=c|40=D|117=" + id + "|55=92C/SLUSD|54=1|152=250|", "99", "INVALID_FIELD: Symbol (55)"},
		{"11=c|40=D|117=" + id + "|54=1|152=250|", "1", "MISSING_FIELD: Symbol (55)"},
		{"11=c|40=D|117=" + id + "|55=SLUSD/USDC|48=T1/T1-2|54=1|152=250|", "99", "INVALID_FIELD: SecurityID (48)"},
		{"11=c|40=D|117=" + id + "|55=SLUSD/USDC|54=2|152=250|", "11", "UNSUPPORTED: Side (54)"},
		{"11=c|40=D|117=" + id + "|55=SLUSD/USDC|54=1|", "13", "MISSING_FIELD: OrderQty (38) or CashOrderQty (152)"},
		{"11=c|40=D|117=" + id + "|55=SLUSD/USDC|54=1|152=1000|", "99", "INVALID_FIELD: CashOrderQty (152)"},
		{"11=c|40=D|117=" + id + "|55=SLUSD/USDC|54=1|38=252|", "99", `INVALID_FIELD: OrderQty (38) "252": the quote has 252.525252`},
		{"11=c|40=D|117=" + id + "|55=SLUSD/USDC|54=1|152=250|44=0.98|", "99", "INVALID_FIELD: Price (44)"},
		{"11=c|40=D|117=" + id + "|55=SLUSD/USDC|54=1|152=250|15=SOL|", "99", "INVALID_FIELD: Currency (15)"},
		{"11=c|40=D|117=" + id + "|55=SLUSD/USDC|54=1|152=250|59=1|", "11", "UNSUPPORTED: TimeInForce (59)"},
		{"11=c|40=D|117=" + id + "|55=SLUSD/USDC|54=1|152=250|99=1|", "11", "UNSUPPORTED: tag 99"},
		{"11=" + strings.Repeat("x", wire.MaxClOrdID+1) + "|40=D|117=" + id + "|55=SLUSD/USDC|54=1|152=250|", "99", "INVALID_FIELD: ClOrdID (11)"},
	} {
		tk.send("D", c.body+now60)
		tk.wantNext("35=8 37=NONE 150=8 39=8 103="+c.reason).Text(t, c.text)
	}
	tk.send("AJ", "693="+strings.Repeat("x", wire.MaxQuoteReqID+1)+"|117="+id+"|694=1|55=SLUSD/USDC|")
	tk.wantNext("35=8 150=8 103=99").Text(t, "INVALID_FIELD: QuoteRespID (693)")
	tk.send("AJ", "693=a|117="+id+"|694=1|55=SLUSD/USDC|133=0.98|")
	tk.wantNext("35=8 150=8 103=99 693=a").Text(t, "INVALID_FIELD: OfferPx (133)")
	d.bank.closed.Store(true)
	tk.take("c", quote)
	tk.wantNext("35=8 150=8 103=0").Text(t, "CHAIN_UNAVAILABLE: ")
	d.bank.closed.Store(false)
	nw.take("c", nw.quoted("r", ""))
	nw.wantNext("35=8 150=8 103=0").Text(t, "MISSING_FIELD: the participant has no wallet")
	// None of them has used the quote or the id up.
	tk.send("D", "11=c|40=D|117="+id+"|55=SLUSD/USDC|48=T1/T1-2|22=8|54=1|38=252.525252|44=0.99|15=USDC|59=4|"+now60)
	tk.wantNext("35=8 150=8").Text(t, "INVALID_FIELD: SecurityID (48)")
	tk.send("D", "11=c|40=D|117="+id+"|55=SLUSD/USDC|48=T1/T1-1|22=8|54=1|38=252.525252|44=0.99|15=USDC|59=4|"+now60)
	first := tk.wantNext("35=8 11=c 150=A")
	tk.take("c", quote)
	tk.wantNext("35=8 97=Y 11=c 150=A 17=" + first.Get(17))
	tk.take("c2", quote)
	tk.wantNext("35=8 11=c2 150=8 103=4").Text(t, "CLAIM_EXPIRED: quote_expired")
}

// TestLastCapacity: of two clients that race for the last capacity, one gets it.
func TestLastCapacity(t *testing.T) {
	t.Parallel()
	d := newShop(t, []string{"AA", "BB"}, nil)
	clients := []*client{d.dial("AA", nil), d.dial("BB", nil)}
	const rounds = 10
	for i := range rounds {
		d.post(0, 250)
		offer := fmt.Sprintf("T%d/T%d-1", i+2, i+2)
		var quotes []sessiontest.Message
		for _, k := range clients {
			quotes = append(quotes, k.quoted(fmt.Sprint("r", i), "48="+offer+"|22=8|152=250|"))
		}
		for j, k := range clients {
			k.take(fmt.Sprint("c", i), quotes[j])
		}
		var types []string
		for _, k := range clients {
			types = append(types, k.wantNext("35=8 11="+fmt.Sprint("c", i)).Get(150))
		}
		if slices.Sort(types); strings.Join(types, "") != "8A" {
			t.Fatalf("round %d: %v", i, types)
		}
	}
}

// TestQuoteLimit: a session may have so many quotes, those included that it has
// passed on, until their time has come.
func TestQuoteLimit(t *testing.T) {
	t.Parallel()
	d := newShop(t, []string{"TK"}, func(o *Options) { o.MaxQuotes = 3 })
	tk := d.dial("TK", nil)
	var quotes []sessiontest.Message
	for i := range 3 {
		quotes = append(quotes, tk.quoted(fmt.Sprint("r", i), ""))
	}
	full := func() {
		t.Helper()
		tk.rfq("over", "")
		tk.wantNext("35=AG 131=over 658=3").Text(t, "OVERLOADED: 3 quotes of this session")
	}
	full()
	tk.send("AJ", "693=p|117="+quotes[0].Get(117)+"|694=6|55=SLUSD/USDC|")
	tk.wantNext("35=AI 297=11")
	full()
	tk.take("c", quotes[1]) // a claim makes room
	tk.wantNext("35=8 11=c 150=A")
	tk.quoted("over", "")
	tk.rfq("r9", "")
	tk.wantNext("35=AG 131=r9 658=3")
	d.later(testQuoteTTL)
	tk.wantNext("35=AI 297=7")
	tk.wantNext("35=AI 297=7")
	for i := range 3 {
		tk.quoted(fmt.Sprint("s", i), "")
	}
}

// TestNoDesk: where it knows no pair.
func TestNoDesk(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"TK"}, nil)
	tk := d.dial("TK", nil)
	tk.rfq("r", "")
	tk.wantNext("35=AG 131=r 658=8").Text(t, "REFUS_DVP: unknown_pair")
}

// TestEveryRefusalHasItsWord: whatever the desk may say of a quote or a claim has
// values that the dictionary knows.
func TestEveryRefusalHasItsWord(t *testing.T) {
	for reason := event.Reason(1); reason < 100; reason++ {
		if strings.HasSuffix(reason.String(), "?") {
			continue
		}
		r := wire.DeskReasonOf(reason)
		body := wire.AppendQuoteReject(nil, "r", "A/B", r.QuoteReason, []byte(wire.DeskText(reason, 5)))
		report := wire.AppendClaimReject(nil, "c", []byte("1-1-1"), "A/B", r.OrderReason, 5, []byte(wire.DeskText(reason, 5)))
		for _, m := range []struct{ kind, tag, body string }{{"AG", "131=", string(body)}, {"8", "37=", string(report)}} {
			raw := wire.AppendMessage(nil, wire.Header{MsgType: m.kind, Sender: "A", Target: "B", Seq: 1, At: time.Now()}, []byte(m.tag+m.body))
			if err := wiretest.StockChecker().Check(raw); err != nil {
				t.Errorf("%s: %v in %s", reason, err, wiretest.Show(raw))
			}
		}
	}
}
