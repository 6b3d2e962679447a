package settle

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/build"
	"blockdesk/internal/solana/rpc"
	"blockdesk/internal/solana/token"
	"blockdesk/market"
)

// The SOL that the desk's wallet needs: for LowDeliveries deliveries to new wallets.
const (
	// LowDeliveries is the number of deliveries below which the wallet counts as low (our
	// choice).
	LowDeliveries = 50
	// deliveryRent is what a new token account of the largest kind costs.
	deliveryRent = 2_074_080
	// deliveryFee is the fee of one signature.
	deliveryFee = 5_000
)

// balances reads what the desk's wallet holds, and reports the base tokens to the desk,
// which sells no more than that. It reads the supplies of their mints too.
type balances struct {
	*env
	chain  *chainState
	orders *refundOrders
	every  time.Duration
	sol    uint64 // lamports that are needed
	newest atomic.Pointer[[]desk.Balance]
}

// run reads the balances until ctx ends.
func (b *balances) run(ctx context.Context) error {
	var last error
	for {
		err := b.read(ctx)
		if err != nil && ctx.Err() == nil && (last == nil || last.Error() != err.Error()) {
			b.log.Warn("reading the balances of the desk's wallet failed", "error", err)
		}
		pause := b.every
		if last = err; err != nil || b.newest.Load() == nil {
			pause = min(pause, b.chain.checkEvery())
		}
		if !sleep(ctx, pause) {
			return nil
		}
	}
}

// wanted is an account to read: the wallet itself if mint is zero, the mint if address is
// the mint, or else the wallet's account of the mint. instrument is valid if base is set.
type wanted struct {
	address, mint solana.Address
	instrument    market.InstrumentID
	base          bool
}

func (w *wanted) isWallet() bool { return w.mint == solana.Address{} }
func (w *wanted) isMint() bool   { return w.address == w.mint }

// tokenOf returns the wallet's account of a mint; false while the mint is unknown.
func (b *balances) tokenOf(wallet, of solana.Address) (wanted, bool, error) {
	mint, err := b.chain.mint(of)
	if err != nil {
		return wanted{}, false, nil //nolint:nilerr // Ready names it
	}
	account, err := solana.TokenAccount(wallet, mint.Address(), mint.Program())
	return wanted{address: account, mint: of}, true, err
}

// read reads all balances once. It does nothing while mints or the wallet are unknown.
func (b *balances) read(ctx context.Context) error {
	wallet, v := b.signer.Address(), b.desk.View()
	if v == nil || wallet == (solana.Address{}) {
		return nil
	}
	list := []wanted{{address: wallet}}
	if v.Policy.USDCMint != (solana.Address{}) {
		usdc, known, err := b.tokenOf(wallet, v.Policy.USDCMint)
		switch {
		case err != nil:
			return err
		case known:
			list = append(list, usdc, wanted{address: usdc.mint, mint: usdc.mint})
		}
	}
	for i := range v.Pairs {
		p := &v.Pairs[i]
		account, known, err := b.tokenOf(wallet, p.BaseMint)
		switch {
		case err != nil:
			return err
		case known:
			account.instrument, account.base = p.Instrument, true
			list = append(list, account, wanted{address: p.BaseMint, mint: p.BaseMint})
		}
	}
	held, slot, err := b.held(ctx, list)
	if err != nil {
		return err
	}
	var out []desk.Balance
	refunds := b.orders.needed()
	for i := range list {
		switch w := &list[i]; {
		case w.isMint():
			out[len(out)-1].Supply = held[i] // that of the account before it
		case w.isWallet():
			out = append(out, desk.Balance{Asset: "SOL", Atoms: held[i], Needed: b.sol + refunds[market.RailSOL], Slot: slot})
		default:
			mint := solana.Base58(w.mint)
			one := desk.Balance{Asset: market.RailUSDC.String(), Mint: mint, Atoms: held[i], Needed: refunds[market.RailUSDC], Account: w.address, Slot: slot}
			if w.base {
				one.Asset, one.Instrument, one.Base, one.Needed = mint, w.instrument, true, v.Pair(w.instrument).Reserved
				if err := b.report(v.Pair(w.instrument), held[i], slot); err != nil {
					return err
				}
			}
			out = append(out, one)
		}
	}
	b.newest.Store(&out)
	return nil
}

