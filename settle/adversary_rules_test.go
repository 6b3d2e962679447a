package settle_test

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
	"blockdesk/settle"
	"blockdesk/settle/binding"
)

// nodesAt returns a client of nodes that gives up an attempt after a second.
func nodesAt(t *testing.T, urls ...string) *rpc.Client {
	t.Helper()
	o := rpc.Options{
		HedgeAfter: -1, Timeout: runtest.HangTimeout, AttemptTimeout: time.Second,
		BlockhashEvery: 20 * time.Millisecond, ProbeEvery: 100 * time.Millisecond,
	}
	for i, url := range urls {
		o.Upstreams = append(o.Upstreams, rpc.Upstream{Name: string(rune('a' + i)), URL: url})
	}
	client, err := rpc.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() { _ = client.Run(ctx) })
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	return client
}

// TestInventedPaymentOthersHang: one node of three has a payment, and the others do not
// answer, or answer 429: nothing is delivered, until one of them has it too.
func TestInventedPaymentOthersHang(t *testing.T) {
	for name, limited := range map[string]bool{"hanging": false, "limited": true} {
		t.Run(name, func(t *testing.T) {
			c := startChain(t)
			healed := make(chan struct{})
			silent := func(w http.ResponseWriter, _ *rand.Rand, _ json.RawMessage, method string) bool {
				if method != "getTransaction" {
					return false
				}
				if limited {
					w.WriteHeader(http.StatusTooManyRequests)
					return true
				}
				<-healed
				return false
			}
			first, second := newLyingNode(t, c.local.URL(), 1, silent), newLyingNode(t, c.local.URL(), 2, silent)
			first.bad.Store(true)
			second.bad.Store(true)
			heal := sync.OnceFunc(func() {
				first.bad.Store(false)
				second.bad.Store(false)
				close(healed)
			})
			t.Cleanup(heal) // before the nodes are closed
			signer := newHookedSigner(t, c)
			client := nodesAt(t, first.URL, c.local.URL(), second.URL)
			l := begin(t, c, lifeOptions{signer: signer, node: func(settle.Node) settle.Node { return client }}).openGuarded()
			w := c.wallet(0)
			claim := l.claimFor(rfq.Modular, w, true)
			paid := c.send(w.fill(t, l.pack(claim, 0).Transaction))
			await.True(t, "the payment is final", func() bool {
				_, ok, err := c.client.Transaction(t.Context(), paid, rpc.Finalized)
				return ok && err == nil
			})
			for range 3 {
				v, err := l.settle.Verify(t.Context(), &desk.PaymentProof{Ticket: claim.Terms.Ticket, Tranche: 1, Signature: paid})
				if err == nil && v.Pending == 0 {
					t.Errorf("verified: %+v", v)
				}
			}
			if now := l.claim(claim.ID); now.State != rfq.ClaimReserved || signer.calls.Load() != 0 {
				t.Fatalf("the claim is %s, %d signatures", now.State.Word(), signer.calls.Load())
			}
			heal()
			l.becomes(claim.ID, rfq.ClaimSettled)
		})
	}
}

// TestRestoredBackupHidden: after the restore of a backup from before a delivery, the node
// that is asked first hides that delivery. Nothing is delivered twice.
func TestRestoredBackupHidden(t *testing.T) {
	c := startChain(t)
	disk, hooked := vfs.FS(vfs.NewMem()), &hookedDesk{}
	hooked.before = func(r rfq.Request) error {
		if r.Kind() == rfq.KindBeginDelivery {
			return errAway
		}
		return nil
	}
	l := begin(t, c, lifeOptions{fs: disk, dir: "data", desk: func(d settle.Desk) settle.Desk { hooked.Desk = d; return hooked }}).open()
	w := c.wallet(0)
	claim := l.payFor(1, w)
	l.becomes(claim.ID, rfq.ClaimPaid)
	l.end()
	backup := copyOf(t, whole(disk))
	l = begin(t, c, lifeOptions{fs: disk, dir: "data"}).ready()
	l.delivered(claim, 0)
	l.end()

	hider := newLyingNode(t, c.local.URL(), 1, func(w http.ResponseWriter, _ *rand.Rand, id json.RawMessage, method string) bool {
		text := map[string]string{"getTransaction": "null", "getSignaturesForAddress": "[]"}[method]
		if text == "" {
			return false
		}
		writeResult(w, id, text)
		return true
	})
	hider.bad.Store(true)
	signer, client := newHookedSigner(t, c), nodesAt(t, hider.URL, c.local.URL(), c.local.URL())
	l = begin(t, c, lifeOptions{fs: backup, dir: "data", signer: signer, node: func(settle.Node) settle.Node { return client }}).ready()
	l.expiring("its end", func() bool { return l.claim(claim.ID).State == rfq.ClaimSettled })
	l.delivered(claim, 0)
	if n := signer.calls.Load(); n != 0 {
		t.Errorf("%d signatures", n)
	}
}

