package proof

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/payment"
	"blockdesk/internal/solana/token"
	"blockdesk/market"
)

// Limits (our choice).
const (
	// MaxWallets bounds a rail's treasury wallets, and our other wallets.
	MaxWallets = 8
	// MaxReaders bounds the transactions that the watch of an account reads at once.
	MaxReaders = 64
	// MaxAhead bounds the signatures of one account that the watch remembers beyond
	// its cursor: 64 bytes and a map entry each. It also bounds the part of a long
	// history that is read at once.
	MaxAhead = 1 << 16
	// MaxPages bounds the pages of one list of signatures, which a lying node may not
	// end.
	MaxPages = 1 << 12
)

// DefaultClockTolerance is the default of Options.ClockTolerance.
const DefaultClockTolerance = 5 * time.Minute

// ErrOptions means that an option is invalid.
var ErrOptions = errors.New("proof: invalid options")

// Rail is the configuration of one payment rail.
type Rail struct {
	// Mint is the rail's mint; the zero value for SOL.
	Mint token.Checked
	// Treasury are the payees of claims: the wallet of the policy, and the wallets of
	// every claim whose payment may still come. Tokens are paid to their associated
	// accounts. If it is empty, the rail is not served, and payments over it are not
	// noticed.
	Treasury []solana.Address
	// Dust is the amount below which a payment is neither recorded nor stored as
	// unmatched, only counted, so that a flood of such payments cannot fill the lists:
	// a sender pays it to us, beside the fee. In atoms; 0 (the default) records every
	// atom.
	Dust market.Amount
}

// Options are the settings of a [Prover]. The zero value of a field is its default,
// but Rails has none.
type Options struct {
	// Rails by [market.Rail]; at least one is served.
	Rails [market.RailCount]Rail
	// Wallets are our other wallets: the desk's. A transfer between our wallets is no
	// payment, and neither is a transaction that one of our wallets has signed.
	Wallets []solana.Address
	// Known are mints with a value that no rail uses: those that the desk sells. Wrapped SOL
	// is known without it. Tokens of other mints that reach us are counted, never listed.
	Known []solana.Address
	// ClockTolerance is how far the chain's clock may be behind ours: a payment in a
	// block that is older than its claim by so much is still accepted. Default 5 min,
	// at most 1 h. A claim's id is random and secret until the claim is made, so no
	// older transaction can name it; this is a second check.
	ClockTolerance time.Duration
	// Retry is the pause before a client asks again about a payment that is not final.
	// Default 2 s.
	Retry time.Duration
	// MaxReading bounds the transactions that Verify and the watch examine at once;
	// beyond it: [ErrBusy]. Default 256.
	MaxReading int
	// WatchEvery is the pause between rounds of the watch. Default 2 s.
	WatchEvery time.Duration
	// Readers is the number of transactions that the watch of an account reads at
	// once, 1 to MaxReaders. Default 8.
	Readers int
	// Since is when the desk began to use these accounts for payments, less the
	// ClockTolerance: for an account without a stored cursor, older blocks are history
	// and not examined. Default: now, less the ClockTolerance. A Prover that replaces
	// an earlier one needs the time of the first. [Prover.Place] does without a clock.
	Since time.Time
	// Rewind makes the watch begin at Since even if a cursor is stored, because the
	// desk has lost the payments recorded since.
	Rewind bool
	// Unseen, if set, reports whether an unproven claim waits for its payment to be seen
	// before it is final: only then the watch lists confirmed transactions too.
	Unseen func() bool
	// CursorDelay is how long the watch's cursor stays behind the examined
	// transactions: a node may list a transaction late, behind newer ones. Default
	// 15 s.
	CursorDelay time.Duration
	// GiveUpAfter is how long the watch retries a transaction for which no node has
	// a usable answer, before it stores it for an operator. Default 10 min.
	GiveUpAfter time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Logger logs for the operator. Default slog.Default.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	o.ClockTolerance = cmp.Or(o.ClockTolerance, DefaultClockTolerance)
	o.Retry = cmp.Or(o.Retry, 2*time.Second)
	o.WatchEvery = cmp.Or(o.WatchEvery, 2*time.Second)
	o.CursorDelay = cmp.Or(o.CursorDelay, 15*time.Second)
	o.GiveUpAfter = cmp.Or(o.GiveUpAfter, 10*time.Minute)
	o.MaxReading = cmp.Or(o.MaxReading, 256)
	o.Readers = cmp.Or(o.Readers, 8)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Since.IsZero() {
		o.Since = o.Now().Add(-o.ClockTolerance)
	}
	o.Logger = cmp.Or(o.Logger, slog.Default())
	return o
}

