package httpgw

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw/gatewaytest"
	rfqapi "blockdesk/httpgw/rfq"
	"blockdesk/httpgw/site"
	"blockdesk/httpgw/terms"
	"blockdesk/httpgw/wire"
	"blockdesk/internal/await"
	"blockdesk/market"
	"blockdesk/sdk/openapitest"
)

// Present answers of the service are checked against the specification by cmd, on the
// whole program. Here are the answers that it cannot be brought to give: those
// behind a settlement, and those of a desk in trouble.

// TestTableIsDescribed: each address serves exactly the routes that the specification
// has for it.
func TestTableIsDescribed(t *testing.T) {
	deps := testDependencies()
	deps.Desk = &gatewaytest.ScriptedDesk{Current: gatewaytest.FixedView()}
	w := newWriterOf(t, deps, func(o *Options) { o.Specification = gatewaytest.Specification(t) })
	served := map[string]bool{}
	for _, row := range w.g.routes(deps) {
		for on, name := range wire.SurfaceNames {
			// The files of a page are its own.
			own := strings.HasPrefix(row.Path, site.PathBoardFolder) || strings.HasPrefix(row.Path, site.PathReferenceFolder)
			if row.On&on != 0 && !own {
				served[name+" "+wire.MethodNames[row.Method]+" "+row.Path] = true
			}
		}
	}
	for _, o := range gatewaytest.OpenAPI(t).Operations() {
		for server := range o.Servers {
			line := strings.TrimSuffix(server, " address") + " " + o.Method + " " + o.Path
			if !served[line] {
				t.Errorf("described, and not in the table: %s", line)
			}
			delete(served, line)
		}
	}
	for line := range served {
		t.Errorf("in the table, and not described: %s", line)
	}
}

// TestCodesAreDescribed: the specification lists exactly the codes of this package,
// and the reasons of bodies and of the desk. The answers show which status has which
// code.
func TestCodesAreDescribed(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("wire", "problem.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ours []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Code") {
			return true
		}
		text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		ours = append(ours, text)
		return true
	})
	codes, reasons := gatewaytest.OpenAPI(t).Codes()
	slices.Sort(ours)
	if slices.Sort(codes); len(ours) < 20 || !slices.Equal(ours, codes) {
		t.Errorf("codes of the package %v\nof the specification %v", ours, codes)
	}
	words := append(ownReasons(t), wire.EmptyBody, wire.ByteOrderMark, wire.NotAnObject, wire.BadSyntax, wire.TooDeep, wire.InvalidUTF8, wire.LoneSurrogate, wire.TrailingData)
	for _, reason := range terms.RefusedReasons() {
		words = append(words, reason.String())
	}
	for _, word := range words {
		if !strings.Contains(reasons, "`"+word+"`") {
			t.Errorf("the reason %s is not documented", word)
		}
	}
}

// ownReasons returns the reasons that this package's files set in problems.
func ownReasons(t *testing.T) (all []string) {
	t.Helper()
	var files []string
	// The refusals for operators, in package admin, are not in the public specification.
	for _, folder := range []string{".", "wire", "terms", "market", "rfq", "dvp", "site"} {
		found, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			pair, ok := n.(*ast.KeyValueExpr)
			if !ok {
				return true
			}
			key, isName := pair.Key.(*ast.Ident)
			value, isText := pair.Value.(*ast.BasicLit)
			if isName && isText && key.Name == "Reason" {
				text, err := strconv.Unquote(value.Value)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, text)
			}
			return true
		})
	}
	if len(all) < 10 {
		t.Errorf("the package has the reasons %v and no more", all)
	}
	return all
}

// conforming is a gateway whose every answer is checked against the specification.
type conforming struct {
	g     *Gateway
	d     *openapitest.Document
	desk  *gatewaytest.ScriptedDesk
	codes map[string]bool // seen
}

func newConforming(t *testing.T, chain terms.Settlement, mend func(*Options)) *conforming {
	t.Helper()
	deps := testDependencies()
	deps.Desk, deps.Settlement = &gatewaytest.ScriptedDesk{Current: gatewaytest.FixedView()}, chain
	return newConformingOf(t, deps, mend)
}

// newConformingOf uses other dependencies, with a scripted desk among them.
func newConformingOf(t *testing.T, deps Dependencies, mend func(*Options)) *conforming {
	t.Helper()
	c := &conforming{d: gatewaytest.OpenAPI(t), codes: map[string]bool{}, desk: deps.Desk.(*gatewaytest.ScriptedDesk)}
	c.desk.History = map[market.ClaimID]*desk.History{}
	b := gatewaytest.NewBooks(t)
	o := testOptions(b)
	plenty := wire.Rate{PerMinute: 60_000_000, Burst: 1_000_000}
	o.NoLimits, o.Market, o.RFQWrite, o.Handshake, o.DvP = false, plenty, plenty, plenty, wire.Window{PerMinute: wire.MaxWindow}
	o.Specification = gatewaytest.Specification(t)
	if mend != nil {
		mend(&o)
	}
	c.g = start(t, o, b, deps)
	return c
}