// TestBlockTimeDecides: a payment in a block before the claim's deadline counts, although
// it is final only after it, and its capacity is still there; one in a later block is due
// for refund, and nothing is signed.
func TestBlockTimeDecides(t *testing.T) {
	c := startChain(t)
	clock, signer := new(atomic.Int64), newHookedSigner(t, c)
	l := begin(t, c, lifeOptions{clock: clock, signer: signer}).openGuarded()
	w := c.wallet(0)
	claim := l.claimFor(rfq.Modular, w, true)
	p := l.pack(claim, 0)
	c.control("holdFinality", map[string]any{"hold": true})
	c.send(w.fill(t, p.Transaction))
	l.tick(clock, guardedTTL+5*time.Second)
	if now := l.claim(claim.ID); now.State != rfq.ClaimReserved || l.desk.View().Ticket(1).Tranches[0].Reserved != claim.Terms.Fill.USD() {
		t.Errorf("after the deadline: %s, %d reserved", now.State.Word(), l.desk.View().Ticket(1).Tranches[0].Reserved)
	}
	c.control("heal", nil)
	l.becomes(claim.ID, rfq.ClaimSettled)

	before := signer.calls.Load()
	late := l.claimFor(rfq.Modular, w, true)
	p = l.pack(late, 0)
	c.control("setTime", map[string]any{"unixTimestamp": late.Deadline/1e9 + 2})
	c.advance(1)
	paid := c.send(w.fill(t, p.Transaction))
	await.True(t, "a refund due", func() bool {
		for _, x := range l.settle.RefundsDue([64]byte{}, 10) {
			if x.Signature == paid {
				if x.Reason != event.ReasonLatePayment || x.RefundAtoms() != late.Terms.Payment {
					t.Errorf("%+v", x)
				}
				return true
			}
		}
		return false
	})
	if signer.calls.Load() != before {
		t.Error("something was signed")
	}
}

// tick moves the engine's time ahead by d, with a command that shows it.
func (l *life) tick(clock *atomic.Int64, d time.Duration) {
	l.t.Helper()
	clock.Add(int64(d))
	l.anchor(1_000_000_000)
}

// TestNobodyIsLockedOut: claims without proof in a victim's name, of many addresses, take
// their share and no more; the victim's atomic claim is built, signed and settled, and other
// buyers with proof find the rest.
func TestNobodyIsLockedOut(t *testing.T) {
	c := startChain(t)
	l := begin(t, c, lifeOptions{}).openGuarded()
	victim := c.wallet(5)
	take := func(client rfq.ClientAddress, fill market.FillUSD, proven bool) event.Reason {
		t.Helper()
		result, err := l.desk.Do(&rfq.TakeClaim{
			Ticket: 1, Tranche: 1, Fill: fill, Rail: market.RailUSDC, Mode: rfq.Modular, Wallet: victim.address, Client: client, Proven: proven,
		})
		c.must(err)
		return result.Reason
	}
	const million, twoAndAHalf = market.FillUSD(5), market.FillUSD(6)
	if got := take(1, twoAndAHalf, false); got != event.ReasonUnprovenLimit {
		t.Errorf("more than an address may: %s", got)
	}
	for client := range rfq.ClientAddress(20) {
		want := event.ReasonNone
		if client >= 3 { // 30 % of ten millions
			want = event.ReasonUnprovenShare
		}
		if got := take(1+client, million, false); got != want {
			t.Errorf("address %d: %s", client, got)
		}
	}
	claim := l.claimFor(rfq.Atomic, victim, true)
	_, err := l.submit(t.Context(), claim.ID, victim.address, submission(victim.fill(t, l.pack(claim, 0).Transaction)))
	c.must(err)
	l.becomes(claim.ID, rfq.ClaimSettled)
	for range 2 {
		if got := take(0, twoAndAHalf, true); got != event.ReasonNone {
			t.Errorf("a buyer with proof: %s", got)
		}
	}
}

// TestSurplusIsPaidBack: a claim that is paid more than its terms is delivered as it was
// bought, and what is over goes back to the payer, to the atom and once. A surplus within
// the dust limit is kept. While the refund waits, the desk's wallet needs what is over for
// it, and no more.
func TestSurplusIsPaidBack(t *testing.T) {
	c := startChain(t)
	l := begin(t, c, lifeOptions{change: func(o *settle.Options) { o.BalanceEvery = 50 * time.Millisecond }}).openGuarded()
	l.must(&rfq.SetOperator{Of: rfq.Operator{ID: 3, Name: "ann"}})
	dust := l.desk.View().Policy.Dust[market.RailUSDC]
	buy := func(w wallet, over uint64) solana.Signature {
		t.Helper()
		claim, had := l.claimFor(rfq.Modular, w, true), c.tokens(w.address, "SLUSD")
		paid := c.transfer(w, c.leg(market.RailUSDC, claim.Terms.Payment+over, c.treasury), binding.Memo(claim.ID), binding.Reference(claim.ID))
		l.delivered(claim, had)
		return paid
	}
	const over = 249_750_000_000 // 249,750 USDC: a decimal point that was lost
	dusty, much := buy(c.wallet(1), dust), buy(c.wallet(0), over)
	due := l.settle.RefundsDue(solana.Signature{}, 10)
	if len(due) != 1 || due[0].Signature != much || due[0].Reason != event.ReasonSurplus {
		t.Fatalf("refunds due: %+v", due)
	}
	was := c.tokens(c.wallet(0).address, "USDC")
	l.must(&rfq.SetLock{Scope: rfq.LockDeliveries, Locked: true, Reason: "looking"})
	l.order(desk.RefundSelection{})
	await.Equal(t, "the USDC that refunds need", uint64(over), func() (needed uint64) {
		for _, b := range l.settle.Balances() {
			if b.Asset == market.RailUSDC.String() {
				needed = b.Needed
			}
		}
		return needed
	})
	l.must(&rfq.SetLock{Scope: rfq.LockDeliveries})
	await.Equal(t, "the refund", 1, func() int { return len(l.paidBack()) })
	if got := c.tokens(c.wallet(0).address, "USDC") - was; got != over {
		t.Errorf("%d atoms came back, %d were over", got, uint64(over))
	}
	for s, want := range map[solana.Signature]market.Amount{much: over, dusty: 0} {
		if sum, _ := c.refundsOnChain(s); sum != want {
			t.Errorf("%v: %d atoms were paid back, want %d", s, sum, want)
		}
	}
}
