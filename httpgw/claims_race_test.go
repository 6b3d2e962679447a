package httpgw

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gagliardetto/solana-go/base58"
	"github.com/valyala/fasthttp"

	"blockdesk/desk"
	"blockdesk/engine"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw/gatewaytest"
	rfqapi "blockdesk/httpgw/rfq"
	"blockdesk/httpgw/terms"
	"blockdesk/httpgw/wire"
	"blockdesk/internal/runtest"
	"blockdesk/market"
	"blockdesk/persist"
)

// claimAttempts returns the number of claims of the race: BLOCKDESK_CLAIMS, or few.
func claimAttempts(t *testing.T) int {
	text := os.Getenv("BLOCKDESK_CLAIMS")
	if text == "" {
		return 2000
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("BLOCKDESK_CLAIMS: %q is no number of claims", text)
	}
	return n
}

// sellingDesk runs an in-memory engine and a desk on it until the test ends.
func sellingDesk(t *testing.T, change ...func(*desk.Options)) *desk.Desk {
	t.Helper()
	replica := engine.NewReplica(engine.StateOptions{})
	eng, err := engine.New(engine.Options{}, replica)
	if err != nil {
		t.Fatal(err)
	}
	store, err := persist.OpenKV(t.TempDir(), nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	o := desk.Options{Timeout: runtest.HangTimeout}
	for _, f := range change {
		f(&o)
	}
	d, err := desk.New(o, eng, store)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Start(replica.State.Desk().ReadModel(), replica.State.Seq()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	events := eng.Consumer("desk")
	var ended sync.WaitGroup
	ended.Go(func() {
		if err := eng.Run(ctx); err != nil {
			t.Errorf("engine: %v", err)
		}
	})
	ended.Go(func() {
		if err := d.Run(ctx, events); err != nil {
			t.Errorf("desk: %v", err)
		}
		events.Close()
	})
	t.Cleanup(func() {
		stop()
		ended.Wait()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// mustDo executes a request that must succeed.
func mustDo(t *testing.T, d *desk.Desk, r rfq.Request) *desk.Result {
	t.Helper()
	result, err := d.Do(r)
	if err != nil || result.Reason != 0 {
		t.Fatalf("%T: %v %+v", r, err, result)
	}
	return result
}

// setUpDesk sets up the desk and posts tranches with these capacities in dollars.
func setUpDesk(t *testing.T, d *desk.Desk, dollars ...uint64) market.TicketID {
	t.Helper()
	policy := gatewaytest.FixedView().Policy
	policy.ClaimTTL, policy.WalletClaims = 3600e9, 1<<16-1
	mustDo(t, d, &rfq.SetPolicy{Policy: policy})
	mustDo(t, d, &rfq.SetPair{Pair: rfq.Pair{
		BaseMint: gatewaytest.Address(1), BaseDecimals: 6, Rails: market.AllRails, Source: rfq.SourceOperator, CorridorBps: 500, Via: rfq.NoInstrument,
	}})
	mustDo(t, d, &rfq.SetAnchor{Price: 1_000_000_000})
	mustDo(t, d, &rfq.SetInventory{Atoms: 1 << 60})
	post := &rfq.PostTicket{Label: "race"}
	for _, n := range dollars {
		post.Capacities = append(post.Capacities, market.USD(n)*gatewaytest.Dollar)
	}
	return mustDo(t, d, post).Ticket.ID
}

// racer makes claims, one after another.
type racer struct {
	t        *testing.T
	handlers [3]*handler // of the surfaces
	ticket   market.TicketID
	rng      *rand.Rand
	ctx      *fasthttp.RequestCtx
	outcomes map[int64]outcome // by the claim's number
}

// outcome is the answer to a client.
type outcome struct {
	status   int
	text     string // the body, or the code and the reason of a refusal
	replayed bool
}

// send makes one request and repeats it while the answer is that the service is busy.
func (r *racer) send(key, body string, way rfq.SettlementMode) outcome {
	paths := map[rfq.SettlementMode][3]string{
		rfq.Modular: {rfqapi.PathNativeModular, rfqapi.PathModular, rfqapi.PathModular}, rfq.Atomic: {rfqapi.PathNativeAtomic, rfqapi.PathAtomic, rfqapi.PathAtomic},
	}
	surface := r.rng.IntN(3)
	for {
		r.ctx.Request.Reset()
		r.ctx.Response.Reset()
		r.ctx.Request.Header.SetMethod(fasthttp.MethodPost)
		r.ctx.Request.SetRequestURI(paths[way][surface])
		r.ctx.Request.Header.SetContentType("application/json")
		r.ctx.Request.Header.Set(wire.IdempotencyHeader, key)
		r.ctx.Request.SetBodyString(body)
		r.handlers[surface].serve(r.ctx)
		answer := outcome{status: r.ctx.Response.StatusCode(), text: string(r.ctx.Response.Body())}
		answer.replayed = string(r.ctx.Response.Header.Peek("Idempotency-Replayed")) == "true"
		if answer.status != 200 {
			e := gatewaytest.DecodeError(r.t, []byte(answer.text))
			answer.text = e.Code + " " + e.Reason
			if e.Code == wire.CodeOverloaded {
				runtime.Gosched()
				continue
			}
		}
		return answer
	}
}

// claim makes the nth claim, which has the same key and body from every client.
func (r *racer) claim(n int64, most market.FillUSD) {
	rng := rand.New(rand.NewPCG(uint64(n), 1))
	body := fmt.Sprintf(`{"bot_wallet":"%s","order_id":"T%d","tranche_id":"T%d-%d","fill_usd":%s}`,
		newTestWallet(int(n)).address, r.ticket, r.ticket, 1+rng.IntN(2), market.FillUSD(1+rng.IntN(int(most))))
	r.outcomes[n] = r.send(strconv.FormatInt(n, 10), body, rfq.SettlementMode(1+rng.IntN(2)))
}

// TestClaimsRace: many clients claim through all three addresses, each claim twice at
// the same time. Every tranche is sold completely and not oversold, each claim is made
// once, and the engine agrees with all answers.
func TestClaimsRace(t *testing.T) {
	attempts := claimAttempts(t)
	// Not all attempts find something, whatever their sizes. The machine holds
	// at most rfq.MaxClaims.
	pieces := min(uint64(attempts)/2, rfq.MaxClaims/2)
	d := sellingDesk(t)
	smallest := uint64(market.FillUSD(1).USD() / gatewaytest.Dollar)
	ticket := setUpDesk(t, d, max(1, pieces/2)*smallest, max(1, pieces-pieces/2)*smallest)
	deps := testDependencies()
	deps.Desk, deps.Settlement = d, &fakeChain{}
	g := newGateway(t, deps)
	table := g.routes(deps)
	base, api := newRouter(table, wire.OnBase, newMetrics()), newRouter(table, wire.OnAPI, newMetrics())
	racers := make([]racer, 16)
	var next atomic.Int64
	var done sync.WaitGroup
	for i := range racers {
		r := &racers[i]
		*r = racer{
			t: t, ticket: ticket, rng: rand.New(rand.NewPCG(uint64(i), 7)), ctx: gatewaytest.RequestFrom("192.0.2.1"), outcomes: map[int64]outcome{},
			handlers: [3]*handler{{g: g, router: base}, {g: g, router: base}, {g: g, router: api}},
		}
		done.Go(func() {
			for n := next.Add(1); n <= 2*int64(attempts); n = next.Add(1) {
				r.claim((n+1)/2, 2)
			}
		})
	}
	done.Wait()
	// The remainder of the large pieces is claimed in small ones.
	for n := int64(attempts) + 1; !exhausted(d.View().Ticket(ticket)) && n < 3*int64(attempts)+100; n++ {
		racers[0].claim(n, 1)
	}
	sold := make(map[string]claimAnswer)
	for n, answers := range byClaim(racers) {
		checkOutcome(t, n, answers, sold)
	}
	checkSold(t, g, d, ticket, sold)
}

// byClaim returns all answers about each claim.
func byClaim(racers []racer) map[int64][]outcome {
	all := make(map[int64][]outcome)
	for i := range racers {
		for n, answer := range racers[i].outcomes {
			all[n] = append(all[n], answer)
		}
	}
	return all
}

// checkOutcome compares the answers to one claim, and records it if it was granted.
func checkOutcome(t *testing.T, n int64, answers []outcome, sold map[string]claimAnswer) {
	t.Helper()
	first := &answers[0]
	for _, other := range answers[1:] {
		if other.status != first.status || other.text != first.text || !first.replayed && !other.replayed {
			t.Errorf("claim %d: two answers: %+v, %+v", n, first, other)
		}
	}
	switch first.status {
	case 200:
		var a claimAnswer
		if err := json.Unmarshal([]byte(first.text), &a); err != nil || a.State != "reserved" {
			t.Errorf("claim %d: %v %s", n, err, first.text)
		} else if _, twice := sold[a.ClaimID]; twice {
			t.Errorf("claim %d: %s was given before", n, a.ClaimID)
		} else {
			sold[a.ClaimID] = a
		}
	case 409:
		if !strings.HasPrefix(first.text, wire.CodeCapacityExhausted) {
			t.Errorf("claim %d: %s", n, first.text)
		}
	default:
		t.Errorf("claim %d: status %d %s", n, first.status, first.text)
	}
}

func exhausted(t *rfq.Ticket) bool {
	for i := range t.Tranches {
		if t.Tranches[i].Available() >= market.FillUSD(1).USD() {
			return false
		}
	}
	return true
}

// checkSold compares the answers to clients with the state of the desk.
func checkSold(t *testing.T, g *Gateway, d *desk.Desk, ticket market.TicketID, sold map[string]claimAnswer) {
	t.Helper()
	var read func([]byte) (*wire.Page, *wire.Problem)
	for _, row := range g.rfq.Routes() {
		if strings.HasPrefix(row.Path, claimsPath) && strings.HasSuffix(row.Path, "}") {
			read = row.ReadOne
		}
	}
	byTranche := map[market.TrancheID]market.USD{}
	for text, a := range sold {
		id, ok := market.ParseClaimID([]byte(text))
		h, found, err := d.Claim(id)
		if !ok || !found || err != nil {
			t.Fatalf("claim %s: %v %v", text, found, err)
		}
		terms := &h.Claim.Terms
		if len(h.States) != 1 || h.Claim.State != rfq.ClaimReserved || terms.Fill.String() != a.Claim.Fill ||
			strconv.FormatUint(terms.Base, 10) != a.Claim.Base || base58.Encode(h.Claim.Wallet[:]) != a.Claim.Wallet {
			t.Errorf("answered %+v, stored %+v", a, h.Claim)
		}
		byTranche[terms.Tranche] += terms.Fill.USD()
		if p, bad := read([]byte(text)); bad != nil || !strings.Contains(string(p.Body), a.Claim.Wallet) {
			t.Errorf("claim %s on the wire: %+v", text, bad)
		}
	}
	shown := d.View().Ticket(ticket)
	if shown.State != rfq.TicketExhausted {
		t.Errorf("the ticket is %s", terms.TicketStates[shown.State])
	}
	for i := range shown.Tranches {
		tr := &shown.Tranches[i]
		if reported := byTranche[tr.ID]; reported != tr.Capacity || tr.Reserved != reported || tr.Available() != 0 || tr.Filled != 0 {
			t.Errorf("tranche %d: capacity %d, reserved %d, answered %d", tr.ID, tr.Capacity, tr.Reserved, reported)
		}
	}
	t.Logf("%d claims granted", len(sold))
}
