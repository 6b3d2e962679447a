package settle

import (
	"errors"
	"fmt"

	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/market"
	"blockdesk/settle/cosign"
)

// errOtherDesk means that the desk would build another transaction for the claim
// today: a mint or its key has been changed since the build.
var errOtherDesk = errors.New("settle: the build is not of today's desk")

// today holds what a build does against what the desk would build for the claim
// now. A build stands for ever, and the desk's key and mints may change under it.
// Errors: one that wraps errOtherDesk where they differ; [ErrSigner]; [ErrNotReady].
func (s *Settlement) today(c *rfq.Claim, is cosign.Shape) error {
	desk := s.signer.Address()
	switch {
	case desk == (solana.Address{}):
		return fmt.Errorf("%w: it has not told its address", ErrSigner)
	case is.Desk != desk:
		return fmt.Errorf("%w: %s delivers", errOtherDesk, solana.Text(is.Desk))
	}
	v := s.desk.View()
	if v == nil || v.Pair(c.Terms.Instrument) == nil {
		return fmt.Errorf("%w: the desk does not show instrument %d", ErrNotReady, c.Terms.Instrument)
	}
	want := cosign.Shape{
		Kind: cosign.Cosign, Claim: c.ID, Desk: desk, Wallet: c.Wallet,
		Base: v.Pair(c.Terms.Instrument).BaseMint, BaseAmount: market.Amount(c.Terms.Base),
		PayTo: c.Terms.PayTo, PayAmount: market.Amount(c.Terms.Payment),
	}
	if c.Terms.Rail == market.RailUSDC {
		want.PayMint = v.Policy.USDCMint
		if is.PayMint != want.PayMint { // it may be one that has not been read
			return fmt.Errorf("%w: it pays in %s", errOtherDesk, solana.Text(is.PayMint))
		}
		mint, err := s.ground.Load().mint(want.PayMint)
		if err != nil {
			return err
		}
		if want.PayTo, err = s.tokens.TokenAccount(c.Terms.PayTo, mint.Address(), mint.Program()); err != nil {
			return err
		}
	}
	if is != want {
		return fmt.Errorf("%w: it delivers %d of %s for %d to %s", errOtherDesk,
			is.BaseAmount, solana.Text(is.Base), is.PayAmount, solana.Text(is.PayTo))
	}
	return nil
}
