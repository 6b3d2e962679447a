package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go/base58"

	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw/gatewaytest"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// ledger is Money in memory.
type ledger struct {
	items   map[desk.MoneyKind][]desk.MoneyItem // in the order of their cursors
	failing error
	result  desk.Result
	acts    []string // each command, and its operator
	keys    []rfq.IdempotencyKey
}

func (l *ledger) Money(kind desk.MoneyKind, after desk.MoneyCursor, limit int) ([]desk.MoneyItem, error) {
	from := slices.IndexFunc(l.items[kind], func(m desk.MoneyItem) bool {
		if kind == desk.MoneyDeliveryFailing || kind == desk.MoneyOutcomeUnknown {
			return m.Claim > after.Claim
		}
		return string(m.Signature[:]) > string(after.Signature[:])
	})
	if from < 0 {
		return nil, l.failing
	}
	rest := l.items[kind][from:]
	return rest[:min(limit, len(rest))], l.failing
}

func (l *ledger) MoneyCounts() desk.MoneyCounts {
	return desk.MoneyCounts{RefundsDue: len(l.items[desk.MoneyRefundDue]), DeliveriesFailing: len(l.items[desk.MoneyDeliveryFailing]), Unmatched: len(l.items[desk.MoneyUnmatched]), OutcomesUnknown: len(l.items[desk.MoneyOutcomeUnknown])}
}

func (l *ledger) act(by desk.OperatorRequest, what string) (*desk.Result, error) {
	l.acts, l.keys = append(l.acts, fmt.Sprintf("%d %s %s", by.Operator, by.Name, what)), append(l.keys, by.Key)
	result := l.result
	return &result, l.failing
}

func (l *ledger) Refunded(by desk.OperatorRequest, payment, refund [64]byte) (*desk.Result, error) {
	return l.act(by, fmt.Sprintf("refunded %x %x", payment[:2], refund[:2]))
}

func (l *ledger) Abandon(by desk.OperatorRequest, claim market.ClaimID) (*desk.Result, error) {
	return l.act(by, "abandon "+gatewaytest.ClaimText(claim))
}

func (l *ledger) Release(_ context.Context, by desk.OperatorRequest, claim market.ClaimID) (*desk.Result, error) {
	return l.act(by, "release "+gatewaytest.ClaimText(claim))
}

func (l *ledger) ResolveUnmatched(by desk.OperatorRequest, payment [64]byte, note string) error {
	_, err := l.act(by, fmt.Sprintf("resolve %x %s", payment[:2], note))
	return err
}

func (l *ledger) Refund(by desk.OperatorRequest, s *desk.RefundSelection) (desk.RefundsOrdered, error) {
	_, err := l.act(by, fmt.Sprintf("refund %x claim %d rail %d under %d dry %v", s.Payment[:2], s.Claim, s.Rail, s.Under, s.DryRun))
	out := desk.RefundsOrdered{Before: 1}
	out.Count[market.RailUSDC], out.Atoms[market.RailUSDC] = 2, 1_500_000
	return out, err
}

func newMoneyRig(t testing.TB) (*operatorRig, *ledger) {
	t.Helper()
	rig, l := newOperatorRig(t), &ledger{items: map[desk.MoneyKind][]desk.MoneyItem{}}
	o := rig.options(t)
	o.Money = l
	rig.mux = http.NewServeMux()
	rig.op = newEndpoints(o, wire.NewRequestIDs(), slog.New(slog.DiscardHandler))
	rig.op.register(rig.mux)
	return rig, l
}

func signed(n byte) [64]byte { return [64]byte{n, 63: 1} }

func signedText(n byte) string {
	s := signed(n)
	return base58.Encode(s[:])
}

