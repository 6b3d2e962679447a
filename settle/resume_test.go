package settle_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/internal/await"
	"blockdesk/market"
	"blockdesk/settle"
	"blockdesk/settle/cosign"
)

var errAway = errors.New("away")

// hookedDesk lets a test lose the desk's requests and answers.
type hookedDesk struct {
	settle.Desk
	before func(r rfq.Request) error // nil: none
	after  atomic.Pointer[func(r rfq.Request) error]
}

func (d *hookedDesk) on(after func(r rfq.Request) error) { d.after.Store(&after) }

func (d *hookedDesk) Do(r rfq.Request) (*desk.Result, error) {
	if d.before != nil {
		if err := d.before(r); err != nil {
			return nil, err
		}
	}
	result, err := d.Desk.Do(r)
	if after := d.after.Load(); after != nil && err == nil {
		if err := (*after)(r); err != nil {
			return nil, err
		}
	}
	return result, err
}

// failing returns a hook that fails as often as left says.
func failing(left *atomic.Int64) error {
	if left.Add(-1) >= 0 {
		return errAway
	}
	return nil
}

// TestResumePermission: a submission that ended after the desk's permission goes on
// when it comes again, whatever cut it off, even where a guard would trip now.
func TestResumePermission(t *testing.T) {
	c := startChain(t)
	signer, hooked := newHookedSigner(t, c), &hookedDesk{}
	l := begin(t, c, lifeOptions{signer: signer, desk: func(d settle.Desk) settle.Desk { hooked.Desk = d; return hooked }}).open()
	var lost, away atomic.Int64
	hooked.on(func(r rfq.Request) error {
		if r.Kind() == rfq.KindCosignClaim {
			return failing(&lost)
		}
		return nil
	})
	signer.on(func(cosign.Job) error { return failing(&away) })
	for name, cut := range map[string]struct {
		counter *atomic.Int64
		want    error
	}{
		"the desk's answer is lost": {&lost, errAway}, "the signer is away": {&away, settle.ErrSigner},
	} {
		t.Run(name, func(t *testing.T) {
			w := c.wallet(0)
			claim := l.take(rfq.Atomic, 1, market.RailUSDC, w)
			p := l.pack(claim, 0)
			cut.counter.Store(2)
			for range 2 {
				if _, err := l.submit(t.Context(), claim.ID, w.address, submission(w.fill(t, p.Transaction))); !errors.Is(err, cut.want) {
					t.Fatalf("%v", err)
				}
				if b, _, err := l.settle.Build(t.Context(), claim.ID); err != nil || b.Stage != desk.BuildBroadcast || l.claim(claim.ID).State != rfq.ClaimCosigned {
					t.Fatalf("the build is %v, the claim %+v, %v", b.Stage, l.claim(claim.ID), err)
				}
			}
			l.must(&rfq.SetLock{Scope: rfq.LockAll, Locked: true, Reason: "after the permission"})
			defer l.must(&rfq.SetLock{Scope: rfq.LockAll})
			if _, err := l.submit(t.Context(), claim.ID, w.address, submission(w.fill(t, p.Transaction))); err != nil {
				t.Fatal(err)
			}
			l.becomes(claim.ID, rfq.ClaimSettled)
		})
	}
}

// TestPermissionExpires: a permission without another submission is released once its
// transaction can no longer land, and no signature exists.
func TestPermissionExpires(t *testing.T) {
	c := startChain(t)
	signer := newHookedSigner(t, c)
	l := begin(t, c, lifeOptions{signer: signer}).open()
	signer.on(func(cosign.Job) error { return errAway })
	w := c.wallet(0)
	claim := l.take(rfq.Atomic, 1, market.RailUSDC, w)
	p := l.pack(claim, 0)
	if _, err := l.submit(t.Context(), claim.ID, w.address, submission(w.fill(t, p.Transaction))); !errors.Is(err, settle.ErrSigner) {
		t.Fatal(err)
	}
	l.tracks()
	if state := l.claim(claim.ID).State; state != rfq.ClaimCosigned {
		t.Fatalf("the claim is %d while its blockhash lives", state)
	}
	l.expire()
	l.becomes(claim.ID, rfq.ClaimReleased)
	signer.on(func(cosign.Job) error { return nil })
	_, err := l.submit(t.Context(), claim.ID, w.address, submission(w.fill(t, p.Transaction)))
	refusal := (*desk.Refusal)(nil)
	if !errors.As(err, &refusal) || refusal.Reason != desk.RefusalExpired {
		t.Errorf("submitted after its release: %v", err)
	}
	if _, ok, err := l.settle.Delivery(claim.ID); ok || err != nil {
		t.Errorf("a signature exists: %v", err)
	}
	if b, _, err := l.settle.Build(t.Context(), claim.ID); err != nil || b.Stage != desk.BuildExpired {
		t.Errorf("the build is %v, %v", b.Stage, err)
	}
}

