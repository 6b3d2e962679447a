package settle

import (
	"context"
	"testing"

	"blockdesk/e2e/chaintest"
	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
)

// While no node answers, what needs the chain says so and changes nothing; what
// was under way goes on when the chain is back, over a crash of the service too.
func TestChainOutage(t *testing.T) {
	t.Parallel()
	// The watch does not look for the payment: it must be unknown when the chain stops.
	r := chaintest.Start(t, chaintest.Options{Wallets: 1, WatchMS: 600_000})
	b := r.Wallet(1).Handshake()
	was := r.Holdings()
	// Before: one claim that is paid and not reported, one build that is not
	// submitted, one that is on its way.
	paid := b.Build(chaintest.Deal{Ticket: "T1", Fill: "250", Rail: "USDC"}, chaintest.PathModular)
	payment := b.Sign(paid.Raw)
	r.MustBroadcast(payment.Raw)
	open := b.Build(chaintest.Deal{Ticket: "T2", Fill: "250", Rail: "USDC", Payer: "desk"}, chaintest.PathBuild)
	onWay := b.Build(chaintest.Deal{Ticket: "T2", Fill: "1000", Rail: "SOL", Payer: "taker"}, chaintest.PathAtomic)
	r.Finalize()
	r.Control("dropSends", map[string]any{"count": 1_000_000}) // those that the desk sends again, too
	if got := b.Submit(onWay); got.Status != 200 || got.State != "broadcast" {
		t.Fatalf("submit of what the node will lose: %s", got)
	}
	r.Control("setNode", map[string]any{"mode": "503"})
	check := func() {
		t.Helper()
		unavailable(r, b, payment.Signature, open)
		if state, a := b.Claim(onWay.ClaimID); state != "cosigned" {
			t.Errorf("what is on its way: %s", a)
		}
	}
	check()
	// The same from a service that has never seen the chain. It says that it is
	// not ready, and serves all the same.
	if err := r.Server.Kill(); err != nil {
		t.Fatal(err)
	}
	programtest.VerifyJournal(t, r.Server)
	restarted := make(chan error, 1)
	revived := *r.Server // it comes up at the same addresses
	go func() { restarted <- revived.Restart(context.Background()) }()
	await.True(t, "the service to serve", func() bool {
		_, err := b.Send(t.Context(), "GET", r.Server.Addresses.Base+chaintest.PathClaims+onWay.ClaimID, nil)
		return err == nil
	})
	check()
	r.Control("heal", map[string]any{})
	err := <-restarted
	*r.Server = revived
	if err != nil {
		t.Fatal(err)
	}
	if got := verified(b, 0, "T1", payment.Signature); got.Status != 200 {
		t.Errorf("the payment, when the chain is back: %s", got)
	}
	b.AwaitClaim(paid.ClaimID, "settled")
	b.AwaitClaim(onWay.ClaimID, "settled", "released")
	// Its blockhash may have ended meanwhile: then it says so, and a new one goes.
	if got := b.Submit(open); got.Status != 200 && got.Reason != "expired" {
		t.Errorf("the build, when the chain is back: %s", got)
	}
	again := b.Build(chaintest.Deal{Ticket: "T2", Fill: "250", Rail: "USDC", Payer: "desk"}, chaintest.PathBuild)
	if got := b.Submit(again); got.Status != 200 {
		t.Errorf("a new build: %s", got)
	}
	b.AwaitClaim(again.ClaimID, "settled")
	moved := r.Holdings().Minus(was)
	if moved["desk SLUSD"] != -int64(chaintest.ParseAtoms(record(r, paid.ClaimID).Claim.Base)) || moved["desk SLUSD"] != -moved["wallet-1 SLUSD"] {
		t.Errorf("moved: %v", moved)
	}
	conserved(r, was, r.Holdings())
}

// unavailable asks for all that needs the chain.
func unavailable(r *chaintest.Rig, b *chaintest.Buyer, payment string, x *chaintest.Built) {
	r.T.Helper()
	d := chaintest.Deal{Ticket: "T1", Fill: "250", Rail: "USDC"}
	// Until a probe has found out, claims are taken: their packages are right.
	await.True(r.T, "claims to be refused", func() bool {
		return b.Call("POST", chaintest.PathModular, b.Order(d, chaintest.PathModular)).Status == 503
	})
	book := programtest.Tickets(r.T, r.Server)
	defer func() {
		if now := programtest.Tickets(r.T, r.Server); now != book {
			r.T.Fatalf("the book is\n%s\nit was\n%s", now, book)
		}
	}()
	for name, request := range map[string]func() *chaintest.Answer{
		"modular claim": func() *chaintest.Answer {
			return b.Call("POST", chaintest.PathModular, b.Order(d, chaintest.PathModular))
		},
		"atomic claim": func() *chaintest.Answer {
			return b.Call("POST", chaintest.PathAtomic, b.Order(d, chaintest.PathAtomic))
		},
		"build": func() *chaintest.Answer {
			return b.Call("POST", chaintest.PathBuild, b.Order(d, chaintest.PathBuild), b.Bearer()...)
		},
		"submit": func() *chaintest.Answer { return b.Submit(x) },
		"proof":  func() *chaintest.Answer { return programtest.Must(verify(r.T.Context(), b, 0, "T1", payment)) },
	} {
		got := request()
		if got.Status != 503 || got.Code != "CHAIN_UNAVAILABLE" || got.Header.Get("Retry-After") == "" {
			r.T.Errorf("%s without a chain: %s, Retry-After %q", name, got, got.Header.Get("Retry-After"))
		}
	}
	for _, path := range []string{"/api/v1/rfq/market-tickets", "/api/v1/dvp/status", chaintest.PathClaims + x.ClaimID, chaintest.PathBuilds + x.BuildID} {
		b.Want(200, "GET", path, nil)
	}
	b.Want(200, "POST", "/api/v1/rfq/quote", map[string]string{"order_id": "T1", "tranche_id": "T1-1", "fill_usd": "250", "rail": "USDC"})
}

// The desk sees unreported payments from the first claim on: it takes no claim before
// the watch has begun, whenever it is killed.
func TestFirstPaymentIsSeen(t *testing.T) {
	t.Parallel()
	r := chaintest.Start(t, chaintest.Options{Wallets: 1})
	b := r.Wallet(1)
	var x *chaintest.Built
	await.True(t, "a claim", func() bool {
		d := chaintest.Deal{Ticket: "T1", Fill: "250", Rail: "USDC"}
		got := b.Call("POST", chaintest.PathModular, b.Order(d, chaintest.PathModular))
		if got.Status != 200 {
			return false
		}
		x = &chaintest.Built{}
		got.Into(t, x)
		return true
	})
	paid := b.Sign(x.Open(t).Raw)
	r.MustBroadcast(paid.Raw)
	if err := r.Server.Kill(); err != nil {
		t.Fatal(err)
	}
	r.Finalize()
	if err := r.Server.Restart(context.Background()); err != nil {
		t.Fatal(err)
	}
	b.AwaitClaim(x.ClaimID, "settled")
}