// Validate checks the options, defaults filled in. Errors: [ErrOptions].
func (o Options) Validate() error {
	o = o.withDefaults()
	served := 0
	for rail := range o.Rails {
		r := &o.Rails[rail]
		if len(r.Treasury) == 0 {
			continue
		}
		served++
		switch rail := market.Rail(rail); {
		case !rail.Valid():
			return fmt.Errorf("%w: wallets of an unknown rail, %d", ErrOptions, rail)
		case rail != market.RailSOL && r.Mint.IsZero():
			return fmt.Errorf("%w: the mint of rail %s is missing", ErrOptions, rail)
		case rail == market.RailSOL && !r.Mint.IsZero():
			return fmt.Errorf("%w: rail %s must have no mint", ErrOptions, rail)
		}
		if err := checkWallets(r.Treasury); err != nil {
			return err
		}
	}
	if err := checkWallets(o.Wallets); err != nil {
		return err
	}
	for name, d := range map[string]time.Duration{
		"ClockTolerance": o.ClockTolerance, "Retry": o.Retry, "WatchEvery": o.WatchEvery, "CursorDelay": o.CursorDelay, "GiveUpAfter": o.GiveUpAfter,
	} {
		if d < 0 {
			return fmt.Errorf("%w: %s %s: must be 0 or more", ErrOptions, name, d)
		}
	}
	switch {
	case served == 0:
		return fmt.Errorf("%w: no rail has a wallet", ErrOptions)
	case o.ClockTolerance > time.Hour:
		return fmt.Errorf("%w: ClockTolerance %s: must be at most 1h", ErrOptions, o.ClockTolerance)
	case o.MaxReading < 0 || o.Readers < 0 || o.Readers > MaxReaders:
		return fmt.Errorf("%w: MaxReading %d, Readers %d: must be 0 or more, and at most %d Readers", ErrOptions, o.MaxReading, o.Readers, MaxReaders)
	}
	return nil
}

func checkWallets(list []solana.Address) error {
	if len(list) > MaxWallets {
		return fmt.Errorf("%w: %d wallets: at most %d", ErrOptions, len(list), MaxWallets)
	}
	for i, w := range list {
		if w == (solana.Address{}) || slices.Contains(list[:i], w) {
			return fmt.Errorf("%w: wallet %d is empty or listed twice", ErrOptions, i+1)
		}
	}
	return nil
}

func (o *Options) ours() (list []solana.Address) {
	add := func(wallets []solana.Address) {
		for _, w := range wallets {
			if !slices.Contains(list, w) {
				list = append(list, w)
			}
		}
	}
	for rail := range o.Rails {
		add(o.Rails[rail].Treasury)
	}
	add(o.Wallets)
	return list
}

type destination struct {
	rail   market.Rail
	wallet solana.Address
	target payment.Target
}

// destinations derives every account to be paid, grouped by rail, in the order of the
// options.
func (o *Options) destinations() (list []destination, err error) {
	ours := o.ours()
	for rail := range o.Rails {
		r := &o.Rails[rail]
		for _, w := range r.Treasury {
			p := destination{market.Rail(rail), w, payment.Target{Rail: market.Rail(rail), PayTo: w, Treasury: ours}}
			if p.rail == market.RailUSDC {
				p.target.Mint, p.target.Program = r.Mint.Address(), r.Mint.Program()
				if p.target.PayTo, err = solana.TokenAccount(w, r.Mint.Address(), r.Mint.Program()); err != nil {
					return nil, fmt.Errorf("%w: the token account of %s: %w", ErrOptions, solana.Base58(w), err)
				}
			}
			list = append(list, p)
		}
	}
	return list, nil
}