// TestReleased: a signed transaction that never landed is given back, and the
// submission's answer stays, with what has become of it.
func TestReleased(t *testing.T) {
	c := startChain(t)
	l := begin(t, c, lifeOptions{}).open()
	w := c.wallet(0)
	for _, end := range []desk.BuildStage{desk.BuildExpired, desk.BuildFailed} {
		t.Run(end.String(), func(t *testing.T) {
			claim := l.take(rfq.Atomic, 1, market.RailUSDC, w)
			p := l.pack(claim, 0)
			has := c.tokens(w.address, "USDC")
			if end == desk.BuildExpired {
				c.control("dropSends", map[string]any{"count": 1_000_000})
			} else {
				c.control("delayLanding", map[string]any{"slots": 4})
				c.control("pause", nil)
			}
			got, err := l.submit(t.Context(), claim.ID, w.address, submission(w.fill(t, p.Transaction)))
			if err != nil {
				t.Fatal(err)
			}
			if end == desk.BuildExpired {
				l.expire()
			} else {
				c.setTokens(w.address, "USDC", 1) // before it lands
				c.control("resume", nil)
			}
			l.becomes(claim.ID, rfq.ClaimReleased)
			c.control("heal", nil)
			c.setTokens(w.address, "USDC", has)
			again, err := l.submit(t.Context(), claim.ID, w.address, submission(w.fill(t, p.Transaction)))
			if err != nil || again.Signature != got.Signature || again.Stage != end || (again.Slot != 0) != (end == desk.BuildFailed) {
				t.Errorf("submitted again: %+v, %v", again, err)
			}
			if v := l.desk.View().Pair(1); v.Reserved != 0 {
				t.Errorf("%d atoms are held", v.Reserved)
			}
		})
	}
}

// TestStartTakesUp: what the recovered machine remembers is taken up, and refunds
// that are due are listed, without any event.
func TestStartTakesUp(t *testing.T) {
	c := startChain(t)
	dir := t.TempDir()
	signer := newHookedSigner(t, c)
	signer.on(func(cosign.Job) error { return errAway })
	l := begin(t, c, lifeOptions{dir: dir, signer: signer}).open()
	w := c.wallet(0)
	claim := l.take(rfq.Modular, 1, market.RailUSDC, w)
	for n := range byte(2) { // the second one is a surplus
		l.must(&rfq.ProvePayment{Claim: claim.ID, Rail: market.RailUSDC, Signature: [64]byte{7, n}, Payer: w.address, Amount: claim.Terms.Payment, Slot: 1})
	}
	l.becomes(claim.ID, rfq.ClaimDelivering)
	l.end()
	l = begin(t, c, lifeOptions{dir: dir}).ready()
	due := l.settle.RefundsDue([64]byte{}, 10)
	if len(due) != 1 || due[0].Signature != [64]byte{7, 1} || due[0].Reason != event.ReasonClaimState {
		t.Fatalf("due: %+v", due)
	}
	l.expiring("its end", func() bool { return l.claim(claim.ID).State == rfq.ClaimSettled })
	if got := c.tokens(w.address, "SLUSD"); got != claim.Terms.Base {
		t.Errorf("%d atoms were delivered, %d bought", got, claim.Terms.Base)
	}
	operator := &rfq.SetOperator{Of: rfq.Operator{ID: 3, Name: "ann"}}
	l.must(operator)
	result, err := l.settle.Refunded(desk.OperatorRequest{Operator: 3, Name: "ann"}, due[0].Signature, [64]byte{9})
	if err != nil || result.Reason != 0 {
		t.Fatalf("%+v, %v", result, err)
	}
	await.True(l.t, "nothing due", func() bool { return len(l.settle.RefundsDue([64]byte{}, 10)) == 0 })
}

// TestImpatientCaller: a caller that leaves after the permission does not stop the
// signature; one that leaves before it has submitted nothing.
func TestImpatientCaller(t *testing.T) {
	c := startChain(t)
	signer := newHookedSigner(t, c)
	l := begin(t, c, lifeOptions{signer: signer}).open()
	w := c.wallet(0)
	claim := l.take(rfq.Atomic, 1, market.RailUSDC, w)
	p := l.pack(claim, 0)
	ctx, leave := context.WithCancel(t.Context())
	signer.on(func(cosign.Job) error {
		leave()
		return nil
	})
	if _, err := l.submit(ctx, claim.ID, w.address, submission(w.fill(t, p.Transaction))); err != nil {
		t.Errorf("gone after the permission: %v", err)
	}
	l.becomes(claim.ID, rfq.ClaimSettled)
	other := l.take(rfq.Atomic, 1, market.RailUSDC, w)
	p = l.pack(other, 0)
	if _, err := l.submit(ctx, other.ID, w.address, submission(w.fill(t, p.Transaction))); err == nil || l.claim(other.ID).State != rfq.ClaimReserved {
		t.Errorf("gone before it: %v", err)
	}
}
