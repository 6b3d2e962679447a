package httpgw

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/gagliardetto/solana-go/base58"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw/gatewaytest"
	rfqapi "blockdesk/httpgw/rfq"
	"blockdesk/httpgw/terms"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// fakeChain is a settlement without a chain.
type fakeChain struct {
	down     error // of Ready
	failing  error // of Package and Verify
	verdict  desk.Verdict
	delivery [64]byte
	lost     error // of Delivery

	mu     sync.Mutex
	proofs []desk.PaymentProof
	payers []desk.FeePayer // of Package
}

func (c *fakeChain) Ready() error { return c.down }

func (c *fakeChain) Package(ctx context.Context, claim *rfq.Claim, payer desk.FeePayer) (desk.Package, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		return desk.Package{}, errors.New("no deadline")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.payers = append(c.payers, payer)
	return desk.Package{
		Transaction: fmt.Appendf(nil, "transaction of %d", claim.ID), Reference: gatewaytest.Address(200), Memo: fmt.Sprintf(`claim "%d" \`, claim.ID),
		Hash: [32]byte{0xab, 31: 0xcd}, Blockhash: gatewaytest.Address(90), LastValid: 398_214_907, Signers: []market.Address{gatewaytest.Address(60), claim.Wallet},
	}, c.failing
}

func (c *fakeChain) FreshPackage(ctx context.Context, id market.ClaimID) (desk.Package, error) {
	return c.Package(ctx, &rfq.Claim{ID: id}, desk.TakerPays)
}

func (c *fakeChain) Delivery(market.ClaimID) ([64]byte, bool, error) {
	return c.delivery, c.delivery != [64]byte{}, c.lost
}

func (c *fakeChain) Verify(ctx context.Context, p *desk.PaymentProof) (desk.Verdict, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		return desk.Verdict{}, errors.New("no deadline")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.proofs = append(c.proofs, *p)
	return c.verdict, c.failing
}

// testWriter is a gateway with a desk, called without a socket.
type testWriter struct {
	g        *Gateway
	desk     *gatewaytest.ScriptedDesk
	handlers [3]*handler // base, api, ws
}

func newWriter(t testing.TB, chain terms.Settlement) *testWriter {
	t.Helper()
	deps := testDependencies()
	deps.Desk, deps.Settlement = &gatewaytest.ScriptedDesk{Current: gatewaytest.FixedView()}, chain
	return newWriterOf(t, deps)
}

// newWriterOf uses other dependencies, with a scripted desk among them.
func newWriterOf(t testing.TB, deps Dependencies, mend ...func(*Options)) *testWriter {
	t.Helper()
	w := &testWriter{desk: deps.Desk.(*gatewaytest.ScriptedDesk)}
	w.desk.History = map[market.ClaimID]*desk.History{}
	w.g = newGateway(t, deps, mend...)
	table := w.g.routes(deps)
	for i, on := range []wire.Surface{wire.OnBase, wire.OnAPI, wire.OnWS} {
		w.handlers[i] = &handler{g: w.g, on: on, router: newRouter(table, on, newMetrics())}
	}
	return w
}

// newGateway returns a gateway that listens and does not run.
func newGateway(t testing.TB, deps Dependencies, mend ...func(*Options)) *Gateway {
	t.Helper()
	b := gatewaytest.NewBooks(t)
	o := testOptions(b)
	for _, change := range mend {
		change(&o)
	}
	o.URLs.Native = "https://native.example"
	g, err := New(o, b, deps)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	return g
}

// reply is the answer to a request.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// testClient is the client of requests that do sends.
const testClient rfq.ClientAddress = 0x0000ffff_c0000201

// do sends a raw request to a handler.
func do(t testing.TB, d *handler, raw string) reply {
	t.Helper()
	return doFrom(t, "192.0.2.1", d, raw)
}

// doFrom is do for a client with an address.
func doFrom(t testing.TB, address string, d *handler, raw string) reply {
	t.Helper()
	ctx := gatewaytest.RequestFrom(address)
	r := bufio.NewReaderSize(bytes.NewReader([]byte(raw)), 1<<17)
	if err := ctx.Request.ReadLimitBody(r, wire.DefaultMaxBodyBytes); err != nil {
		t.Fatalf("request %.200q: %v", raw, err)
	}
	d.serve(ctx)
	var wire bytes.Buffer
	if _, err := ctx.Response.WriteTo(&wire); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(&wire), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header, body}
}

// post posts a body to a path of the base address; headers are complete lines.
func (w *testWriter) post(t testing.TB, path, body string, headers ...string) reply {
	t.Helper()
	return do(t, w.handlers[0], postText(path, body, headers...))
}

// postFrom is post for a client with an address.
func (w *testWriter) postFrom(t testing.TB, address, path, body string, headers ...string) reply {
	t.Helper()
	return doFrom(t, address, w.handlers[0], postText(path, body, headers...))
}

// postText returns a POST with a JSON body as raw bytes.
func postText(path, body string, headers ...string) string {
	all := append([]string{"Content-Type: application/json"}, headers...)
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: test\r\n%s\r\nContent-Length: %d\r\n\r\n%s",
		path, strings.Join(all, "\r\n"), len(body), body)
}

// Bodies that are right for FixedView.
var (
	wallet    = newTestWallet(0).address
	signature = base58.Encode(bytes.Repeat([]byte("signature of a payment, "), 3)[:64])

	quoteBody   = `{"order_id":"T7","tranche_id":"T7-2","fill_usd":"250","rail":"USDC"}`
	claimBody   = `{"bot_wallet":"` + wallet + `","order_id":"T7","tranche_id":"T7-2","fill_usd":"250"}`
	paymentBody = `{"order_id":"T7","tranche_id":"T7-2","l1_signature":"` + signature + `"}`
)

const claimsPath = rfqapi.PathRFQ + "claims/"
