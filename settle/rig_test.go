package settle_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"blockdesk/desk"
	"blockdesk/engine"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/build"
	"blockdesk/internal/solana/rpc"
	"blockdesk/internal/solana/token"
	"blockdesk/market"
	"blockdesk/persist"
	"blockdesk/settle"
	"blockdesk/settle/broadcast"
	"blockdesk/settle/cosign"
	"blockdesk/settle/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// life is one run of the service on a disk: engine, journal, desk, settlement.
type life struct {
	t         testing.TB
	chain     *chain
	fs        vfs.FS
	dir       string
	failpoint *failpoint // nil: nothing breaks but the chain

	journal    *persist.Store
	deskKV, kv *persist.KV
	eng        *engine.Engine
	desk       *desk.Desk
	client     *rpc.Client
	store      *store.Store
	settle     *settle.Settlement
	begun      bool
	stopSettle context.CancelFunc
	stopRest   context.CancelFunc
	// expired counts calls of expire, and expiredAt is when the last was.
	expired        int
	expiredAt      time.Time
	settled, ended sync.WaitGroup
}

// lifeOptions are what tests have differently.
type lifeOptions struct {
	fs        vfs.FS // nil: the disk, in dir
	dir       string // "": a new folder
	failpoint *failpoint
	signer    cosign.Signer // nil: the desk's key
	desk      func(settle.Desk) settle.Desk
	node      func(settle.Node) settle.Node
	change    func(o *settle.Options)
	clock     *atomic.Int64 // added to the time of the engine and of settlement
	more      []string      // more nodes, besides the chain's
	newWatch  bool          // the watch places its first cursors itself
}

// begin starts a service over what is on its disk.
func begin(t testing.TB, c *chain, o lifeOptions) *life {
	t.Helper()
	l := &life{t: t, chain: c, fs: o.fs, dir: o.dir, failpoint: o.failpoint}
	if l.fs == nil {
		l.fs = vfs.Default
	}
	if l.dir == "" {
		l.dir = t.TempDir()
	}
	quiet := slog.New(slog.DiscardHandler)
	if testing.Verbose() && os.Getenv("SETTLE_LOG") != "" {
		quiet = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	now := time.Now
	if o.clock != nil {
		now = func() time.Time { return time.Now().Add(time.Duration(o.clock.Load())) }
	}
	var err error
	l.deskKV, err = persist.OpenKV(filepath.Join(l.dir, "desk"), l.fs, quiet)
	c.must(err)
	l.kv, err = persist.OpenKV(filepath.Join(l.dir, "settle"), l.fs, quiet)
	c.must(err)
	l.journal, err = persist.Open(persist.Options{
		Dir: filepath.Join(l.dir, "journal"), FS: l.fs, Logger: quiet, MemTableBytes: 1 << 20, SpareLogs: -1,
	})
	c.must(err)
	sink := &submitter{}
	l.desk, err = desk.New(desk.Options{Timeout: runtest.HangTimeout, Failed: sink.failed, Now: now}, sink, l.deskKV)
	c.must(err)
	replica, err := l.journal.Recover(l.desk.Cursor(), func(events []event.Event) { c.must(l.desk.Replay(events)) })
	c.must(err)
	c.must(l.desk.Start(replica.State.Desk().ReadModel(), replica.State.Seq()))
	upstreams := []rpc.Upstream{{Name: "sandbox", URL: c.local.URL()}}
	for i, url := range o.more {
		upstreams = append(upstreams, rpc.Upstream{Name: fmt.Sprint("node ", i+2), URL: url})
	}
	l.client, err = rpc.New(rpc.Options{
		Upstreams: upstreams, HedgeAfter: -1,
		Timeout: runtest.HangTimeout, AttemptTimeout: runtest.HangTimeout, BlockhashEvery: 20 * time.Millisecond, ProbeEvery: 100 * time.Millisecond,
	})
	c.must(err)
	l.store, err = store.Open(o.failpoint.kv(l.kv))
	c.must(err)
	if !o.newWatch {
		l.watchAll()
	}
	signer := o.signer
	if signer == nil {
		signer, err = cosign.OpenKeyFile(c.keyFile())
		c.must(err)
	}
	so := settle.Options{
		Budget: build.Budget{Units: 200_000, MicroLamports: 1000}, SyncBuilds: true, RetryFirst: 50 * time.Millisecond,
		RetryMax: 200 * time.Millisecond, RefreshEvery: 30 * time.Millisecond, Now: now, Logger: quiet,
		SignTimeout: runtest.HangTimeout, BlockhashLife: blockhashLife,
		Broadcast: broadcast.Options{ResendEvery: 50 * time.Millisecond, PollEvery: 10 * time.Millisecond},
		Payments:  settle.Payments{WatchEvery: 50 * time.Millisecond, Retry: 10 * time.Millisecond},
	}
	if o.change != nil {
		o.change(&so)
	}
	asked := o.failpoint.desk(l.desk)
	if o.desk != nil {
		asked = o.desk(asked)
	}
	node := o.failpoint.node(l.client)
	if o.node != nil {
		node = o.node(node)
	}
	l.settle, err = settle.New(so, asked, node, l.store, o.failpoint.signer(signer))
	c.must(err)
	l.settle.Start(replica.State.Desk().EachClaim, time.Time{})
	l.eng, err = engine.New(engine.Options{Journal: l.journal, Clock: func() int64 { return now().UnixNano() }}, replica)
	c.must(err)
	sink.eng.Store(l.eng)
	l.run()
	t.Cleanup(l.end)
	return l
}

// watchAll has the watch look at everything since the chain's beginning. A new
// desk takes what is there at its start for history.
func (l *life) watchAll() {
	l.t.Helper()
	account, err := solana.TokenAccount(l.chain.treasury, l.chain.mints["USDC"], l.chain.programs["USDC"])
	l.chain.must(err)
	for _, a := range []solana.Address{account, l.chain.treasury} {
		_, ok, err := l.store.Cursor(a)
		l.chain.must(err)
		if !ok {
			if err := l.store.SetCursor(a, solana.Signature{}); err != nil && !errors.Is(err, errDead) {
				l.t.Fatal(err)
			}
		}
	}
}

func (l *life) run() {
	l.begun = true
	deskEvents, settleEvents := l.eng.Consumer("desk"), l.eng.Consumer("settle")
	rest, stopRest := context.WithCancel(context.WithoutCancel(l.t.Context()))
	l.stopRest = stopRest
	stores, stopStores := context.WithCancel(context.WithoutCancel(rest))
	var writers sync.WaitGroup
	writers.Go(func() { l.check("engine", l.eng.Run(rest)) })
	writers.Go(func() {
		defer deskEvents.Close()
		l.check("desk", l.desk.Run(rest, deskEvents))
	})
	writers.Go(func() { l.check("rpc", l.client.Run(rest)) })
	l.ended.Go(func() {
		writers.Wait()
		stopStores()
	})
	l.ended.Go(func() { l.check("journal", l.journal.Run(stores)) })
	l.ended.Go(func() { l.check("desk store", l.deskKV.Run(stores)) })
	l.ended.Go(func() { l.check("settle store", l.kv.Run(stores)) })
	ctx, stop := context.WithCancel(rest)
	l.stopSettle = stop
	l.settled.Go(func() {
		defer settleEvents.Close()
		l.check("settle", l.settle.Run(ctx, settleEvents))
	})
}

func (l *life) check(part string, err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		l.t.Errorf("%s: %v", part, err)
	}
}

