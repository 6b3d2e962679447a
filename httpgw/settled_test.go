package httpgw

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go/base58"

	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw/gatewaytest"
	rfqapi "blockdesk/httpgw/rfq"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// TestVerifyPayment: the HTTP answer to each verdict of the settlement.
func TestVerifyPayment(t *testing.T) {
	claim := &rfq.Claim{
		ID: 78, Mode: rfq.Modular, State: rfq.ClaimPaid, Wallet: gatewaytest.Address(9),
		Terms: rfq.Terms{Ticket: 7, Tranche: 2, Fill: 1, Rail: market.RailUSDC, Base: 250_626_566, Payment: 250_000_001},
	}
	payment := &rfq.Payment{
		Signature: [64]byte{1, 2}, Claim: 78, Rail: market.RailUSDC, State: rfq.PaymentApplied, Amount: 250_000_001,
		Payer: gatewaytest.Address(9), Slot: 4242, At: gatewaytest.ViewTime,
	}
	for _, c := range []struct {
		name         string
		chain        *fakeChain
		status       int
		code, reason string
		retry        string
		members      []string // that the body must have
	}{
		{
			name: "pending", chain: &fakeChain{verdict: desk.Verdict{Pending: 1500 * time.Millisecond}}, status: 202, retry: "2",
			members: []string{`{"ok":true,"state":"pending","retry_after_ms":1500}`},
		},
		{
			name: "paid", chain: &fakeChain{verdict: desk.Verdict{Claim: claim, Payment: payment}}, status: 200,
			members: []string{
				`{"ok":true,"claim_id":"C000000000002e","state":"paid","verified":true,"payment":{"l1_signature":"`,
				`"state":"applied","reason":null,"rail":"USDC","amount":"250.000001","amount_atoms":"250000001",` +
					`"applied_amount":"250.000001","applied_amount_atoms":"250000001","refund_amount":"0.000000","refund_amount_atoms":"0","payer":"`,
				`"slot":4242,"block_time":null,"at":"2026-11-20T12:00:04.123Z"}`,
				`"delivery":{"to":"`, `"amount":"250.626566","amount_atoms":"250626566","l1_signature":null}}`,
			},
		},
		{
			name: "delivered", chain: &fakeChain{verdict: desk.Verdict{Claim: claim, Payment: payment, Delivery: [64]byte{1}}},
			status: 200, members: []string{`"l1_signature":"2`},
		},
		{
			name: "short", chain: &fakeChain{verdict: desk.Verdict{Refused: event.ReasonPaymentMismatch, Mismatch: "amount_short"}},
			status: 422, code: wire.CodePaymentMismatch, reason: "amount_short",
		},
		{
			name: "used", chain: &fakeChain{verdict: desk.Verdict{Refused: event.ReasonPaymentUsed, Replayed: true}},
			status: 409, code: wire.CodePaymentUsed, reason: "payment_used",
		},
		{name: "no node", chain: &fakeChain{failing: errors.New("dial 10.0.0.7")}, status: 503, code: wire.CodeChainUnavailable, retry: "10"},
		{name: "conflict", chain: &fakeChain{failing: desk.ErrConflict}, status: 409, code: wire.CodeIdempotencyConflict},
		{name: "busy", chain: &fakeChain{failing: desk.ErrBusy}, status: 503, code: wire.CodeOverloaded, reason: "busy", retry: "1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWriter(t, c.chain)
			got := w.post(t, rfqapi.PathNativeVerify, paymentBody)
			if got.status != c.status || got.header.Get("Retry-After") != c.retry || bytes.Contains(got.body, []byte("10.0.0.7")) {
				t.Errorf("status %d %v: %s", got.status, got.header, got.body)
			}
			if c.code != "" {
				if e := gatewaytest.DecodeError(t, got.body); e.Code != c.code || e.Reason != c.reason {
					t.Errorf("%s", got.body)
				}
			} else if !json.Valid(got.body) {
				t.Errorf("%s", got.body)
			}
			for _, member := range c.members {
				if !strings.Contains(string(got.body), member) {
					t.Errorf("no %s in %s", member, got.body)
				}
			}
			if replayed := got.header.Get("Idempotency-Replayed") == "true"; replayed != c.chain.verdict.Replayed {
				t.Errorf("replayed: %v", replayed)
			}
		})
	}
}

