package settle

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/build"
	"blockdesk/internal/solana/token"
	"blockdesk/market"
	"blockdesk/settle/broadcast"
	"blockdesk/settle/proof"
)

// Limits (our choice).
const (
	// MaxDeliverers bounds the claims that are delivered at the same time.
	MaxDeliverers = 64
	// MaxDeliveryAttempts bounds the deliveries that are ever signed for one claim.
	// If none of them has succeeded, an operator must look.
	MaxDeliveryAttempts = 5
	// MaxTreasury bounds Options.Treasury: the desk is one more wallet.
	MaxTreasury = proof.MaxWallets - 1
	// MinLife is the least number of blocks that the blockhash of a submitted
	// transaction must have left: with fewer it would probably not land.
	MinLife = 10
)

// Options of a Settlement. The zero value of a field is its default, but Budget has
// none.
type Options struct {
	// Treasury lists more wallets of ours: a transfer between our wallets is no
	// payment. The desk's own wallet and the payees of the policy and the claims
	// are known without it.
	Treasury []solana.Address
	// Budget is the compute limit and price of our transactions.
	Budget build.Budget
	// Extensions are the token extensions that a mint may have. Default
	// token.Harmless.
	Extensions token.Extensions
	// SyncBuilds syncs a transaction package to disk before it is handed out, instead of soon
	// after. Set it in durability mode sync.
	SyncBuilds bool
	// Deliverers is how many claims are delivered at the same time, 1 to
	// MaxDeliverers. Default 8.
	Deliverers int
	// FailingAfter is how long after its payment a claim without delivery is listed
	// as failing if no cause is known that needs a person. Default 10 min.
	FailingAfter time.Duration
	// RetryFirst is the pause after a first failure; it doubles up to RetryMax.
	// Defaults 1 s and 1 min.
	RetryFirst, RetryMax time.Duration
	// RefreshEvery is the age at which the mints and our accounts are read again.
	// Default 30 s.
	RefreshEvery time.Duration
	// BalanceEvery is the pause between two readings of the desk's balances. Default
	// 10 s.
	BalanceEvery time.Duration
	// Network is the network that the nodes must be on, "" for any. On a public one a
	// single node is refused unless TrustSingleNode is set.
	Network         solana.Network
	TrustSingleNode bool
	// SignTimeout bounds one call of the signer. Default 5 s.
	SignTimeout time.Duration

	// BlockhashLife is the number of blocks after its own in which a blockhash is
	// valid. Default broadcast.BlockhashLife.
	BlockhashLife uint64

	// Broadcast are the tracker's options. Its Now and BlockhashLife are ignored.
	Broadcast broadcast.Options
	// Payments are options of package proof; zero values take its defaults.
	Payments Payments

	// Now is the clock, which should not jump: retries are due by it. Default time.Now.
	Now func() time.Time
	// Logger logs for the operator. Default slog.Default.
	Logger *slog.Logger
}

// Payments are the options of package proof that the desk does not know.
type Payments struct {
	ClockTolerance, Retry, WatchEvery time.Duration
	// Dust is proof.Rail.Dust of each rail.
	Dust [market.RailCount]market.Amount
}

func (o Options) withDefaults() Options {
	o.FailingAfter = cmp.Or(o.FailingAfter, 10*time.Minute)
	o.RetryFirst = cmp.Or(o.RetryFirst, time.Second)
	o.RetryMax = cmp.Or(o.RetryMax, time.Minute)
	o.RefreshEvery = cmp.Or(o.RefreshEvery, 30*time.Second)
	o.BalanceEvery = cmp.Or(o.BalanceEvery, 10*time.Second)
	o.SignTimeout = cmp.Or(o.SignTimeout, 5*time.Second)
	o.Extensions = cmp.Or(o.Extensions, token.Harmless())
	o.Payments.ClockTolerance = cmp.Or(o.Payments.ClockTolerance, proof.DefaultClockTolerance)
	o.Deliverers = cmp.Or(o.Deliverers, 8)
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Logger = cmp.Or(o.Logger, slog.Default())
	o.BlockhashLife = cmp.Or(o.BlockhashLife, broadcast.BlockhashLife)
	o.Broadcast.Now, o.Broadcast.BlockhashLife = o.Now, o.BlockhashLife
	return o
}

// Validate checks the options, defaults filled in. Errors: [ErrOptions].
func (o Options) Validate() error {
	o = o.withDefaults()
	if _, err := o.Budget.PriorityLamports(); err != nil {
		return fmt.Errorf("%w: %w", ErrOptions, err)
	}
	for name, d := range map[string]time.Duration{
		"FailingAfter": o.FailingAfter, "RetryFirst": o.RetryFirst, "RetryMax": o.RetryMax,
		"RefreshEvery": o.RefreshEvery, "BalanceEvery": o.BalanceEvery, "SignTimeout": o.SignTimeout,
	} {
		if d < 0 {
			return fmt.Errorf("%w: %s %s: must be 0 or more", ErrOptions, name, d)
		}
	}
	if err := o.Broadcast.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrOptions, err)
	}
	switch {
	case len(o.Treasury) > MaxTreasury:
		return fmt.Errorf("%w: %d wallets in the treasury, at most %d", ErrOptions, len(o.Treasury), MaxTreasury)
	case o.Deliverers < 1 || o.Deliverers > MaxDeliverers:
		return fmt.Errorf("%w: Deliverers %d: must be 1 to %d", ErrOptions, o.Deliverers, MaxDeliverers)
	case o.RetryFirst > o.RetryMax:
		return fmt.Errorf("%w: RetryFirst %s: must be at most RetryMax, %s", ErrOptions, o.RetryFirst, o.RetryMax)
	}
	return nil
}
