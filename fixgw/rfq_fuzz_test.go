package fixgw

import (
	"bytes"
	"testing"

	enginerfq "blockdesk/engine/rfq"
	"blockdesk/fixgw/rfq"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
)

// FuzzQuoteRequest: whatever stands in an R, it is refused with a text of ours or
// asks for what the view has.
func FuzzQuoteRequest(f *testing.F) {
	for _, seed := range []string{
		"131=r|146=1|55=SLUSD/USDC|152=250|", "131=r|146=1|55=SLUSD/USDC|48=T1/T1-1|22=8|54=1|152=1000.00|15=SOL|",
		"131=|146=2|55=|55=|152=250|", "131=r|146=1|55=SLUSD/USDC|48=/|152=99999999999999999999|", "146=1\x01\x01==|",
	} {
		f.Add([]byte(seed))
	}
	d := newShop(f, []string{"TK"}, nil)
	hooks, view := rfq.Hooks{Session: d.handler("TK").quotes}, d.offers.View()
	f.Fuzz(func(t *testing.T, body []byte) {
		r := wire.ScanQuoteRequest(bytes.ReplaceAll(body, []byte("|"), []byte("\x01")))
		ask, instrument, refusal := hooks.DecodeQuoteRequest(&r)
		if (ask == nil) == (refusal == nil) {
			t.Fatalf("%+v and %+v", ask, refusal)
		}
		if refusal != nil {
			if refusal.Text == "" || refusal.Reason == 0 {
				t.Fatalf("refused by %+v", refusal)
			}
			return
		}
		ticket := view.Ticket(ask.Ticket)
		if ticket == nil || ticket.Tranche(ask.Tranche) == nil || ticket.Instrument != instrument || !ask.Fill.Valid() || !ask.Rail.Valid() {
			t.Fatalf("asks for %+v", ask)
		}
	})
}

// FuzzAcceptance: a D or an AJ takes the session's own quote, as it was given, or
// nothing.
func FuzzAcceptance(f *testing.F) {
	d := newShop(f, []string{"TK"}, nil)
	hooks := rfq.Hooks{Session: d.handler("TK").quotes}
	q := wire.ClientQuote{Ref: wire.QuoteReqPrefix + "r", Digits: 6}
	q.ID, q.Terms = 7, enginerfq.Terms{Ticket: 1, Tranche: 1, Fill: 1, Rail: market.RailUSDC, Price: 990_000_000, Base: 252_525_252}
	hooks.AddQuote(q)
	id := string(market.AppendQuoteID(nil, q.ID))
	for _, seed := range []string{
		"11=c|117=" + id + "|55=SLUSD/USDC|54=1|152=250|44=0.99|", "693=c|117=" + id + "|55=SLUSD/USDC|133=0.990|38=252.525252|",
		"11=c|117=" + id + "|55=SLUSD/USDC|54=1|38=|", "11=|117=Q|18=6|", "=|==|",
	} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, body []byte, response bool) {
		a := wire.ScanAcceptance(bytes.ReplaceAll(body, []byte("|"), []byte("\x01")), response)
		take, refusal := hooks.DecodeAcceptance(&a)
		if (take == nil) == (refusal == nil) {
			t.Fatalf("%+v and %+v", take, refusal)
		}
		if refusal != nil && refusal.Text == "" {
			t.Fatalf("refused by %+v", refusal)
		}
		if take != nil && (take.Quote != q.ID || take.Ticket != 1 || take.Tranche != 1 || take.Fill != 1 || take.Participant != 1 || take.Wallet != testAccount(1)) {
			t.Fatalf("takes %+v", take)
		}
	})
}