// TestPaymentProof: what reaches the settlement from each surface, also for a removed
// ticket.
func TestPaymentProof(t *testing.T) {
	chain := &fakeChain{verdict: desk.Verdict{Pending: time.Second}}
	w := newWriter(t, chain)
	full := strings.Replace(paymentBody, "}", `,"claim_id":"`+gatewaytest.ClaimText(78)+
		`","ticket_label":"spring block","fill_usd":1000,"payment_rail":"SOL"}`, 1)
	removed := strings.ReplaceAll(paymentBody, "T7", "T3")
	proof := func(at int, path, body string) desk.PaymentProof {
		t.Helper()
		if got := do(t, w.handlers[at], postText(path, body, "Idempotency-Key: k")); got.status != 202 {
			t.Fatalf("%s: status %d: %s", path, got.status, got.body)
		}
		return chain.proofs[len(chain.proofs)-1]
	}
	bytesOf, _ := wire.ParseSignature([]byte(signature))
	bare := proof(0, rfqapi.PathNativeVerify, paymentBody)
	if want := (desk.PaymentProof{Ticket: 7, Tranche: 2, Signature: bytesOf, Key: bare.Key}); bare != want || bare.Key == (rfq.IdempotencyKey{}) {
		t.Errorf("bare: %+v", bare)
	}
	for at, path := range []string{rfqapi.PathAliasVerify, rfqapi.PathFallbackVerify} {
		if other := proof(at, path, paymentBody); other != bare {
			t.Errorf("%s: %+v, want %+v", path, other, bare)
		}
	}
	all := proof(0, rfqapi.PathNativeVerify, full)
	want := desk.PaymentProof{
		Ticket: 7, Tranche: 2, Signature: bytesOf, Claim: 78, Fill: 2, Rail: market.RailSOL, Key: all.Key,
	}
	if all != want || all.Key.ID != bare.Key.ID || all.Key.Body == bare.Key.Body {
		t.Errorf("full: %+v", all)
	}
	if old := proof(0, rfqapi.PathNativeVerify, removed); old.Ticket != 3 {
		t.Errorf("gone: %+v", old)
	}
	w = newWriter(t, nil)
	got := w.post(t, rfqapi.PathNativeVerify, removed)
	if e := gatewaytest.DecodeError(t, got.body); got.status != 404 || e.Code != wire.CodeUnknownTicket {
		t.Errorf("gone, and no chain: status %d: %s", got.status, got.body)
	}
}

