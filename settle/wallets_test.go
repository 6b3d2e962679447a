package settle_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
)

// notWallets are addresses that cannot be a claim's wallet.
func notWallets(t *testing.T, c *chain) map[string]solana.Address {
	t.Helper()
	account, err := solana.TokenAccount(c.treasury, c.mints["USDC"], c.programs["USDC"])
	c.must(err)
	return map[string]solana.Address{
		"zero, the system program": {}, "the token program": solana.TokenProgram, "the memo program": solana.MemoProgram,
		"a sysvar": solana.ClockSysvar, "an address off the curve": account, "the desk": c.desk, "the treasury": c.treasury,
		"the mint of USDC": c.mints["USDC"], "the mint that is sold": c.mints["SLUSD"], "a small-order key": {0: 1},
	}
}

// TestPayableWallet: what cannot sign, or is ours, is refused before anything is reserved;
// if it is reserved all the same, the claim is released at once and holds nothing.
func TestPayableWallet(t *testing.T) {
	c := startChain(t)
	l := begin(t, c, lifeOptions{}).open()
	if err := l.settle.PayableWallet(c.wallet(0).address); err != nil {
		t.Error(err)
	}
	for name, address := range notWallets(t, c) {
		if err := l.settle.PayableWallet(address); !errors.Is(err, desk.ErrWallet) {
			t.Errorf("%s: %v", name, err)
		}
		for _, way := range []rfq.SettlementMode{rfq.Modular, rfq.Atomic} {
			if address == (solana.Address{}) {
				continue // the desk itself refuses it
			}
			claim := l.take(way, 1, market.RailUSDC, wallet{address: address})
			_, err := l.settle.Package(t.Context(), claim, 0)
			if refusal := (*desk.Refusal)(nil); !errors.As(err, &refusal) || refusal.Reason != desk.RefusalUnbuildable {
				t.Errorf("%s: %v", name, err)
			}
			if now := l.claim(claim.ID); now.State != rfq.ClaimReleased {
				t.Errorf("%s: the claim is %s", name, now.State.Word())
			}
		}
	}
	if got := l.desk.View().Pair(1).Reserved; got != 0 {
		t.Errorf("%d atoms are reserved", got)
	}
}

// TestFreshPackage: a node with default settings accepts a package at once; a fresh one has
// a newer blockhash, is what counts from then on, and there is none once the claim has
// moved on.
func TestFreshPackage(t *testing.T) {
	c := startChain(t)
	l := begin(t, c, lifeOptions{}).open()
	for name, way := range map[string]rfq.SettlementMode{"modular": rfq.Modular, "atomic": rfq.Atomic} {
		t.Run(name, func(t *testing.T) {
			w := c.wallet(int(way))
			claim := l.take(way, 1, market.RailUSDC, w)
			if _, err := l.settle.FreshPackage(t.Context(), claim.ID); !errors.Is(err, desk.ErrUnknownBuild) {
				t.Errorf("before the first package: %v", err)
			}
			first := l.pack(claim, desk.TakerPays)
			l.advance(20)
			fresh, err := l.settle.FreshPackage(t.Context(), claim.ID)
			if err != nil || fresh.Blockhash == first.Blockhash || fresh.LastValid < first.LastValid+20 || fresh.Memo != first.Memo ||
				len(fresh.Signers) != len(first.Signers) || fresh.Signers[0] != w.address {
				t.Fatalf("%+v after %+v, %v", fresh, first, err)
			}
			if again := l.pack(claim, 0); again.Hash != fresh.Hash {
				t.Error("the first package is handed out again")
			}
			if way == rfq.Modular {
				// The node's defaults: it simulates as of its finalized slot.
				_, err := c.client.Send(t.Context(), w.fill(t, fresh.Transaction), rpc.SendOptions{Level: rpc.Finalized})
				c.must(err)
			} else {
				_, err := l.submit(t.Context(), claim.ID, w.address, submission(w.fill(t, first.Transaction)))
				if refusal := (*desk.Refusal)(nil); !errors.As(err, &refusal) || refusal.Reason != desk.RefusalMessageMismatch {
					t.Errorf("the replaced build: %v", err)
				}
				_, err = l.submit(t.Context(), claim.ID, w.address, submission(w.fill(t, fresh.Transaction)))
				c.must(err)
			}
			l.becomes(claim.ID, rfq.ClaimSettled)
			_, err = l.settle.FreshPackage(t.Context(), claim.ID)
			if refusal := (*desk.Refusal)(nil); !errors.As(err, &refusal) || refusal.Reason != desk.RefusalAlreadySettled {
				t.Errorf("of a settled claim: %v", err)
			}
		})
	}
}

// TestFreshPackageInTime: a fresh package is given until the claim's deadline, and none after
// it, although the claim still holds its capacity for a payment that is on its way.
func TestFreshPackageInTime(t *testing.T) {
	c := startChain(t)
	clock := new(atomic.Int64)
	l := begin(t, c, lifeOptions{clock: clock}).openGuarded()
	claim := l.claimFor(rfq.Modular, c.wallet(0), true)
	l.pack(claim, 0)
	if _, err := l.settle.FreshPackage(t.Context(), claim.ID); err != nil {
		t.Errorf("before the deadline: %v", err)
	}
	l.tick(clock, guardedTTL+time.Second)
	_, err := l.settle.FreshPackage(t.Context(), claim.ID)
	if refusal := (*desk.Refusal)(nil); !errors.As(err, &refusal) || refusal.Reason != desk.RefusalExpired {
		t.Errorf("after the deadline: %v", err)
	}
	if now := l.claim(claim.ID); now.State != rfq.ClaimReserved {
		t.Errorf("the claim is %s", now.State.Word())
	}
}