// send sends a raw request to the base address; path is the path in the specification.
func (c *conforming) send(t *testing.T, path, raw string, status int) *openapitest.Answer {
	t.Helper()
	method, _, _ := strings.Cut(raw, " ")
	resp, body := gatewaytest.Exchange(t, c.g.BaseAddr(), raw)
	a := &openapitest.Answer{Method: method, Path: path, Status: resp.StatusCode, Header: resp.Header, Body: body}
	if err := c.d.CheckAnswer(a); err != nil || a.Status != status {
		t.Errorf("want status %d: %v: %s", status, err, body)
	}
	c.codes[a.Code()] = true
	return a
}

func (c *conforming) post(t *testing.T, path, body string, status int) *openapitest.Answer {
	t.Helper()
	return c.send(t, path, postText(path, body), status)
}

// TestDeskAnswersAreDescribed: quotes, and each refusal and failure of the desk.
func TestDeskAnswersAreDescribed(t *testing.T) {
	c := newConforming(t, nil, nil)
	quote := rfqapi.PathRFQ + "quote"
	c.post(t, quote, quoteBody, 200)
	c.post(t, quote, strings.Replace(quoteBody, "USDC", "SOL", 1), 200)
	for _, reason := range terms.RefusedReasons() {
		is := terms.Refusal(reason)
		if reason == event.ReasonUnknownOperator { // of the admin address alone
			continue
		}
		c.desk.Result = func(rfq.Request) (*desk.Result, error) {
			return &desk.Result{Outcome: rfq.Outcome{Reason: reason}, Replayed: true}, nil
		}
		if is.Status == 422 { // of a payment alone
			continue
		}
		if a := c.post(t, quote, quoteBody, is.Status); a.Header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("%s: not replayed", reason)
		}
	}
	for _, failure := range []error{desk.ErrBusy, desk.ErrReadOnly, desk.ErrStopped, desk.ErrTimeout, desk.ErrUnknown} {
		c.desk.Result = func(rfq.Request) (*desk.Result, error) { return nil, failure }
		c.post(t, quote, quoteBody, 503)
	}
	c.desk.Result = func(rfq.Request) (*desk.Result, error) { return nil, desk.ErrConflict }
	c.post(t, quote, quoteBody, 409)
	c.desk.Result = func(rfq.Request) (*desk.Result, error) { return nil, errors.New("a broken store") }
	c.post(t, quote, quoteBody, 500)
}

