package settle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/internal/solana/token"
	"blockdesk/market"
)

const (
	// maxBlockhashAge is the age from which the newest blockhash is not used.
	maxBlockhashAge = 30 * time.Second
	// refreshCheckEvery is the pause between two checks for missing chain state,
	// unless Options.RefreshEvery is shorter.
	refreshCheckEvery = time.Second
)

// chainState is the state of the chain that the desk's transactions depend on: a
// recent blockhash, the mints, and the account that USDC is paid to.
type chainState struct {
	*env
	network      *network
	extensions   token.Extensions // allowed in a mint
	refreshEvery time.Duration

	accounts atomic.Pointer[accounts]
	newest   atomic.Pointer[rpc.Blockhash]
}

// accounts are the mints and the payee's account as finalized at readAt. Immutable.
type accounts struct {
	readAt time.Time
	mints  map[solana.Address]token.Checked
	// payee is the wallet that has an account of payMint; zero if it has none.
	payee, payMint solana.Address
	// untradable maps each mint that cannot be traded to the reason.
	untradable map[solana.Address]error
}

// mint returns a mint that may be traded. Errors: [ErrNotReady].
func (a *accounts) mint(address solana.Address) (token.Checked, error) {
	if a == nil {
		return token.Checked{}, fmt.Errorf("%w: no mint has been read from the chain", ErrNotReady)
	}
	if m, ok := a.mints[address]; ok {
		return m, nil
	}
	if err := a.untradable[address]; err != nil {
		return token.Checked{}, fmt.Errorf("%w: %w", ErrNotReady, err)
	}
	return token.Checked{}, fmt.Errorf("%w: mint %s has not been read from the chain", ErrNotReady, solana.Base58(address))
}

// check returns nil if no account that the desk's view needs is missing. Errors:
// [ErrNotReady].
func (a *accounts) check(v *rfq.View) error {
	if wallet, ok := usdcPayee(v); ok {
		mint, err := a.mint(v.Policy.USDCMint)
		if err != nil {
			return fmt.Errorf("USDC: %w", err)
		}
		if mint.Decimals() != uint8(market.RailUSDC.Decimals()) {
			return fmt.Errorf("%w: USDC mint %s has %d decimals, want 6: check rfq.usdc_mint", ErrNotReady, solana.Base58(mint.Address()), mint.Decimals())
		}
		if a.payee != wallet || a.payMint != v.Policy.USDCMint {
			return fmt.Errorf("%w: %s has no USDC account: create its associated token account, so that clients can pay to it",
				ErrNotReady, solana.Base58(wallet))
		}
	}
	for i := range v.Pairs {
		p := &v.Pairs[i]
		mint, err := a.mint(p.BaseMint)
		if err != nil {
			return fmt.Errorf("base asset of instrument %d: %w", p.Instrument, err)
		}
		if mint.Decimals() != p.BaseDecimals {
			return fmt.Errorf("%w: the base asset of instrument %d has %d decimals in the configuration, its mint %s has %d", ErrNotReady,
				p.Instrument, p.BaseDecimals, solana.Base58(p.BaseMint), mint.Decimals())
		}
	}
	return nil
}

// usdcPayee returns the wallet to which new claims pay USDC; ok is false if USDC is
// not served.
func usdcPayee(v *rfq.View) (wallet solana.Address, ok bool) {
	wallet = v.Policy.PayTo[market.RailUSDC]
	return wallet, wallet != solana.Address{}
}

func mintsOf(v *rfq.View) (list []solana.Address) {
	if v.Policy.USDCMint != (solana.Address{}) { // old claims may still be paid in it, even if new ones are not
		list = append(list, v.Policy.USDCMint)
	}
	for i := range v.Pairs {
		if mint := v.Pairs[i].BaseMint; !slices.Contains(list, mint) {
			list = append(list, mint)
		}
	}
	return list
}

// ready returns nil if transactions for v can be built now. Errors: [ErrNotReady].
func (s *chainState) ready(v *rfq.View) error {
	if s.network.known.Load() == nil {
		return fmt.Errorf("%w: the network of the nodes is not checked yet", ErrNotReady)
	}
	if b := s.newest.Load(); b == nil || time.Since(b.FetchedAt) > maxBlockhashAge {
		return fmt.Errorf("%w: there is no recent blockhash", ErrNotReady)
	}
	return s.accounts.Load().check(v)
}