// held returns the atoms of each account, or the supply of each mint, that a majority of the
// configured nodes reports at least, 0 if the account does not exist, and the lowest slot of those answers. The
// nodes answer as of different slots, so they need not report the same.
func (b *balances) held(ctx context.Context, list []wanted) (atoms []uint64, slot uint64, err error) {
	for part := range slices.Chunk(list, rpc.MaxAccountsPerCall) {
		addresses := make([]solana.Address, len(part))
		for i := range part {
			addresses[i] = part[i].address
		}
		views, err := b.node.AccountsFromEach(ctx, addresses, rpc.Finalized, 0)
		if err != nil {
			return nil, 0, fmt.Errorf("%w: %w", ErrChain, err)
		}
		answers := slices.DeleteFunc(slices.Clone(views), func(x rpc.NodeAccounts) bool { return x.Err != nil || len(x.Accounts) != len(part) })
		majority := len(views)/2 + 1
		if len(answers) < majority {
			return nil, 0, fmt.Errorf("%w: only %d of %d nodes returned the balances", ErrChain, len(answers), len(views))
		}
		for j := range answers {
			if s := answers[j].Slot; slot == 0 || s < slot {
				slot = s
			}
		}
		for i := range part {
			reported := make([]uint64, len(answers))
			for j := range answers {
				reported[j] = atomsOf(&part[i], answers[j].Accounts[i])
			}
			slices.Sort(reported)
			atoms = append(atoms, reported[len(reported)-majority])
		}
	}
	return atoms, slot, nil
}

// atomsOf returns the lamports of a wallet, the supply of a mint, or the tokens of an
// account that is ours.
func atomsOf(w *wanted, a *rpc.Account) uint64 {
	switch {
	case a == nil:
		return 0
	case w.isWallet():
		return uint64(a.Lamports)
	case w.isMint():
		mint, err := token.ParseMint(w.mint, a.Owner, a.Data)
		if err != nil {
			return 0
		}
		return uint64(mint.Supply)
	}
	held, err := token.ParseAccount(a.Owner, a.Data)
	if err != nil || !bytes.Equal(held.Mint[:], w.mint[:]) || held.State != token.Initialized {
		return 0
	}
	return uint64(held.Amount)
}

// report sends the desk a balance that differs from the one it counts with. was is the
// pair before the nodes were asked: if something was sold meanwhile, the answer may be
// from before the sale, and the next round decides.
func (b *balances) report(was *rfq.Pair, atoms, slot uint64) error {
	v := b.desk.View()
	now := v.Pair(was.Instrument)
	if v.Policy.Rules != rfq.RulesGuarded || now == nil || now.Sold != was.Sold || now.OnChainAt != 0 && now.OnChain == atoms {
		return nil
	}
	result, err := b.desk.Do(&rfq.SetBalance{Instrument: was.Instrument, Atoms: atoms, Slot: slot})
	switch {
	case err != nil:
		return fmt.Errorf("settle: recording the balance of instrument %d: %w", was.Instrument, err)
	case result.Reason != 0:
		return fmt.Errorf("%w to record the balance of instrument %d: %s", ErrRefused, was.Instrument, result.Reason)
	}
	return nil
}

// solNeeded returns the lamports that LowDeliveries deliveries cost.
func solNeeded(budget build.Budget) uint64 {
	priority, err := budget.PriorityLamports()
	if err != nil { // Options.Validate refuses it
		return 0
	}
	return LowDeliveries * (deliveryRent + deliveryFee + uint64(priority))
}

// Balances returns what the desk's wallet held when it was read last: SOL, USDC,
// then the base token of each pair. Nil before the first reading. It does not block; read-only.
func (b *balances) Balances() []desk.Balance {
	if list := b.newest.Load(); list != nil {
		return *list
	}
	return nil
}
