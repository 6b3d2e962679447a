package settle

import (
	"context"
	"sync/atomic"
	"time"

	"blockdesk/desk"
	"blockdesk/internal/solana"
	"blockdesk/settle/cosign"
)

// signerLimitsEvery is the pause between two looks at the limits of a signer's process.
const signerLimitsEvery = 10 * time.Second

// limitedSigner is a signer that has limits; *cosign.SocketSigner is one.
type limitedSigner interface {
	Uses(ctx context.Context) ([]cosign.LimitUse, error)
}

// signerLimits are the ceilings of the signer's process as they were read last.
type signerLimits struct {
	*env
	newest atomic.Pointer[[]desk.SignerLimit]
}

// SignerLimits returns how much of each ceiling of the signer's process is used; none if
// the key is in this process, the signer has no limits, or it does not answer. It does not
// block.
func (s *signerLimits) SignerLimits() []desk.SignerLimit {
	if list := s.newest.Load(); list != nil {
		return *list
	}
	return nil
}

// watchLimits reads the ceilings until ctx ends, if there are any to read.
func (s *signerLimits) watchLimits(ctx context.Context) error {
	signer, ok := s.signer.(limitedSigner)
	for ok && ctx.Err() == nil {
		uses, err := signer.Uses(ctx)
		list := make([]desk.SignerLimit, 0, len(uses))
		for i := range uses {
			u := &uses[i]
			list = append(list, desk.SignerLimit{Name: limitName(u), Hour: u.Hour, MaxHour: u.MaxHour, Day: u.Day, MaxDay: u.MaxDay})
		}
		if err != nil {
			s.log.Debug("asking the signer for its limits failed", "error", err)
		}
		s.newest.Store(&list)
		sleep(ctx, signerLimitsEvery)
	}
	return nil
}

// limitName names a ceiling: token MINT, refund MINT, refund SOL, or network.
func limitName(u *cosign.LimitUse) string {
	switch {
	case u.Class == cosign.LimitNetwork:
		return u.Class.String()
	case u.Mint == (solana.Address{}):
		return u.Class.String() + " SOL"
	default:
		return u.Class.String() + " " + solana.Base58(u.Mint)
	}
}
