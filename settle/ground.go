package settle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/internal/solana/token"
	"blockdesk/market"
)

const (
	// maxBlockhashAge is when Ready no longer counts on the newest blockhash.
	maxBlockhashAge = 30 * time.Second
	// surveyEvery is how often it is looked whether something is missing, where
	// Options.RefreshEvery is not shorter.
	surveyEvery = time.Second
)

// ground is what our transactions stand on, as the chain has told it. It never
// changes: a new survey makes a new one.
type ground struct {
	readAt time.Time
	mints  map[solana.Address]token.Checked
	// payee is the wallet that has an account to be paid in payMint; zero if it
	// has none.
	payee, payMint solana.Address
	// wrong says of a mint why it cannot be traded.
	wrong map[solana.Address]error
}

// mint returns a mint that may be traded. Errors: [ErrNotReady].
func (g *ground) mint(a solana.Address) (token.Checked, error) {
	if g == nil {
		return token.Checked{}, fmt.Errorf("%w: no mint has been read from the chain", ErrNotReady)
	}
	if m, ok := g.mints[a]; ok {
		return m, nil
	}
	if err := g.wrong[a]; err != nil {
		return token.Checked{}, fmt.Errorf("%w: %w", ErrNotReady, err)
	}
	return token.Checked{}, fmt.Errorf("%w: mint %s has not been read from the chain", ErrNotReady, solana.Text(a))
}

// paysUSDC reports whether the policy has claims paid in USDC, and where.
func paysUSDC(v *rfq.View) (wallet solana.Address, ok bool) {
	wallet = v.Policy.PayTo[market.RailUSDC]
	return wallet, wallet != solana.Address{}
}

// wanted lists the mints that a view knows.
func wanted(v *rfq.View) []solana.Address {
	var list []solana.Address
	seen := map[solana.Address]bool{}
	add := func(a solana.Address) {
		if !seen[a] {
			seen[a] = true
			list = append(list, a)
		}
	}
	if v.Policy.USDCMint != (solana.Address{}) { // claims of old may be paid in it, if no new ones
		add(v.Policy.USDCMint)
	}
	for i := range v.Pairs {
		add(v.Pairs[i].BaseMint)
	}
	return list
}

// lacks says what a view needs and the ground does not have: nil = nothing.
func (g *ground) lacks(v *rfq.View) error {
	if wallet, ok := paysUSDC(v); ok {
		mint, err := g.mint(v.Policy.USDCMint)
		if err != nil {
			return fmt.Errorf("%w: USDC", err)
		}
		if mint.Decimals() != uint8(market.RailUSDC.Decimals()) {
			return fmt.Errorf("%w: USDC mint %s has %d decimals", ErrNotReady, solana.Text(mint.Address()), mint.Decimals())
		}
		if g.payee != wallet || g.payMint != v.Policy.USDCMint {
			return fmt.Errorf("%w: %s has no USDC account: its associated account must exist before anybody can pay to it",
				ErrNotReady, solana.Text(wallet))
		}
	}
	for i := range v.Pairs {
		p := &v.Pairs[i]
		mint, err := g.mint(p.BaseMint)
		if err != nil {
			return fmt.Errorf("%w: base of instrument %d", err, p.Instrument)
		}
		if mint.Decimals() != p.BaseDecimals {
			return fmt.Errorf("%w: instrument %d has %d decimals, its mint %s %d", ErrNotReady,
				p.Instrument, p.BaseDecimals, solana.Text(p.BaseMint), mint.Decimals())
		}
	}
	return nil
}

// Ready returns nil where a package can be built now, and else an [ErrNotReady]
// that says what is missing. It does not block.
func (s *Settlement) Ready() error {
	v := s.desk.View()
	if v == nil {
		return fmt.Errorf("%w: the desk shows nothing yet", ErrNotReady)
	}
	if s.signer.Address() == (solana.Address{}) {
		return fmt.Errorf("%w: the signer has not told its address", ErrNotReady)
	}
	if b := s.newest.Load(); b == nil || s.options.Now().Sub(b.FetchedAt) > maxBlockhashAge {
		return fmt.Errorf("%w: there is no recent blockhash", ErrNotReady)
	}
	if err := s.ground.Load().lacks(v); err != nil {
		return err
	}
	if s.prover.Load() == nil {
		return fmt.Errorf("%w: nobody looks at payments yet", ErrNotReady)
	}
	return nil
}

