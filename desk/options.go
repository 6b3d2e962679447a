package desk

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// Errors of Do. A refusal by the desk's rules is no error: it is a Result with a
// Reason.
var (
	// ErrBusy: the engine's ring is full, or MaxWaiting requests are in flight.
	// Nothing has happened.
	ErrBusy = errors.New("desk: too many requests in progress: try again later")
	// ErrReadOnly: the engine takes no such requests now, or the store has failed.
	// Nothing has happened, unless ErrUnknown is wrapped too.
	ErrReadOnly = errors.New("desk: read-only: the journal failed or only cancels are admitted")
	// ErrStopped: the desk no longer follows the engine. Nothing has happened,
	// unless ErrUnknown is wrapped too.
	ErrStopped = errors.New("desk: the service is stopping")
	// ErrConflict: the request's key came with another body within KeyTTL.
	ErrConflict = errors.New("desk: the idempotency key was used with another body: use a new key for a new request")
	// ErrUnknown: the request was sent and its outcome is unknown here. The same
	// request with the same key returns the answer once there is one.
	ErrUnknown = errors.New("the outcome is unknown: repeat the request with the same key")
	// ErrTimeout: no outcome within Options.Timeout. Wraps ErrUnknown.
	ErrTimeout = fmt.Errorf("desk: no outcome in time: %w", ErrUnknown)
)

var (
	errFailedWaiting  = fmt.Errorf("%w: %w", ErrReadOnly, ErrUnknown)
	errStoppedWaiting = fmt.Errorf("%w: %w", ErrStopped, ErrUnknown)
)

// ErrLayout is wrapped by errors of New, Replay, Start, Reconcile and Run if the store
// has a record that this version cannot read.
var ErrLayout = errors.New("desk store: record cannot be read")

// Options of a Desk. The zero value of a field is its default.
type Options struct {
	// Timeout is the longest that Do waits for an outcome. Default 5 s.
	Timeout time.Duration
	// MaxWaiting bounds the calls of Do, and the keyed requests in flight whose
	// callers have timed out. Default 8192.
	MaxWaiting int
	// KeyTTL is how long a key keeps its answer, from the time of its command.
	// Default 24 h.
	KeyTTL time.Duration
	// MaxKeys bounds the stored answers; beyond it the oldest are deleted. Default
	// 1<<20: about 500 MB at most.
	MaxKeys int
	// SyncEvery bounds how long the cursor stays uncommitted and unsynced while
	// there are events. Default 1 s.
	SyncEvery time.Duration
	// DrainTimeout bounds how long Run waits for the engine's last events after
	// the end of its context. Default 3 s.
	DrainTimeout time.Duration
	// Failed returns why the engine is read-only for good; nil while it works. Run
	// calls it every 20 ms. Default: always nil.
	Failed func() error
	// OnView is called for every new View, after View returns it: by Start, and by
	// Run on the goroutine that answers wait for, so it must not block. Default: none.
	OnView func()
	// OnSales is called by Run for the sales that have settled, once Sales returns them, on the
	// goroutine of OnView. It may keep the slice. Default: none.
	OnSales func([]Sale)
	// Group is part of the ids of quotes and claims; 0 = the instruments are not split.
	Group market.ShardID
	// Format1 makes only requests that release 0.1.0 reads (engine.Format1), while a group
	// is upgraded; others fail with rfq.ErrNotFinalized.
	Format1 bool
	// Now is the clock for the age of answers. Default time.Now.
	Now func() time.Time
}

// failedEvery is the pause between two calls of Options.Failed.
const failedEvery = 20 * time.Millisecond

func (o Options) withDefaults() Options {
	o.Timeout = cmp.Or(o.Timeout, 5*time.Second)
	o.MaxWaiting = cmp.Or(o.MaxWaiting, 8192)
	o.KeyTTL = cmp.Or(o.KeyTTL, 24*time.Hour)
	o.MaxKeys = cmp.Or(o.MaxKeys, 1<<20)
	o.SyncEvery = cmp.Or(o.SyncEvery, time.Second)
	o.DrainTimeout = cmp.Or(o.DrainTimeout, 3*time.Second)
	if o.Failed == nil {
		o.Failed = func() error { return nil }
	}
	if o.OnView == nil {
		o.OnView = func() {}
	}
	if o.OnSales == nil {
		o.OnSales = func([]Sale) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Validate reports the first field that is out of its range, defaults filled in.
func (o Options) Validate() error {
	o = o.withDefaults()
	for _, c := range []struct {
		name   string
		v      time.Duration
		lo, hi time.Duration
	}{
		{"timeout", o.Timeout, time.Millisecond, time.Hour},
		{"key_ttl", o.KeyTTL, time.Second, 30 * 24 * time.Hour},
		{"sync_every", o.SyncEvery, time.Millisecond, time.Hour},
		{"drain_timeout", o.DrainTimeout, time.Millisecond, time.Hour},
	} {
		if c.v < c.lo || c.v > c.hi {
			return fmt.Errorf("desk: %s %s: must be %s to %s", c.name, c.v, c.lo, c.hi)
		}
	}
	for _, c := range []struct {
		name   string
		v      int
		lo, hi int
	}{
		{"max_waiting", o.MaxWaiting, 1, 1 << 20},
		{"max_keys", o.MaxKeys, 1, 100_000_000},
	} {
		if c.v < c.lo || c.v > c.hi {
			return fmt.Errorf("desk: %s %d: must be %d to %d", c.name, c.v, c.lo, c.hi)
		}
	}
	return nil
}

// Sale is a settled claim. The sales of an instrument are numbered from 1 without gaps, in
// the order in which they settled; the totals include the sale itself.
type Sale struct {
	Number uint64
	Seq    uint64    // of the command that settled it
	Claim  rfq.Claim // as it settled; ChangedAt is when
	Totals SalesTotals
}

// SalesTotals sums up an instrument's sales since the desk's first one.
type SalesTotals struct {
	Count     uint64
	VolumeUSD market.USD
	FeesUSD   market.USD // each at the rate of its own terms, rounded down
}
