package settle

import (
	"fmt"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/build"
	"blockdesk/internal/solana/rpc"
	"blockdesk/internal/solana/token"
	"blockdesk/market"
	"blockdesk/settle/binding"
	"blockdesk/settle/cosign"
)

type builder struct {
	*env
	chain    *chainState
	budget   build.Budget
	accounts solana.AccountCache // derived addresses
}

// common returns the fields that bind a transaction to its claim and bound its life
// and cost.
func (b *builder) common(id market.ClaimID, hash *rpc.Blockhash) build.Common {
	return build.Common{Blockhash: hash.Hash, Budget: b.budget, Memo: binding.Memo(id), Reference: binding.Reference(id)}
}

// paymentLeg returns the payment of a claim. It creates no account, because
// chainState has checked that the account to be paid exists.
func (b *builder) paymentLeg(t *rfq.Terms) (build.Leg, error) {
	leg := build.Leg{Rail: t.Rail, Amount: market.Amount(t.Payment), To: t.PayTo}
	if t.Rail != market.RailUSDC {
		return leg, nil
	}
	v := b.desk.View()
	if v == nil {
		return leg, errNoView
	}
	var err error
	leg.Mint, err = b.chain.mint(v.Policy.USDCMint)
	return leg, err
}

// pair returns the desk's pair of an instrument, and the view that contains it.
func (b *builder) pair(instrument market.InstrumentID) (*rfq.View, *rfq.Pair, error) {
	v := b.desk.View()
	if v == nil || v.Pair(instrument) == nil {
		return nil, nil, fmt.Errorf("%w: the desk has no pair for instrument %d: add it to rfq.pairs", ErrNotReady, instrument)
	}
	return v, v.Pair(instrument), nil
}

func (b *builder) base(t *rfq.Terms) (token.Checked, error) {
	_, pair, err := b.pair(t.Instrument)
	if err != nil {
		return token.Checked{}, err
	}
	return b.chain.mint(pair.BaseMint)
}

func (b *builder) payment(c *rfq.Claim, hash *rpc.Blockhash) (*build.Unsigned, error) {
	leg, err := b.paymentLeg(&c.Terms)
	if err != nil {
		return nil, err
	}
	p := build.Payment{Common: b.common(c.ID, hash), Wallet: c.Wallet, Leg: leg}
	return p.Build(&b.accounts)
}

func (b *builder) atomic(c *rfq.Claim, payer desk.FeePayer, hash *rpc.Blockhash) (*build.Unsigned, error) {
	leg, err := b.paymentLeg(&c.Terms)
	if err != nil {
		return nil, err
	}
	base, err := b.base(&c.Terms)
	if err != nil {
		return nil, err
	}
	feePayer := build.Desk
	if payer == desk.TakerPays {
		feePayer = build.Taker
	}
	a := build.Atomic{
		Common: b.common(c.ID, hash), Taker: c.Wallet, Desk: b.signer.Address(), Payment: leg,
		Base: base, BaseAmount: market.Amount(c.Terms.Base), FeePayer: feePayer, RentPayer: build.Taker,
	}
	return a.Build(&b.accounts)
}

func (b *builder) delivery(c *rfq.Claim, base token.Checked, hash *rpc.Blockhash) (*build.Unsigned, error) {
	d := build.Delivery{
		Common: b.common(c.ID, hash), Desk: b.signer.Address(), Wallet: c.Wallet, Base: base, Amount: market.Amount(c.Terms.Base),
	}
	return d.Build(&b.accounts)
}

// checkCurrent compares a stored build with the transaction that the desk would
// build for the claim now. A build is stored for good, but the desk's key and mints
// may change. Errors: errOutdated, wrapped, if they differ; [ErrSigner];
// [ErrNotReady].
func (b *builder) checkCurrent(c *rfq.Claim, is cosign.Summary) error {
	desk := b.signer.Address()
	switch {
	case desk == (solana.Address{}):
		return fmt.Errorf("%w: it has not said its address yet: is it running?", ErrSigner)
	case is.Desk != desk:
		return fmt.Errorf("%w: it names desk key %s, the signer now has %s", errOutdated, solana.Base58(is.Desk), solana.Base58(desk))
	}
	v, pair, err := b.pair(c.Terms.Instrument)
	if err != nil {
		return err
	}
	want := cosign.Summary{
		Kind: cosign.Cosign, Claim: c.ID, Desk: desk, Wallet: c.Wallet,
		Base: pair.BaseMint, BaseAmount: market.Amount(c.Terms.Base),
		PayTo: c.Terms.PayTo, PayAmount: market.Amount(c.Terms.Payment),
	}
	if c.Terms.Rail == market.RailUSDC {
		want.PayMint = v.Policy.USDCMint
		if is.PayMint != want.PayMint { // first, because the new mint may not have been read yet
			return fmt.Errorf("%w: it is paid in mint %s, the policy now has %s", errOutdated, solana.Base58(is.PayMint), solana.Base58(want.PayMint))
		}
		mint, err := b.chain.mint(want.PayMint)
		if err != nil {
			return err
		}
		if want.PayTo, err = b.accounts.TokenAccount(c.Terms.PayTo, mint.Address(), mint.Program()); err != nil {
			return err
		}
	}
	if is != want {
		return fmt.Errorf("%w: it delivers %d of mint %s for %d to %s, the claim and the policy now say %d of mint %s for %d to %s", errOutdated,
			is.BaseAmount, solana.Base58(is.Base), is.PayAmount, solana.Base58(is.PayTo),
			want.BaseAmount, solana.Base58(want.Base), want.PayAmount, solana.Base58(want.PayTo))
	}
	return nil
}