// surveyor keeps the newest blockhash and the ground.
func (s *Settlement) surveyor(ctx context.Context) error {
	tick := time.NewTicker(s.surveyEvery())
	defer tick.Stop()
	var last error
	for {
		err := s.survey(ctx)
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

func (s *Settlement) surveyEvery() time.Duration { return min(surveyEvery, s.options.RefreshEvery) }

// survey looks at what is due.
func (s *Settlement) survey(ctx context.Context) error {
	if _, err := s.blockhash(ctx); err != nil {
		return err
	}
	v, g := s.desk.View(), s.ground.Load()
	if v == nil || g != nil && g.lacks(v) == nil && s.options.Now().Sub(g.readAt) < s.options.RefreshEvery {
		return nil
	}
	next, err := s.read(ctx, v)
	if err != nil {
		return err
	}
	if now := s.desk.View(); now != v && next.lacks(now) != nil && g.lacks(now) == nil {
		return nil // made for a policy that has changed meanwhile, to one that the last serves
	}
	s.ground.Store(next)
	return next.lacks(v)
}

// blockhash returns a recent blockhash. Errors: [ErrChain].
func (s *Settlement) blockhash(ctx context.Context) (rpc.Blockhash, error) {
	b, err := s.node.Blockhash(ctx)
	if err != nil {
		return rpc.Blockhash{}, fmt.Errorf("%w: %w", ErrChain, err)
	}
	s.newest.Store(&b)
	return b, nil
}

// read makes the ground for a view, from finalized accounts. Errors: [ErrChain].
func (s *Settlement) read(ctx context.Context, v *rfq.View) (*ground, error) {
	g := &ground{readAt: s.options.Now(), mints: map[solana.Address]token.Checked{}, wrong: map[solana.Address]error{}}
	err := s.accounts(ctx, wanted(v), func(address solana.Address, a *rpc.Account) {
		mint, err := s.check(address, a)
		if err != nil {
			g.wrong[address] = err
			return
		}
		g.mints[address] = mint
	})
	if err != nil {
		return nil, err
	}
	wallet, ok := paysUSDC(v)
	usdc, known := g.mints[v.Policy.USDCMint]
	if !ok || !known {
		return g, nil
	}
	account, err := s.tokens.TokenAccount(wallet, usdc.Address(), usdc.Program())
	if err != nil {
		return nil, err
	}
	return g, s.accounts(ctx, []solana.Address{account}, func(_ solana.Address, a *rpc.Account) {
		if a == nil {
			return
		}
		held, err := token.ParseAccount(a.Owner, a.Data)
		if err == nil && held.Owner == wallet && held.Mint == usdc.Address() && held.State == token.Initialized {
			g.payee, g.payMint = wallet, held.Mint
		}
	})
}

var errNoMint = errors.New("it does not exist")

// check reads a mint account.
func (s *Settlement) check(address solana.Address, a *rpc.Account) (token.Checked, error) {
	if a == nil {
		return token.Checked{}, fmt.Errorf("mint %s: %w", solana.Text(address), errNoMint)
	}
	mint, err := token.ParseMint(address, a.Owner, a.Data)
	if err != nil {
		return token.Checked{}, err
	}
	return mint.Check(s.options.Extensions)
}

// accounts reads any number of accounts.
func (s *Settlement) accounts(ctx context.Context, list []solana.Address, f func(address solana.Address, a *rpc.Account)) error {
	for len(list) > 0 {
		part := list[:min(len(list), rpc.MaxAccountsPerCall)]
		list = list[len(part):]
		found, _, err := s.node.Accounts(ctx, part, rpc.Finalized, 0)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrChain, err)
		}
		for i := range part {
			f(part[i], found[i])
		}
	}
	return nil
}
