package broadcast

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Limits (our choice).
const (
	// MaxTracked bounds the transactions under way.
	MaxTracked = 1 << 16
	// MaxHistory bounds how often a reference may be named on the chain for a
	// search by it to be made.
	MaxHistory = 1000
	// HistoryFor is how long any node is taken to have a transaction: those of
	// the network keep some two days.
	HistoryFor = 12 * time.Hour
	// maxWorkers bounds MaxSending and MaxReporting.
	maxWorkers = 1024
)

// The pace of what no option sets (our choice).
const (
	// freshFor is how long a transaction is looked for every PollEvery.
	freshFor = 5 * time.Second
	// settlingEvery is how often a confirmed one is looked at whose slot is not
	// finalized: a fork may have dropped it.
	settlingEvery = 5 * time.Second
	// The pause after ended has failed doubles from the first to the last.
	firstPause, lastPause = 100 * time.Millisecond, 10 * time.Second
)

// How many calls are made at a time.
const (
	maxPolling   = 4 // batches of statuses
	maxSearching = 8 // histories by reference
)

// BlockhashLife is how many blocks a transaction can land after that of its
// blockhash, by Agave: so it is on every public cluster.
const BlockhashLife = 150

// maxBlockhashLife bounds Options.BlockhashLife (our choice).
const maxBlockhashLife = 100_000

// tipMargin is added to the height that nodes tell of their newest block, for one
// whose blockhash may be newer than they know (our choice).
const tipMargin = 151

// Errors.
var (
	// ErrFull means that MaxTracked are under way.
	ErrFull = errors.New("broadcast: full")
	// ErrOptions means options that cannot work.
	ErrOptions = errors.New("broadcast: invalid options")
	// ErrOutcomeKnown means a transaction that no person may end: it is not under
	// way, or ends by itself.
	ErrOutcomeKnown = errors.New("broadcast: not in doubt")
	// ErrInvalid means a zero value, which is no transaction.
	ErrInvalid = errors.New("broadcast: not a transaction")
)

// Options are the tracker's. Zero values take the defaults of [DefaultOptions].
type Options struct {
	// ResendEvery is how long after a send that has not landed the same bytes are
	// sent again.
	ResendEvery time.Duration
	// PollEvery paces the rounds of looking.
	PollEvery time.Duration
	// MaxSending bounds the sends under way, MaxReporting the calls of ended.
	MaxSending, MaxReporting int
	// Preflight has nodes simulate before they pass on; without it they do not:
	// a transaction is simulated before the desk signs it.
	Preflight bool
	// Quorum is how many nodes must have answered, and agree, before a
	// transaction counts as failed or expired; all that answer must agree in any
	// case. 0 is the majority of those configured; with more than there are,
	// nothing ever fails or expires. See the package doc.
	Quorum int
	// BlockhashLife is how many blocks a blockhash lives. Only a local chain may let
	// it live longer than [BlockhashLife], at most 100,000 blocks.
	BlockhashLife uint64
	// Now is the clock.
	Now func() time.Time
}

// DefaultOptions returns the defaults.
func DefaultOptions() Options {
	return Options{
		ResendEvery: 2 * time.Second, PollEvery: 400 * time.Millisecond, MaxSending: 16, MaxReporting: 16,
		BlockhashLife: BlockhashLife, Now: time.Now,
	}
}

func (o Options) withDefaults() Options {
	d := DefaultOptions()
	o.ResendEvery = cmp.Or(o.ResendEvery, d.ResendEvery)
	o.PollEvery = cmp.Or(o.PollEvery, d.PollEvery)
	o.MaxSending = cmp.Or(o.MaxSending, d.MaxSending)
	o.MaxReporting = cmp.Or(o.MaxReporting, d.MaxReporting)
	o.BlockhashLife = cmp.Or(o.BlockhashLife, d.BlockhashLife)
	if o.Now == nil {
		o.Now = d.Now
	}
	return o
}

// Validate checks the options. Errors: [ErrOptions].
func (o *Options) Validate() error {
	switch {
	case o.ResendEvery < 0 || o.PollEvery < 0:
		return fmt.Errorf("%w: a negative duration", ErrOptions)
	case o.MaxSending < 0 || o.MaxSending > maxWorkers || o.MaxReporting < 0 || o.MaxReporting > maxWorkers:
		return fmt.Errorf("%w: %d sending, %d telling: at most %d", ErrOptions, o.MaxSending, o.MaxReporting, maxWorkers)
	case o.BlockhashLife != 0 && (o.BlockhashLife < BlockhashLife || o.BlockhashLife > maxBlockhashLife):
		return fmt.Errorf("%w: a blockhash lives %d blocks: %d to %d", ErrOptions, o.BlockhashLife, BlockhashLife, maxBlockhashLife)
	case o.Quorum < 0:
		return fmt.Errorf("%w: quorum %d", ErrOptions, o.Quorum)
	}
	return nil
}

// quorum returns how many of n nodes must agree.
func (o *Options) quorum(n int) int {
	if o.Quorum > 0 {
		return o.Quorum
	}
	return n/2 + 1
}