// end stops the service in order and closes its stores.
func (l *life) end() {
	if !l.begun {
		return
	}
	l.begun = false
	l.stopSettle()
	l.settled.Wait()
	l.stopRest()
	l.ended.Wait()
	for _, c := range []interface{ Close() error }{l.journal, l.deskKV, l.kv} {
		if err := c.Close(); err != nil {
			l.t.Error(err)
		}
	}
}

// submitter stands in for the engine until there is one.
type submitter struct{ eng atomic.Pointer[engine.Engine] }

func (s *submitter) SubmitAll(cs []engine.Command) error { return s.eng.Load().SubmitAll(cs) }
func (s *submitter) failed() error                       { return s.eng.Load().Stats().Failed }

// must does a request that the rules let through.
func (l *life) must(r rfq.Request) *desk.Result {
	l.t.Helper()
	result, err := l.desk.Do(r)
	if err != nil {
		l.t.Fatalf("%T: %v", r, err)
	}
	if result.Reason != 0 {
		l.t.Fatalf("%T: refused: %s, limit %d", r, result.Reason, result.Limit)
	}
	return result
}

// open sets the desk up: two pairs at a dollar, SOL at 150, one ticket of each,
// T1 of SLUSD and T2 of 92C.
func (l *life) open() *life {
	l.t.Helper()
	c := l.chain
	policy := rfq.Policy{QuoteTTL: 15e9, ClaimTTL: 600e9, LateWindow: 3600e9, FeeBps: 500, WalletClaims: 1000, USDCMint: c.mints["USDC"]}
	policy.PayTo[market.RailUSDC], policy.PayTo[market.RailSOL] = c.treasury, c.treasury
	l.must(&rfq.SetPolicy{Policy: policy})
	l.must(&rfq.SetRailPrice{Rail: market.RailSOL, Price: 150_000_000_000})
	for in := market.InstrumentID(1); in <= 2; in++ {
		l.must(&rfq.SetPair{Pair: rfq.Pair{
			Instrument: in, BaseMint: c.mints[symbols[in]], BaseDecimals: 6, Rails: market.AllRails,
			Source: rfq.SourceOperator, CorridorBps: 500, Via: rfq.NoInstrument,
		}})
		l.must(&rfq.SetAnchor{Instrument: in, Price: 1_000_000_000})
		l.must(&rfq.SetInventory{Instrument: in, Atoms: 50_000_000_000_000})
		l.must(&rfq.PostTicket{Label: symbols[in], Instrument: in, Capacities: []market.USD{10_000_000_000_000}})
	}
	return l.ready()
}