// TestMoneyList: each kind in JSON, and paging.
func TestMoneyList(t *testing.T) {
	rig, l := newMoneyRig(t)
	for n := byte(1); n <= 5; n++ {
		l.items[desk.MoneyRefundDue] = append(l.items[desk.MoneyRefundDue], desk.MoneyItem{
			Signature: signed(n), Claim: 78, Rail: market.RailUSDC, Amount: 250_000_001, Payer: gatewaytest.Address(9), Slot: 4242, At: gatewaytest.ViewTime, Reason: "late_payment",
		})
		l.items[desk.MoneyDeliveryFailing] = append(l.items[desk.MoneyDeliveryFailing], desk.MoneyItem{
			Signature: signed(n), Claim: market.ClaimID(77 + n), Rail: market.RailSOL, Amount: 1, Payer: gatewaytest.Address(9), Slot: 7, At: gatewaytest.ViewTime,
			Reason: "no_such_account", Attempts: 3, Delivery: signed(9),
		})
		l.items[desk.MoneyOutcomeUnknown] = append(l.items[desk.MoneyOutcomeUnknown], desk.MoneyItem{
			Claim: market.ClaimID(77 + n), Rail: market.RailUSDC, Amount: 250_000_001, Payer: gatewaytest.Address(9), At: gatewaytest.ViewTime,
			Reason: "history_too_long", Delivery: signed(9),
		})
	}
	l.items[desk.MoneyUnmatched] = []desk.MoneyItem{{Signature: signed(1), Amount: 18_446_744_073_709_551_615, At: gatewaytest.ViewTime, Reason: "wrong_mint"}}
	var all struct {
		OK     bool
		Counts map[string]int
		Lists  map[string]struct {
			Items []json.RawMessage
			Next  *string
		}
	}
	get := func(query string) string {
		t.Helper()
		w := rig.send("GET", "/desk/money"+query, "", annToken)
		all.Lists = nil
		if err := json.Unmarshal(w.Body.Bytes(), &all); err != nil || w.Code != 200 || !all.OK || w.Header().Get("Cache-Control") != "no-store" {
			t.Fatalf("%s: %d %v %s", query, w.Code, err, w.Body)
		}
		return w.Body.String()
	}
	get("")
	if all.Counts["refunds_due"] != 5 || all.Counts["stuck_deliveries"] != 5 || all.Counts["strays"] != 1 || all.Counts["doubtful"] != 5 || len(all.Lists) != 5 {
		t.Errorf("counts %v, %d lists", all.Counts, len(all.Lists))
	}
	for kind, want := range map[string]string{
		"refunds_due": `{"l1_signature":"` + signedText(1) + `","claim_id":"C000000000002e","reason":"late_payment","rail":"USDC",` +
			`"amount":"250.000001","amount_atoms":"250000001","payer":"` + gatewaytest.AddressText(gatewaytest.Address(9)) + `","slot":4242,` +
			`"at":"2026-11-20T12:00:04.123Z","attempts":0,"delivery_signature":null,"refund_signature":null,"refund_ordered_by":null,"refund_problem":null}`,
		"stuck_deliveries": `{"l1_signature":"` + signedText(1) + `","claim_id":"C000000000002e","reason":"no_such_account","rail":"SOL",` +
			`"amount":"0.000000001","amount_atoms":"1","payer":"` + gatewaytest.AddressText(gatewaytest.Address(9)) + `","slot":7,` +
			`"at":"2026-11-20T12:00:04.123Z","attempts":3,"delivery_signature":"` + signedText(9) + `","refund_signature":null,"refund_ordered_by":null,"refund_problem":null}`,
		"doubtful": `{"l1_signature":null,"claim_id":"C000000000002e","reason":"history_too_long","rail":"USDC",` +
			`"amount":"250.000001","amount_atoms":"250000001","payer":"` + gatewaytest.AddressText(gatewaytest.Address(9)) + `","slot":null,` +
			`"at":"2026-11-20T12:00:04.123Z","attempts":0,"delivery_signature":"` + signedText(9) + `","refund_signature":null,"refund_ordered_by":null,"refund_problem":null}`,
		"strays": `{"l1_signature":"` + signedText(1) + `","claim_id":null,"reason":"wrong_mint","rail":null,"amount":null,` +
			`"amount_atoms":"18446744073709551615","payer":null,"slot":null,"at":"2026-11-20T12:00:04.123Z","attempts":0,"delivery_signature":null,"refund_signature":null,"refund_ordered_by":null,"refund_problem":null}`,
	} {
		if list := all.Lists[kind]; len(list.Items) == 0 || string(list.Items[0]) != want || list.Next != nil {
			t.Errorf("%s: %s, next %v\nwant %s", kind, list.Items, list.Next, want)
		}
	}
	for _, kind := range []string{"refunds_due", "stuck_deliveries", "doubtful"} {
		var seen []string
		query := "?kind=" + kind + "&limit=2"
		for after := ""; ; {
			get(query + after)
			list := all.Lists[kind]
			for _, item := range list.Items {
				seen = append(seen, string(item))
			}
			if len(all.Lists) != 1 || len(list.Items) > 2 {
				t.Fatalf("%s: %d lists, %d items", kind, len(all.Lists), len(list.Items))
			}
			if list.Next == nil {
				break
			}
			after = "&after=" + *list.Next
		}
		slices.Sort(seen)
		if len(seen) != 5 || len(slices.Compact(seen)) != 5 {
			t.Errorf("%s by pages: %v", kind, seen)
		}
	}
	get("?limit=1")
	if list := all.Lists["stuck_deliveries"]; len(list.Items) != 1 || *list.Next != "C000000000002e" {
		t.Errorf("one of each: %+v", list)
	}
	get("?limit=5&kind=refunds_due")
	if list := all.Lists["refunds_due"]; len(list.Items) != 5 || list.Next != nil {
		t.Errorf("all that there are: %+v", list)
	}
	l.items = nil
	if body := get(""); strings.Count(body, `{"items":[],"next":null}`) != 5 {
		t.Errorf("nothing: %s", body)
	}
}