// TestSettledAnswersAreDescribed: claims, proofs of payment and the history of a claim
// with a settlement.
func TestSettledAnswersAreDescribed(t *testing.T) {
	chain := &fakeChain{}
	c := newConforming(t, chain, nil)
	full := strings.Replace(claimBody, "}", `,"payment_rail":"SOL","quote_id":"Q000000000002d"}`, 1)
	for _, path := range []string{rfqapi.PathModular, rfqapi.PathNativeModular, rfqapi.PathAtomic, rfqapi.PathNativeAtomic} {
		for _, body := range []string{claimBody, full} {
			c.post(t, path, body, 200)
		}
	}
	claim := gatewaytest.Grant(c.desk.Current, &rfq.TakeClaim{Ticket: 7, Tranche: 2, Fill: 1, Rail: market.RailUSDC, Mode: rfq.Modular, Wallet: gatewaytest.Address(9)}).Claim
	payment := &rfq.Payment{
		Signature: [64]byte{1, 2}, Claim: claim.ID, Rail: market.RailUSDC, State: rfq.PaymentApplied, Amount: 250_000_001,
		Payer: gatewaytest.Address(9), Slot: 4242, At: gatewaytest.ViewTime,
	}
	surplus := *payment
	surplus.State, surplus.Reason = rfq.PaymentRefundDue, event.ReasonLatePayment
	for _, verdict := range []struct {
		desk.Verdict
		status int
	}{
		{desk.Verdict{Pending: 1500 * time.Millisecond}, 202},
		{desk.Verdict{Claim: claim, Payment: payment}, 200},
		{desk.Verdict{Claim: claim, Payment: payment, Delivery: [64]byte{1}, Replayed: true}, 200},
		{desk.Verdict{Claim: claim, Payment: &surplus}, 200},
		{desk.Verdict{Refused: event.ReasonPaymentMismatch, Mismatch: "amount_short"}, 422},
		{desk.Verdict{Refused: event.ReasonPaymentMismatch, Replayed: true}, 422},
		{desk.Verdict{Refused: event.ReasonPaymentUsed}, 409},
		{desk.Verdict{Refused: event.ReasonLatePayment}, 409},
	} {
		chain.verdict = verdict.Verdict
		for _, path := range []string{rfqapi.PathNativeVerify, rfqapi.PathAliasVerify} {
			c.post(t, path, paymentBody, verdict.status)
		}
	}
	chain.failing = errors.New("no node answers")
	c.post(t, rfqapi.PathNativeVerify, paymentBody, 503)
	c.post(t, rfqapi.PathModular, claimBody, 503)

	for state := rfq.ClaimReserved; state <= rfq.ClaimRefundDue; state++ {
		later := *claim
		later.State, later.ChangedAt, later.Paid = state, gatewaytest.ViewTime+5e9, 250_000_001
		c.desk.History[claim.ID] = &desk.History{
			Claim: later, States: []rfq.Claim{*claim, later}, Payments: []rfq.Payment{*payment, surplus},
		}
		target := claimsPath + gatewaytest.ClaimText(claim.ID)
		a := c.send(t, claimsPath+"{claim_id}", "GET "+target+" HTTP/1.1\r\nHost: test\r\n\r\n", 200)
		c.send(t, claimsPath+"{claim_id}", "GET "+target+" HTTP/1.1\r\nHost: test\r\nIf-None-Match: "+a.Header.Get("ETag")+"\r\n\r\n", 304)
	}
	for _, code := range []string{wire.CodePaymentUsed, wire.CodePaymentMismatch, wire.CodeClaimExpired, wire.CodeChainUnavailable} {
		if !c.codes[code] {
			t.Errorf("%s was not seen", code)
		}
	}
}

// TestRefusalsOfAllRoutesAreDescribed: limits, and requests that do not reach a route.
func TestRefusalsOfAllRoutesAreDescribed(t *testing.T) {
	c := newConforming(t, nil, func(o *Options) {
		o.Market, o.RFQWrite = wire.Rate{PerMinute: 1, Burst: 1}, wire.Rate{PerMinute: 1, Burst: 1}
	})
	hasty := newConforming(t, nil, func(o *Options) { o.ReadTimeout = 100 * time.Millisecond })
	symbols, quote := "/api/v1/market/symbols", rfqapi.PathRFQ+"quote"
	get := func(path, more string) string {
		return fmt.Sprintf("GET %s HTTP/1.1\r\nHost: test\r\n%s\r\n", path, more)
	}
	c.send(t, symbols, get(symbols, ""), 200)
	c.send(t, symbols, get(symbols, ""), 429)
	c.send(t, site.SpecificationAlias, get(site.SpecificationAlias, ""), 429)
	c.send(t, wire.SpecificationPath, get(wire.SpecificationPath, ""), 200)
	c.send(t, wire.SpecificationPath, get(wire.SpecificationPath, ""), 200)
	c.post(t, quote, quoteBody, 200)
	c.post(t, quote, quoteBody, 429)
	c.post(t, quote, strings.Repeat(" ", wire.DefaultMaxBodyBytes+1), 413)
	hasty.send(t, quote, "POST "+quote+" HTTP/1.1\r\nHost: test\r\nContent-Length: 9\r\n\r\n{", 408)
	c.send(t, symbols, get(symbols, "X: "+strings.Repeat("x", 64<<10)+"\r\n"), 431)
	c.send(t, symbols, "GET "+symbols+" HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400)
	c.send(t, symbols, "GET "+symbols+" HTTP/1.1\r\nbroken\r\n\r\n", 400)
	for _, code := range []string{wire.CodeRateLimited, wire.CodeBodyTooLarge, wire.CodeRequestTimeout, wire.CodeHeadersTooLarge, wire.CodeMalformed} {
		if !c.codes[code] && !hasty.codes[code] {
			t.Errorf("%s was not seen", code)
		}
	}
	for status, mend := range map[int]func(*Options){
		429: func(o *Options) { o.MaxConnsPerIP = 1 }, 503: func(o *Options) { o.MaxConns = 1 },
	} {
		full := newConforming(t, nil, mend)
		conn, err := net.Dial("tcp", full.g.APIAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		await.Equal(t, "the number of connections", 1, full.g.conns.Count)
		if a := full.send(t, symbols, get(symbols, ""), status); a.Header.Get("Retry-After") == "" {
			t.Errorf("%d: headers %v", status, a.Header)
		}
	}
}
