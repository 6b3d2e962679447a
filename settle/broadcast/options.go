package broadcast

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Limits (our choice).
const (
	// MaxTracked bounds the tracked transactions.
	MaxTracked = 1 << 16
	// MaxHistory bounds the transactions that name a reference, beyond which it is not
	// searched.
	MaxHistory = 1000
	// maxWorkers bounds MaxSending and MaxReporting.
	maxWorkers = 1024
)

// clockMargin is how far the chain's clock may be behind ours, at most. A transaction whose
// last block is unknown can be in a block that is as much older than the transaction (our
// choice: the most that proof.Options.ClockTolerance allows).
const clockMargin = time.Hour

// Pauses without an option (our choice).
const (
	// freshFor is how long a transaction is polled every PollEvery.
	freshFor = 5 * time.Second
	// settlingEvery is the pause between polls of a confirmed transaction whose slot
	// is not finalized: a fork may have dropped it.
	settlingEvery = 5 * time.Second
	// The pause after a failure of the callback doubles from the first to the last.
	firstPause, lastPause = 100 * time.Millisecond, 10 * time.Second
)

// Limits of concurrent calls.
const (
	maxPolling   = 4 // batches of statuses
	maxSearching = 8 // histories by reference
)

// BlockhashLife is the number of blocks after that of its blockhash in which a
// transaction can land. It is a constant of Agave, and so of every public cluster.
const BlockhashLife = 150

// maxBlockhashLife bounds Options.BlockhashLife (our choice).
const maxBlockhashLife = 100_000

// tipMargin is added to the nodes' newest heights if a blockhash may be newer than
// those (our choice).
const tipMargin = 151

// Errors.
var (
	// ErrFull means that MaxTracked transactions are tracked.
	ErrFull = errors.New("broadcast: too many tracked transactions")
	// ErrOptions means that an option is invalid.
	ErrOptions = errors.New("broadcast: invalid options")
	// ErrOutcomeKnown means that an operator may not end the transaction: it is not
	// tracked, or it ends by itself.
	ErrOutcomeKnown = errors.New("broadcast: the outcome of the transaction is known, or may still be found")
	// ErrInvalid means that a required field of the transaction is zero.
	ErrInvalid = errors.New("broadcast: the transaction to track is incomplete")
)

// Options are the tracker's options. The zero value of a field is its default.
type Options struct {
	// ResendEvery is the pause before the same bytes are sent again. Default 2 s.
	ResendEvery time.Duration
	// PollEvery is the pause between polls. Default 400 ms.
	PollEvery time.Duration
	// MaxSending bounds the concurrent sends, MaxReporting the concurrent calls of the
	// callback. Default 16 each.
	MaxSending, MaxReporting int
	// Preflight has nodes simulate a transaction before they forward it. The desk has
	// simulated it before it signed.
	Preflight bool
	// Quorum is the number of nodes that must have answered, and agree, before a
	// transaction counts as finalized, failed or expired; of the latter two, all that answer
	// must agree in any case. 0 is the majority of the configured nodes; with more than are configured
	// nothing ever ends. See the package documentation.
	Quorum int
	// BlockhashLife is how many blocks a blockhash lives. Only a local chain may let
	// it live longer than [BlockhashLife], at most 100,000 blocks.
	BlockhashLife uint64
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	o.ResendEvery = cmp.Or(o.ResendEvery, 2*time.Second)
	o.PollEvery = cmp.Or(o.PollEvery, 400*time.Millisecond)
	o.MaxSending = cmp.Or(o.MaxSending, 16)
	o.MaxReporting = cmp.Or(o.MaxReporting, 16)
	o.BlockhashLife = cmp.Or(o.BlockhashLife, BlockhashLife)
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Validate checks the options. Errors: [ErrOptions].
func (o *Options) Validate() error {
	switch {
	case o.ResendEvery < 0 || o.PollEvery < 0:
		return fmt.Errorf("%w: ResendEvery %s, PollEvery %s: want 0 or more", ErrOptions, o.ResendEvery, o.PollEvery)
	case o.MaxSending < 0 || o.MaxSending > maxWorkers || o.MaxReporting < 0 || o.MaxReporting > maxWorkers:
		return fmt.Errorf("%w: MaxSending %d, MaxReporting %d: want 0 to %d", ErrOptions, o.MaxSending, o.MaxReporting, maxWorkers)
	case o.BlockhashLife != 0 && (o.BlockhashLife < BlockhashLife || o.BlockhashLife > maxBlockhashLife):
		return fmt.Errorf("%w: BlockhashLife %d: want %d to %d", ErrOptions, o.BlockhashLife, BlockhashLife, maxBlockhashLife)
	case o.Quorum < 0:
		return fmt.Errorf("%w: Quorum %d: want 0 or more", ErrOptions, o.Quorum)
	}
	return nil
}

func (o *Options) quorum(n int) int {
	if o.Quorum > 0 {
		return o.Quorum
	}
	return n/2 + 1
}