// TestClaimHistory: the JSON of a claim, and unknown claims.
func TestClaimHistory(t *testing.T) {
	chain := &fakeChain{}
	w := newWriter(t, chain)
	c := gatewaytest.Grant(w.desk.Current, &rfq.TakeClaim{Ticket: 7, Tranche: 2, Fill: 1, Rail: market.RailUSDC, Mode: rfq.Modular, Wallet: gatewaytest.Address(9)}).Claim
	later := *c
	later.State, later.ChangedAt, later.Paid = rfq.ClaimRefundDue, gatewaytest.ViewTime+5e9, 250_000_001
	w.desk.History[c.ID] = &desk.History{
		Claim: later, States: []rfq.Claim{*c, later},
		Payments: []rfq.Payment{{Signature: [64]byte{7}, Claim: c.ID, Rail: market.RailUSDC, State: rfq.PaymentRefundDue, Reason: event.ReasonLatePayment, Amount: 1}},
	}
	for _, d := range w.handlers[:2] {
		got := do(t, d, "GET "+claimsPath+gatewaytest.ClaimText(c.ID)+" HTTP/1.1\r\nHost: test\r\n\r\n")
		var a struct {
			claimAnswer
			Paid    string `json:"paid_atoms"`
			History []struct {
				State string
				At    time.Time
			}
			Payments []struct{ State, Reason string }
		}
		if err := json.Unmarshal(got.body, &a); err != nil || got.status != 200 {
			t.Fatalf("status %d %v: %s", got.status, err, got.body)
		}
		if a.ClaimID != gatewaytest.ClaimText(c.ID) || a.State != "refund_due" || a.Paid != "250000001" || a.Claim.Order != "T7" {
			t.Errorf("%s", got.body)
		}
		if len(a.History) != 2 || a.History[0].State != "reserved" || a.History[1].State != "refund_due" || !a.History[1].At.After(a.History[0].At) {
			t.Errorf("history %+v", a.History)
		}
		if len(a.Payments) != 1 || a.Payments[0].State != "refund_due" || a.Payments[0].Reason != "late_payment" {
			t.Errorf("payments %+v", a.Payments)
		}
		etag := got.header.Get("ETag")
		again := do(t, d, "GET "+claimsPath+gatewaytest.ClaimText(c.ID)+" HTTP/1.1\r\nHost: test\r\nIf-None-Match: "+etag+"\r\n\r\n")
		if etag == "" || again.status != 304 {
			t.Errorf("with its ETag %q: status %d", etag, again.status)
		}
	}
	for delivery, want := range map[[64]byte]string{{}: "null", {1}: `"` + base58.Encode(append([]byte{1}, make([]byte, 63)...)) + `"`} {
		chain.delivery = delivery
		got := do(t, w.handlers[0], "GET "+claimsPath+gatewaytest.ClaimText(c.ID)+" HTTP/1.1\r\nHost: test\r\n\r\n")
		want = `"delivery":{"to":"` + gatewaytest.AddressText(gatewaytest.Address(9)) + `","mint":"` + gatewaytest.AddressText(gatewaytest.Address(1)) +
			`","amount":"250.626566","amount_atoms":"250626566","l1_signature":` + want + `},"history":[`
		if !strings.Contains(string(got.body), want) {
			t.Errorf("no %s in %s", want, got.body)
		}
	}
	chain.lost = errors.New("the settlement's store is on fire")
	lost := do(t, w.handlers[0], "GET "+claimsPath+gatewaytest.ClaimText(c.ID)+" HTTP/1.1\r\nHost: test\r\n\r\n")
	if e := gatewaytest.DecodeError(t, lost.body); lost.status != 500 || e.Code != wire.CodeInternal || strings.Contains(string(lost.body), "fire") {
		t.Errorf("a lost delivery: status %d: %s", lost.status, lost.body)
	}
	for segment, code := range map[string]string{
		gatewaytest.ClaimText(79): wire.CodeUnknownClaim, "nope": wire.CodeUnknownClaim, strings.Repeat("x", wire.MaxSegment): wire.CodeUnknownClaim,
		gatewaytest.ClaimText(gatewaytest.UnreadableClaim): wire.CodeInternal,
		strings.Repeat("x", wire.MaxSegment+1):             wire.CodeUnknownRoute, "": wire.CodeUnknownRoute, ".": wire.CodeUnknownRoute, "..": wire.CodeUnknownRoute,
		"a/b": wire.CodeUnknownRoute, "a%62": wire.CodeUnknownRoute, "a;b": wire.CodeUnknownRoute, "../claims/" + gatewaytest.ClaimText(78): wire.CodeUnknownRoute,
	} {
		got := do(t, w.handlers[0], "GET "+claimsPath+segment+" HTTP/1.1\r\nHost: test\r\n\r\n")
		status := map[string]int{wire.CodeUnknownClaim: 404, wire.CodeUnknownRoute: 404, wire.CodeInternal: 500}[code]
		if e := gatewaytest.DecodeError(t, got.body); got.status != status || e.Code != code || strings.Contains(string(got.body), "fire") {
			t.Errorf("%q: status %d: %s", segment, got.status, got.body)
		}
	}
}

// TestWriteRoutes: the addresses and methods of each writing route, over sockets.
func TestWriteRoutes(t *testing.T) {
	b := gatewaytest.NewBooks(t)
	deps := testDependencies()
	deps.Desk = &gatewaytest.ScriptedDesk{Current: gatewaytest.FixedView()}
	deps.Settlement = &fakeChain{verdict: desk.Verdict{Pending: time.Second}}
	g := start(t, testOptions(b), b, deps)
	addrs := map[wire.Surface]net.Addr{wire.OnBase: g.BaseAddr(), wire.OnAPI: g.APIAddr(), wire.OnWS: g.WSAddr()}
	const both = wire.OnBase | wire.OnAPI
	for _, row := range []struct {
		path, body string
		on         wire.Surface
		status     int
	}{
		{rfqapi.PathRFQ + "quote", quoteBody, both, 200},
		{"/api/v1/rfq/modular-claim-take", claimBody, both, 200},
		{"/api/v1/rfq/atomic-claim-ticket", claimBody, both, 200},
		{"/rfq-native/modular-claim-take", claimBody, wire.OnBase, 200},
		{"/rfq-native/atomic-claim-ticket", claimBody, wire.OnBase, 200},
		{"/rfq-native/settlement/verify-payment", paymentBody, wire.OnBase, 202},
		{"/api/v1/rfq/native/settlement/verify-payment", paymentBody, wire.OnBase, 202},
		{"/api/v1/rfq/settlement/verify-payment", paymentBody, wire.OnAPI, 202},
		{"/rfq-native/quote", quoteBody, 0, 404},
	} {
		for on, addr := range addrs {
			want := map[string]int{"POST": row.status, "GET": 405, "PUT": 405, "OPTIONS": 204}
			for method, status := range want {
				if row.on&on == 0 {
					status = 404
				}
				raw := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
					method, row.path, len(row.body), row.body)
				resp, body := gatewaytest.Exchange(t, addr, raw)
				where := wire.SurfaceNames[on] + " " + method + " " + row.path
				if resp.StatusCode != status {
					t.Errorf("%s: status %d, want %d: %s", where, resp.StatusCode, status, body)
					continue
				}
				checkHeaders(t, where, resp.Header)
				if allow := resp.Header.Get("Allow"); status == 405 && allow != "POST, OPTIONS" {
					t.Errorf("%s: Allow %q", where, allow)
				}
				if status >= 400 {
					gatewaytest.DecodeError(t, body)
				}
			}
		}
	}
}

