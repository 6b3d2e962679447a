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

	"github.com/mr-tron/base58"

	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// TestVerifyPayment: what each verdict of the settlement is on the wire.
func TestVerifyPayment(t *testing.T) {
	claim := &rfq.Claim{
		ID: 78, Way: rfq.Modular, State: rfq.ClaimPaid, Wallet: address(9),
		Terms: rfq.Terms{Ticket: 7, Tranche: 2, Fill: 1, Rail: market.RailUSDC, Base: 250_626_566, Payment: 250_000_001},
	}
	payment := &rfq.Payment{
		Signature: [64]byte{1, 2}, Claim: 78, Rail: market.RailUSDC, State: rfq.PaymentApplied, Amount: 250_000_001,
		Payer: address(9), Slot: 4242, At: deskDay,
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
				`"state":"applied","reason":null,"rail":"USDC","amount":"250.000001","amount_atoms":"250000001","payer":"`,
				`"slot":4242,"at":"2026-11-20T12:00:04.123Z"}`,
				`"delivery":{"to":"`, `"amount":"250.626566","amount_atoms":"250626566","l1_signature":null}}`,
			},
		},
		{
			name: "delivered", chain: &fakeChain{verdict: desk.Verdict{Claim: claim, Payment: payment, Delivery: [64]byte{1}}},
			status: 200, members: []string{`"l1_signature":"2`},
		},
		{
			name: "short", chain: &fakeChain{verdict: desk.Verdict{Refused: event.ReasonPaymentMismatch, Mismatch: "amount_short"}},
			status: 422, code: codePaymentMismatch, reason: "amount_short",
		},
		{
			name: "used", chain: &fakeChain{verdict: desk.Verdict{Refused: event.ReasonPaymentUsed, Replayed: true}},
			status: 409, code: codePaymentUsed, reason: "payment_used",
		},
		{name: "no node", chain: &fakeChain{failing: errors.New("dial 10.0.0.7")}, status: 503, code: codeChainUnavailable, retry: "10"},
		{name: "conflict", chain: &fakeChain{failing: desk.ErrConflict}, status: 409, code: codeIdempotencyConflict},
		{name: "busy", chain: &fakeChain{failing: desk.ErrBusy}, status: 503, code: codeOverloaded, reason: "busy", retry: "1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWriter(t, c.chain)
			got := w.post(t, pathNativeVerify, paymentBody)
			if got.status != c.status || got.header.Get("Retry-After") != c.retry || bytes.Contains(got.body, []byte("10.0.0.7")) {
				t.Errorf("status %d %v: %s", got.status, got.header, got.body)
			}
			if c.code != "" {
				if e := decodeError(t, got.body); e.Code != c.code || e.Reason != c.reason {
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

// TestPaymentProof: what reaches the settlement, from each surface; a ticket
// that is long gone as well.
func TestPaymentProof(t *testing.T) {
	chain := &fakeChain{verdict: desk.Verdict{Pending: time.Second}}
	w := newWriter(t, chain)
	full := strings.Replace(paymentBody, "}", `,"claim_id":"`+claimText(78)+
		`","ticket_label":"spring block","fill_usd":1000,"payment_rail":"SOL"}`, 1)
	gone := strings.ReplaceAll(paymentBody, "T7", "T3")
	proof := func(at int, path, body string) desk.PaymentProof {
		t.Helper()
		if got := do(t, w.doors[at], postText(path, body, "Idempotency-Key: k")); got.status != 202 {
			t.Fatalf("%s: status %d: %s", path, got.status, got.body)
		}
		return chain.proofs[len(chain.proofs)-1]
	}
	bytesOf, _ := parseSignature([]byte(signature))
	bare := proof(0, pathNativeVerify, paymentBody)
	if want := (desk.PaymentProof{Ticket: 7, Tranche: 2, Signature: bytesOf, Key: bare.Key}); bare != want || bare.Key == (rfq.Key{}) {
		t.Errorf("bare: %+v", bare)
	}
	for at, path := range []string{pathAliasVerify, pathFallbackVerify} {
		if other := proof(at, path, paymentBody); other != bare {
			t.Errorf("%s: %+v, want %+v", path, other, bare)
		}
	}
	all := proof(0, pathNativeVerify, full)
	want := desk.PaymentProof{
		Ticket: 7, Tranche: 2, Signature: bytesOf, Claim: 78, Fill: 2, Rail: market.RailSOL, Key: all.Key,
	}
	if all != want || all.Key.ID != bare.Key.ID || all.Key.Body == bare.Key.Body {
		t.Errorf("full: %+v", all)
	}
	if old := proof(0, pathNativeVerify, gone); old.Ticket != 3 {
		t.Errorf("gone: %+v", old)
	}
	w = newWriter(t, nil)
	got := w.post(t, pathNativeVerify, gone)
	if e := decodeError(t, got.body); got.status != 404 || e.Code != codeUnknownTicket {
		t.Errorf("gone, and no chain: status %d: %s", got.status, got.body)
	}
}

// TestClaimHistory: a claim on the wire, and what is no claim.
func TestClaimHistory(t *testing.T) {
	chain := &fakeChain{}
	w := newWriter(t, chain)
	c := sell(w.desk.view, &rfq.TakeClaim{Ticket: 7, Tranche: 2, Fill: 1, Rail: market.RailUSDC, Way: rfq.Modular, Wallet: address(9)}).Claim
	later := *c
	later.State, later.ChangedAt, later.Paid = rfq.ClaimRefundDue, deskDay+5e9, 250_000_001
	w.desk.history[c.ID] = &desk.History{
		Claim: later, States: []rfq.Claim{*c, later},
		Payments: []rfq.Payment{{Signature: [64]byte{7}, Claim: c.ID, Rail: market.RailUSDC, State: rfq.PaymentRefundDue, Why: event.ReasonLatePayment, Amount: 1}},
	}
	for _, d := range w.doors[:2] {
		got := do(t, d, "GET "+claimsPath+claimText(c.ID)+" HTTP/1.1\r\nHost: test\r\n\r\n")
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
		if a.ClaimID != claimText(c.ID) || a.State != "refund_due" || a.Paid != "250000001" || a.Claim.Order != "T7" {
			t.Errorf("%s", got.body)
		}
		if len(a.History) != 2 || a.History[0].State != "reserved" || a.History[1].State != "refund_due" || !a.History[1].At.After(a.History[0].At) {
			t.Errorf("history %+v", a.History)
		}
		if len(a.Payments) != 1 || a.Payments[0].State != "refund_due" || a.Payments[0].Reason != "late_payment" {
			t.Errorf("payments %+v", a.Payments)
		}
		etag := got.header.Get("ETag")
		again := do(t, d, "GET "+claimsPath+claimText(c.ID)+" HTTP/1.1\r\nHost: test\r\nIf-None-Match: "+etag+"\r\n\r\n")
		if etag == "" || again.status != 304 {
			t.Errorf("with its ETag %q: status %d", etag, again.status)
		}
	}
	for delivery, want := range map[[64]byte]string{{}: "null", {1}: `"` + base58.Encode(append([]byte{1}, make([]byte, 63)...)) + `"`} {
		chain.delivery = delivery
		got := do(t, w.doors[0], "GET "+claimsPath+claimText(c.ID)+" HTTP/1.1\r\nHost: test\r\n\r\n")
		want = `"delivery":{"to":"` + addressText(address(9)) + `","mint":"` + addressText(address(1)) +
			`","amount":"250.626566","amount_atoms":"250626566","l1_signature":` + want + `},"history":[`
		if !strings.Contains(string(got.body), want) {
			t.Errorf("no %s in %s", want, got.body)
		}
	}
	chain.lost = errors.New("the settlement's store is on fire")
	lost := do(t, w.doors[0], "GET "+claimsPath+claimText(c.ID)+" HTTP/1.1\r\nHost: test\r\n\r\n")
	if e := decodeError(t, lost.body); lost.status != 500 || e.Code != codeInternal || strings.Contains(string(lost.body), "fire") {
		t.Errorf("a lost delivery: status %d: %s", lost.status, lost.body)
	}
	for segment, code := range map[string]string{
		claimText(79): codeUnknownClaim, "nope": codeUnknownClaim, strings.Repeat("x", MaxSegment): codeUnknownClaim,
		claimText(brokenClaim):            codeInternal,
		strings.Repeat("x", MaxSegment+1): codeUnknownRoute, "": codeUnknownRoute, ".": codeUnknownRoute, "..": codeUnknownRoute,
		"a/b": codeUnknownRoute, "a%62": codeUnknownRoute, "a;b": codeUnknownRoute, "../claims/" + claimText(78): codeUnknownRoute,
	} {
		got := do(t, w.doors[0], "GET "+claimsPath+segment+" HTTP/1.1\r\nHost: test\r\n\r\n")
		status := map[string]int{codeUnknownClaim: 404, codeUnknownRoute: 404, codeInternal: 500}[code]
		if e := decodeError(t, got.body); got.status != status || e.Code != code || strings.Contains(string(got.body), "fire") {
			t.Errorf("%q: status %d: %s", segment, got.status, got.body)
		}
	}
}

// TestWriteRoutes: where each route is, and with what methods, on real sockets.
func TestWriteRoutes(t *testing.T) {
	b := newBooks(t)
	doors := testDoors()
	doors.Desk = &scriptedDesk{view: fixedView()}
	doors.Settlement = &fakeChain{verdict: desk.Verdict{Pending: time.Second}}
	g := start(t, testOptions(b), b, doors)
	addrs := map[surface]net.Addr{onBase: g.BaseAddr(), onAPI: g.APIAddr(), onWS: g.WSAddr()}
	const both = onBase | onAPI
	for _, row := range []struct {
		path, body string
		on         surface
		status     int
	}{
		{pathRFQ + "quote", quoteBody, both, 200},
		{"/api/v1/rfq/modular-claim-take", claimBody, both, 200},
		{"/api/v1/rfq/atomic-claim-ticket", claimBody, both, 200},
		{"/rfq-native/modular-claim-take", claimBody, onBase, 200},
		{"/rfq-native/atomic-claim-ticket", claimBody, onBase, 200},
		{"/rfq-native/settlement/verify-payment", paymentBody, onBase, 202},
		{"/api/v1/rfq/native/settlement/verify-payment", paymentBody, onBase, 202},
		{"/api/v1/rfq/settlement/verify-payment", paymentBody, onAPI, 202},
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
				resp, body := exchange(t, addr, raw)
				where := surfaceNames[on] + " " + method + " " + row.path
				if resp.StatusCode != status {
					t.Errorf("%s: status %d, want %d: %s", where, resp.StatusCode, status, body)
					continue
				}
				checkHeaders(t, where, resp.Header)
				if allow := resp.Header.Get("Allow"); status == 405 && allow != "POST, OPTIONS" {
					t.Errorf("%s: Allow %q", where, allow)
				}
				if status >= 400 {
					decodeError(t, body)
				}
			}
		}
	}
}

// TestDeskBeforeItsFirstView: nothing is known, and nothing breaks.
func TestDeskBeforeItsFirstView(t *testing.T) {
	w := newWriter(t, &fakeChain{})
	w.desk.view = nil
	for path, body := range map[string]string{pathRFQ + "quote": quoteBody, pathModular: claimBody} {
		got := w.post(t, path, body)
		if e := decodeError(t, got.body); got.status != 404 || e.Code != codeUnknownTicket {
			t.Errorf("%s: status %d: %s", path, got.status, got.body)
		}
	}
}

// TestWriteLimit: RFQ writes have a bucket of their own, shared by all routes
// and addresses; reads of the same path have the other one.
func TestWriteLimit(t *testing.T) {
	b := newBooks(t)
	clock := &handClock{}
	o := testOptions(b)
	o.NoLimits, o.Clock = false, clock.read
	doors := testDoors()
	doors.Desk = &scriptedDesk{view: fixedView()}
	g := start(t, o, b, doors)
	paths := []string{pathRFQ + "quote", pathModular, pathAtomic}
	for i := range 10 {
		addr := []net.Addr{g.BaseAddr(), g.APIAddr()}[i%2]
		resp, _ := exchange(t, addr, postText(paths[i%3], []string{quoteBody, claimBody, "{"}[i%3]))
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
		resp, body := exchange(t, g.BaseAddr(), postText(pathRFQ+"quote", quoteBody))
		if e := decodeError(t, body); resp.StatusCode != 429 || e.Code != codeRateLimited || resp.Header.Get("Retry-After") != "2" {
			t.Fatalf("request 11: status %d %v", resp.StatusCode, resp.Header)
		}
	}
	resp, _ := ask(t, g.BaseAddr(), "GET", claimsPath+claimText(1), "")
	if resp.StatusCode != 404 || resp.Header.Get("RateLimit") != `"market";r=19;t=1` {
		t.Errorf("a read: status %d, RateLimit %q", resp.StatusCode, resp.Header.Get("RateLimit"))
	}
	clock.now += int64(2 * time.Second)
	if resp, body := exchange(t, g.BaseAddr(), postText(pathRFQ+"quote", quoteBody)); resp.StatusCode != 200 {
		t.Errorf("two seconds later: status %d: %s", resp.StatusCode, body)
	}
}