// ready waits until packages can be built.
func (l *life) ready() *life {
	l.t.Helper()
	await.True(l.t, "ready", func() bool { return l.settle.Ready() == nil })
	return l
}

// take reserves the smallest fill of a ticket.
func (l *life) take(way rfq.SettlementMode, ticket market.TicketID, rail market.Rail, w wallet) *rfq.Claim {
	l.t.Helper()
	return l.must(&rfq.TakeClaim{Ticket: ticket, Tranche: 1, Fill: 1, Rail: rail, Mode: way, Wallet: w.address}).Claim
}

// submit submits what a taker brings.
func (l *life) submit(ctx context.Context, id market.ClaimID, by solana.Address, s desk.Submission) (desk.Submitted, error) {
	s.Claim, s.By = id, by
	return l.settle.Submit(ctx, &s)
}

// pack returns the claim's package.
func (l *life) pack(c *rfq.Claim, feePayer desk.FeePayer) desk.Package {
	l.t.Helper()
	p, err := l.settle.Package(l.t.Context(), c, feePayer)
	if err != nil {
		l.t.Fatal(err)
	}
	return p
}

// claim returns a claim as it is now.
func (l *life) claim(id market.ClaimID) *rfq.Claim {
	l.t.Helper()
	h, ok, err := l.desk.Claim(id)
	if err != nil || !ok {
		l.t.Fatalf("claim %d: %v, %v", id, ok, err)
	}
	return &h.Claim
}

// becomes waits until a claim is in a state.
func (l *life) becomes(id market.ClaimID, state rfq.ClaimState) *rfq.Claim {
	l.t.Helper()
	var c *rfq.Claim
	await.True(l.t, "a claim's state", func() bool {
		c = l.claim(id)
		return c.State == state
	})
	return c
}

// unmatched lists unmatched payments, without those from before the test.
func (l *life) unmatched() []store.UnmatchedPayment {
	l.t.Helper()
	list, err := l.store.UnmatchedPayments(solana.Signature{}, store.MaxUnmatchedPage)
	l.chain.must(err)
	return slices.DeleteFunc(list, func(x store.UnmatchedPayment) bool { return x.Slot <= l.chain.began })
}

func amountOf(t testing.TB, a *rpc.Account) uint64 {
	t.Helper()
	parsed, err := token.ParseAccount(a.Owner, a.Data)
	if err != nil {
		t.Fatal(err)
	}
	return uint64(parsed.Amount)
}

func addressOf(key ed25519.PrivateKey) solana.Address {
	return solana.Address(key.Public().(ed25519.PublicKey))
}

// advance lets slots pass at once, and waits until the service builds on a blockhash
// that is as much newer.
func (l *life) advance(slots int) {
	l.t.Helper()
	before, err := l.client.Blockhash(l.t.Context())
	l.chain.must(err)
	l.chain.advance(slots)
	await.True(l.t, "a newer blockhash", func() bool {
		b, err := l.client.Blockhash(l.t.Context())
		return err == nil && b.LastValidBlockHeight >= before.LastValidBlockHeight+uint64(slots)
	})
}

// expire lets all blockhashes of now die, and those that the tracker has guessed.
func (l *life) expire() {
	l.t.Helper()
	l.advance(blockhashLife + 200)
	l.expired, l.expiredAt = l.expired+1, time.Now()
}

// expireMissing calls expire where the tracker waits for a transaction whose bytes are
// not there, and reports whether it has. The tracker gets time to see each end: twice
// as long as for the one before, until it waits for none.
func (l *life) expireMissing() bool {
	l.t.Helper()
	if l.settle.Health().Tracker.Missing == 0 {
		l.expired = 0
		return false
	}
	if time.Since(l.expiredAt) < 50*time.Millisecond<<l.expired {
		return false
	}
	l.expire()
	return true
}

// expiring waits until cond holds, while what cannot land any more expires.
func (l *life) expiring(what string, cond func() bool) {
	l.t.Helper()
	await.True(l.t, what, func() bool {
		l.expireMissing()
		return cond()
	})
}

// tracks waits until the tracker has looked after its transactions in three more
// slots.
func (l *life) tracks() {
	l.t.Helper()
	slot := func() uint64 { return l.settle.Health().Tracker.Position.Slot }
	from := await.Value(l.t, "a look of the tracker", slot, func(s uint64) bool { return s > 0 })
	await.True(l.t, "three more looks of the tracker", func() bool { return slot() >= from+3 })
}
