package settle_test

import (
	"testing"
	"time"

	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/internal/await"
	"blockdesk/internal/solana"
	"blockdesk/market"
	"blockdesk/settle"
)

// TestBalances: the desk sells no more than its wallet holds on the chain; a claim that is
// paid and cannot be delivered is listed at once; refilled, everything goes on by itself.
func TestBalances(t *testing.T) {
	c := startChain(t)
	l := begin(t, c, lifeOptions{change: func(o *settle.Options) { o.BalanceEvery = 50 * time.Millisecond }}).openGuarded()
	onChain := func(atoms uint64) {
		t.Helper()
		await.True(t, "the balance is known", func() bool { return l.desk.View().Pair(1).OnChain == atoms })
	}
	balance := func(symbol string) desk.Balance {
		for _, b := range l.settle.Balances() {
			if b.Asset == symbol {
				return b
			}
		}
		return desk.Balance{}
	}
	held := c.tokens(c.desk, "SLUSD")
	onChain(held)
	w := c.wallet(0)
	had := c.tokens(w.address, "SLUSD")
	claim := l.claimFor(rfq.Modular, w, true)
	p := l.pack(claim, 0)
	c.setTokens(c.desk, "SLUSD", claim.Terms.Base-1)
	onChain(claim.Terms.Base - 1)
	if b := balance(solana.Base58(c.mints["SLUSD"])); !b.Base || b.Instrument != 1 {
		t.Errorf("%+v", b)
	}
	await.True(t, "it is too low for what is reserved", func() bool {
		b := balance(solana.Base58(c.mints["SLUSD"]))
		return b.Problem() == desk.LowToken && b.Needed == claim.Terms.Base
	})
	if result, err := l.desk.Do(&rfq.TakeClaim{
		Ticket: 1, Tranche: 1, Fill: 1, Rail: market.RailUSDC, Mode: rfq.Modular, Wallet: c.wallet(1).address, Proven: true,
	}); err != nil || result.Reason != event.ReasonInventory {
		t.Errorf("a claim beyond the balance: %+v, %v", result, err)
	}
	c.send(w.fill(t, p.Transaction))
	l.fails(claim.ID, "inventory")
	c.setTokens(c.desk, "SLUSD", held)
	l.delivered(claim, had)
	onChain(held - claim.Terms.Base)
	if b := balance("USDC"); b.Problem() != "" || b.Mint != solana.Base58(c.mints["USDC"]) || b.Atoms != c.tokens(c.desk, "USDC") || b.Base {
		t.Errorf("%+v", b)
	}
	if b := balance("USDC"); b.Supply < b.Atoms || b.Slot == 0 || b.Account == (market.Address{}) {
		t.Errorf("the supply and the account of USDC: %+v", b)
	}
	if b := balance("SOL"); b.Problem() != "" || b.Atoms == 0 || b.Needed == 0 {
		t.Errorf("%+v", b)
	}
}