// TestDeskBeforeItsFirstView: an empty view is served without errors.
func TestDeskBeforeItsFirstView(t *testing.T) {
	w := newWriter(t, &fakeChain{})
	w.desk.Current = nil
	for path, body := range map[string]string{rfqapi.PathRFQ + "quote": quoteBody, rfqapi.PathModular: claimBody} {
		got := w.post(t, path, body)
		if e := gatewaytest.DecodeError(t, got.body); got.status != 404 || e.Code != wire.CodeUnknownTicket {
			t.Errorf("%s: status %d: %s", path, got.status, got.body)
		}
	}
}

// TestWriteLimit: RFQ writes share their own bucket over all routes and addresses;
// reads of the same path use the other one.
func TestWriteLimit(t *testing.T) {
	b := gatewaytest.NewBooks(t)
	clock := &manualClock{}
	o := testOptions(b)
	o.NoLimits, o.Clock = false, clock.read
	deps := testDependencies()
	deps.Desk = &gatewaytest.ScriptedDesk{Current: gatewaytest.FixedView()}
	g := start(t, o, b, deps)
	paths := []string{rfqapi.PathRFQ + "quote", rfqapi.PathModular, rfqapi.PathAtomic}
	for i := range 10 {
		addr := []net.Addr{g.BaseAddr(), g.APIAddr()}[i%2]
		resp, _ := gatewaytest.Exchange(t, addr, postText(paths[i%3], []string{quoteBody, claimBody, "{"}[i%3]))
		left := fmt.Sprint(9 - i)
		for name, want := range map[string]string{
			"RateLimit-Policy": `"rfq-write";q=30;w=60;burst=10`, "RateLimit": fmt.Sprintf(`"rfq-write";r=%s;t=%d`, left, 2*(i+1)),
			"X-RateLimit-Limit": "30", "X-RateLimit-Remaining": left, "X-RateLimit-Reset": fmt.Sprint(2 * (i + 1)),
		} {
			if got := resp.Header.Get(name); got != want {
				t.Errorf("request %d: %s: %q, want %q", i+1, name, got, want)
			}
		}
	}
	for range 3 {
		resp, body := gatewaytest.Exchange(t, g.BaseAddr(), postText(rfqapi.PathRFQ+"quote", quoteBody))
		if e := gatewaytest.DecodeError(t, body); resp.StatusCode != 429 || e.Code != wire.CodeRateLimited || resp.Header.Get("Retry-After") != "2" {
			t.Fatalf("request 11: status %d %v", resp.StatusCode, resp.Header)
		}
	}
	resp, _ := gatewaytest.Do(t, g.BaseAddr(), "GET", claimsPath+gatewaytest.ClaimText(1), "")
	if resp.StatusCode != 404 || resp.Header.Get("RateLimit") != `"market";r=19;t=1` {
		t.Errorf("a read: status %d, RateLimit %q", resp.StatusCode, resp.Header.Get("RateLimit"))
	}
	clock.now += int64(2 * time.Second)
	if resp, body := gatewaytest.Exchange(t, g.BaseAddr(), postText(rfqapi.PathRFQ+"quote", quoteBody)); resp.StatusCode != 200 {
		t.Errorf("two seconds later: status %d: %s", resp.StatusCode, body)
	}
}