// mint calls accounts.mint on the accounts that were read last.
func (s *chainState) mint(address solana.Address) (token.Checked, error) {
	return s.accounts.Load().mint(address)
}

func (s *chainState) checkEvery() time.Duration { return min(refreshCheckEvery, s.refreshEvery) }

func (s *chainState) keepFresh(ctx context.Context) error {
	tick := time.NewTicker(s.checkEvery())
	defer tick.Stop()
	var last error
	for {
		err := s.refresh(ctx)
		if err != nil && ctx.Err() == nil && (last == nil || last.Error() != err.Error()) {
			s.log.Warn("settlement is not ready", "error", err)
		}
		last = err
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// refresh checks the network once, gets a blockhash, and reads the accounts if some are missing or old.
func (s *chainState) refresh(ctx context.Context) error {
	if err := s.network.check(ctx); err != nil {
		return err
	}
	if _, err := s.blockhash(ctx); err != nil {
		return err
	}
	v, a := s.desk.View(), s.accounts.Load()
	if v == nil || a != nil && a.check(v) == nil && s.clock().Sub(a.readAt) < s.refreshEvery {
		return nil
	}
	next, err := s.read(ctx, v)
	if err != nil {
		return err
	}
	if newer := s.desk.View(); newer != v && next.check(newer) != nil && a.check(newer) == nil {
		return nil // the policy has changed meanwhile, and the accounts that were read before are enough for it
	}
	s.accounts.Store(next)
	return next.check(v)
}

// blockhash returns a recent blockhash. Errors: [ErrChain].
func (s *chainState) blockhash(ctx context.Context) (rpc.Blockhash, error) {
	b, err := s.node.Blockhash(ctx)
	if err != nil {
		return rpc.Blockhash{}, fmt.Errorf("%w: %w", ErrChain, err)
	}
	s.newest.Store(&b)
	return b, nil
}

// read reads the finalized accounts that a view needs. Errors: [ErrChain].
func (s *chainState) read(ctx context.Context, v *rfq.View) (*accounts, error) {
	a := &accounts{readAt: s.clock(), mints: map[solana.Address]token.Checked{}, untradable: map[solana.Address]error{}}
	err := s.readEach(ctx, mintsOf(v), s.mintMeans, func(address solana.Address, account *rpc.Account) {
		mint, err := s.checkMint(address, account)
		if err != nil {
			a.untradable[address] = err
			return
		}
		a.mints[address] = mint
	})
	if err != nil {
		return nil, err
	}
	wallet, ok := usdcPayee(v)
	usdc, known := a.mints[v.Policy.USDCMint]
	if !ok || !known {
		return a, nil
	}
	address, err := solana.TokenAccount(wallet, usdc.Address(), usdc.Program())
	if err != nil {
		return nil, err
	}
	takes := func(_ solana.Address, account *rpc.Account) any { return takesTokens(account, wallet, usdc.Address()) }
	return a, s.readEach(ctx, []solana.Address{address}, takes, func(_ solana.Address, account *rpc.Account) {
		if takesTokens(account, wallet, usdc.Address()) {
			a.payee, a.payMint = wallet, usdc.Address()
		}
	})
}

// takesTokens reports whether an account, nil if it does not exist, is a wallet's account of
// a mint to which tokens can be paid.
func takesTokens(a *rpc.Account, wallet, mint solana.Address) bool {
	if a == nil {
		return false
	}
	held, err := token.ParseAccount(a.Owner, a.Data)
	return err == nil && held.Owner == wallet && held.Mint == mint && held.State == token.Initialized
}

// mintMeans is what of a mint's account matters: its supply, for example, does not.
func (s *chainState) mintMeans(address solana.Address, a *rpc.Account) any {
	type meaning struct {
		mint    token.Checked
		problem string
	}
	mint, err := s.checkMint(address, a)
	if err != nil {
		return meaning{problem: err.Error()}
	}
	return meaning{mint: mint}
}

var errNoMint = errors.New("no such account on the chain")

// checkMint returns the mint of an account, which is nil if it does not exist.
func (s *chainState) checkMint(address solana.Address, a *rpc.Account) (token.Checked, error) {
	if a == nil {
		return token.Checked{}, fmt.Errorf("mint %s: %w", solana.Base58(address), errNoMint)
	}
	mint, err := token.ParseMint(address, a.Owner, a.Data)
	if err != nil {
		return token.Checked{}, err
	}
	return mint.Check(s.extensions)
}