// TestWrongMoneyQueries: each parameter in each invalid form.
func TestWrongMoneyQueries(t *testing.T) {
	rig, l := newMoneyRig(t)
	for query, want := range map[string][2]string{
		"?kind=refunds":                         {wire.CodeInvalidField, "kind"},
		"?kind=strays&kind=strays":              {wire.CodeInvalidField, "kind"},
		"?after=" + signedText(1):               {wire.CodeInvalidField, "after"},
		"?kind=strays&after=C000000000002e":     {wire.CodeInvalidField, "after"},
		"?kind=stuck_deliveries&after=C1":       {wire.CodeInvalidField, "after"},
		"?kind=doubtful&after=" + signedText(1): {wire.CodeInvalidField, "after"},
		"?kind=refunds_due&after=%22%3Cscript":  {wire.CodeInvalidField, "after"},
		"?limit=0":                              {wire.CodeInvalidLimit, "limit"},
		"?limit=501":                            {wire.CodeInvalidLimit, "limit"},
		"?limit=-1":                             {wire.CodeInvalidLimit, "limit"},
		"?limit=1&limit=1":                      {wire.CodeInvalidField, "limit"},
		"?limit=99999999999999999999":           {wire.CodeInvalidLimit, "limit"},
	} {
		w := rig.send("GET", "/desk/money"+query, "", annToken)
		if e := gatewaytest.DecodeError(t, w.Body.Bytes()); w.Code != 400 || e.Code != want[0] || e.Field != want[1] {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
	if w := rig.send("GET", `/desk/money?%22,%22x=1&%22,%22x=2&limit=500`, "", annToken); w.Code != 200 || !json.Valid(w.Body.Bytes()) {
		t.Errorf("a name that tries to break out: %d %s", w.Code, w.Body)
	}
	l.failing = errors.New("the store is on fire")
	w := rig.send("GET", "/desk/money", "", annToken)
	if l.items[desk.MoneyDeliveryFailing] = nil; w.Code != 500 || strings.Contains(w.Body.String(), "fire") {
		t.Errorf("a store that fails: %d %s", w.Code, w.Body)
	}
}

// TestMoneyActs: the settlement call of each body, with operator and key, and the
// answers.
func TestMoneyActs(t *testing.T) {
	rig, l := newMoneyRig(t)
	l.result = desk.Result{
		Payment: &rfq.Payment{
			Signature: signed(1), Claim: 78, Rail: market.RailUSDC, State: rfq.PaymentRefunded, Reason: event.ReasonLatePayment, Amount: 7, Slot: 8, At: gatewaytest.ViewTime,
		},
		Claim: &rfq.Claim{ID: 78, State: rfq.ClaimRefundDue},
	}
	for _, c := range []struct{ path, body, act, want string }{
		{
			"/desk/money/refunded", `{"l1_signature":"` + signedText(1) + `","refund_signature":"` + signedText(2) + `"}`, "2 bob refunded 0100 0200",
			`{"ok":true,"payment":{"l1_signature":"` + signedText(1) + `","state":"refunded","reason":"late_payment","rail":"USDC","amount":"0.000007",` +
				`"amount_atoms":"7","applied_amount":"0.000000","applied_amount_atoms":"0","refund_amount":"0.000007","refund_amount_atoms":"7",` +
				`"payer":null,"slot":8,"block_time":null,"at":"2026-11-20T12:00:04.123Z"}}`,
		},
		{
			"/desk/money/abandon", `{"claim_id":"C000000000002e"}`, "2 bob abandon C000000000002e",
			`{"ok":true,"claim_id":"C000000000002e","state":"refund_due"}`,
		},
		{
			"/desk/money/release", `{"claim_id":"C000000000002e","confirm":true}`, "2 bob release C000000000002e",
			`{"ok":true,"claim_id":"C000000000002e","state":"refund_due"}`,
		},
		{
			"/desk/money/resolve", `{"note":"sent back by hand, <b>","l1_signature":"` + signedText(3) + `"}`, "2 bob resolve 0300 sent back by hand, <b>",
			`{"ok":true,"l1_signature":"` + signedText(3) + `"}`,
		},
	} {
		w := rig.send("POST", c.path, c.body, bobToken, "Idempotency-Key", "k")
		if w.Code != 200 || strings.TrimSpace(w.Body.String()) != c.want || l.acts[len(l.acts)-1] != c.act {
			t.Errorf("%s: %d %s, acts %v\nwant %s", c.path, w.Code, w.Body, l.acts, c.want)
		}
		if rig.send("POST", c.path, c.body, bobToken); l.keys[len(l.keys)-2] == (rfq.IdempotencyKey{}) || l.keys[len(l.keys)-1] != (rfq.IdempotencyKey{}) {
			t.Errorf("%s: keys %x", c.path, l.keys[len(l.keys)-2:])
		}
	}
	l.result.Replayed = true
	if w := rig.send("POST", "/desk/money/abandon", `{"claim_id":"C000000000002e"}`, bobToken); w.Header().Get("Idempotency-Replayed") != "true" {
		t.Errorf("replayed: %v", w.Header())
	}
}

// TestWrongMoneyActs: invalid bodies, refusals and failures; a token is required.
func TestWrongMoneyActs(t *testing.T) {
	rig, l := newMoneyRig(t)
	right := map[string]string{
		"/desk/money/refunded": `{"l1_signature":"` + signedText(1) + `","refund_signature":"` + signedText(2) + `"}`,
		"/desk/money/abandon":  `{"claim_id":"C000000000002e"}`,
		"/desk/money/release":  `{"claim_id":"C000000000002e","confirm":true}`,
		"/desk/money/resolve":  `{"l1_signature":"` + signedText(1) + `","note":"n"}`,
	}
	for _, c := range []struct{ path, from, to, code, field string }{
		{"/desk/money/refunded", signedText(1), "", wire.CodeMissingField, "l1_signature"},
		{"/desk/money/refunded", signedText(2), "", wire.CodeMissingField, "refund_signature"},
		{"/desk/money/refunded", signedText(1), "x", wire.CodeInvalidField, "l1_signature"},
		{"/desk/money/refunded", signedText(2), base58.Encode(make([]byte, 64)), wire.CodeInvalidField, "refund_signature"},
		{"/desk/money/refunded", signedText(2), signedText(1), wire.CodeInvalidField, "refund_signature"},
		{"/desk/money/refunded", "}", `,"rail":"SOL"}`, wire.CodeInvalidField, "rail"},
		{"/desk/money/abandon", "C000000000002e", "", wire.CodeMissingField, "claim_id"},
		{"/desk/money/abandon", "C000000000002e", "B000000000002e", wire.CodeUnknownClaim, "claim_id"},
		{"/desk/money/abandon", `"C000000000002e"`, "78", wire.CodeInvalidField, "claim_id"},
		{"/desk/money/release", "true", "false", wire.CodeInvalidField, "confirm"},
		{"/desk/money/release", `,"confirm":true`, "", wire.CodeInvalidField, "confirm"},
		{"/desk/money/release", "C000000000002e", "", wire.CodeMissingField, "claim_id"},
		{"/desk/money/release", "C000000000002e", "B000000000002e", wire.CodeUnknownClaim, "claim_id"},
		{"/desk/money/resolve", `"n"`, `""`, wire.CodeMissingField, "note"},
		{"/desk/money/resolve", `"n"`, `"` + strings.Repeat("n", MaxNote+1) + `"`, wire.CodeInvalidField, "note"},
		{"/desk/money/resolve", `"n"`, `"caf\u00e9"`, wire.CodeInvalidField, "note"},
		{"/desk/money/resolve", `"n"`, `"a\nb"`, wire.CodeInvalidField, "note"},
		{"/desk/money/resolve", signedText(1), "C000000000002e", wire.CodeInvalidField, "l1_signature"},
		{"/desk/money/resolve", right["/desk/money/resolve"], "[]", wire.CodeInvalidJSON, ""},
	} {
		w := rig.send("POST", c.path, strings.Replace(right[c.path], c.from, c.to, 1), annToken)
		if e := gatewaytest.DecodeError(t, w.Body.Bytes()); w.Code < 400 || e.Code != c.code || e.Field != c.field {
			t.Errorf("%s %s: %d %s", c.path, c.to, w.Code, w.Body)
		}
	}
	if len(l.acts) != 0 {
		t.Fatalf("acts %v", l.acts)
	}
	longest := strings.Replace(right["/desk/money/resolve"], `"n"`, `"`+strings.Repeat("n", MaxNote)+`"`, 1)
	if w := rig.send("POST", "/desk/money/resolve", longest, annToken); w.Code != 200 {
		t.Errorf("the longest note: %d %s", w.Code, w.Body)
	}
	for path, body := range right {
		for _, c := range []struct {
			err    error
			status int
			code   string
		}{{desk.ErrBusy, 503, wire.CodeOverloaded}, {desk.ErrConflict, 409, wire.CodeIdempotencyConflict}, {errors.New("on fire"), 500, wire.CodeInternal}} {
			l.failing = c.err
			w := rig.send("POST", path, body, annToken)
			if e := gatewaytest.DecodeError(t, w.Body.Bytes()); w.Code != c.status || e.Code != c.code || strings.Contains(w.Body.String(), "fire") {
				t.Errorf("%s: %v: %d %s", path, c.err, w.Code, w.Body)
			}
		}
		l.failing = nil
		for _, token := range []string{"", annToken + "x"} {
			if w := rig.send("POST", path, body, token); w.Code != 401 {
				t.Errorf("%s with token %q: %d", path, token, w.Code)
			}
		}
		if w := rig.send("GET", path, "", annToken); w.Code != 405 || w.Header().Get("Allow") != "POST" {
			t.Errorf("GET %s: %d %v", path, w.Code, w.Header())
		}
	}
	l.failing = desk.ErrNotUnmatched
	w := rig.send("POST", "/desk/money/resolve", right["/desk/money/resolve"], annToken)
	if e := gatewaytest.DecodeError(t, w.Body.Bytes()); w.Code != 404 || e.Code != wire.CodeUnknownClaim || e.Reason != "unknown_payment" {
		t.Errorf("no such unmatched payment: %d %s", w.Code, w.Body)
	}
	l.failing = desk.ErrOutcomeKnown
	w = rig.send("POST", "/desk/money/release", right["/desk/money/release"], annToken)
	if e := gatewaytest.DecodeError(t, w.Body.Bytes()); w.Code != 409 || e.Reason != "claim_state" {
		t.Errorf("not in doubt: %d %s", w.Code, w.Body)
	}
	l.failing, l.result.Reason = nil, event.ReasonPaymentUsed
	w = rig.send("POST", "/desk/money/refunded", right["/desk/money/refunded"], annToken)
	if e := gatewaytest.DecodeError(t, w.Body.Bytes()); w.Code != 409 || e.Code != wire.CodePaymentUsed {
		t.Errorf("not due: %d %s", w.Code, w.Body)
	}
	if w := newOperatorRig(t).send("GET", "/desk/money", "", annToken); w.Code != 404 {
		t.Errorf("without a settlement: %d %s", w.Code, w.Body)
	}
}

// TestOrderRefunds: an order selects one payment or, by name, all with conditions; anything
// else is refused before it is asked for.
func TestOrderRefunds(t *testing.T) {
	rig, l := newMoneyRig(t)
	claim := gatewaytest.ClaimText(78)
	for body, want := range map[string]string{
		`{"l1_signature":"` + signedText(1) + `"}`: "refund 0100 claim 0 rail 0 under 0 dry false",
		`{"all":true}`: "refund 0000 claim 0 rail 0 under 0 dry false",
		`{"all":true,"under_usd":"99.5","rail":"SOL","claim_id":"` + claim + `","dry_run":true}`: "refund 0000 claim 78 rail 2 under 99500000 dry true",
	} {
		l.acts = nil
		w := rig.send("POST", "/desk/money/refund", body, annToken)
		if w.Code != 200 || len(l.acts) != 1 || !strings.HasSuffix(l.acts[0], want) {
			t.Errorf("%s: %d %s, acts %q", body, w.Code, w.Body, l.acts)
		}
		if got := w.Body.String(); !strings.Contains(got, `"ordered_before":1,"ordered":{"SOL":{"count":0,"amount":"0.000000000","amount_atoms":"0"},"USDC":{"count":2,"amount":"1.500000","amount_atoms":"1500000"}}`) {
			t.Errorf("%s: %s", body, got)
		}
	}
	l.acts = nil
	for _, body := range []string{
		`{}`, `{"all":false}`, `{"all":true,"l1_signature":"` + signedText(1) + `"}`, `{"l1_signature":"x"}`, `{"all":true,"rail":"EUR"}`,
		`{"all":true,"under_usd":"0"}`, `{"all":true,"under_usd":"-1"}`, `{"all":true,"under_usd":"0.0000001"}`, `{"all":true,"claim_id":"x"}`,
	} {
		if w := rig.send("POST", "/desk/money/refund", body, annToken); w.Code < 400 || w.Code >= 500 {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
	if len(l.acts) != 0 {
		t.Errorf("acts %q", l.acts)
	}
	l.failing = desk.ErrNoRefundDue
	if w := rig.send("POST", "/desk/money/refund", `{"l1_signature":"`+signedText(1)+`"}`, annToken); w.Code != 404 && w.Code != 409 {
		t.Errorf("not due: %d %s", w.Code, w.Body)
	}
}
