package archive

import (
	"cmp"
	"fmt"
	"time"
)

// Options are the settings of an Archive. The zero value of a field means its default.
type Options struct {
	// KeepTrades is how long trades are kept, at least 48 h. Default 90 days.
	KeepTrades time.Duration
	// KeepMinutes is how long candles below an hour are kept, at least 48 h. Default 90
	// days. Longer candles are kept forever: 9,000 a year and instrument.
	KeepMinutes time.Duration
	// MaxTradeBytes bounds the trades, as their records: beyond it the oldest are deleted,
	// those of the last 48 h aside. 0 = no bound.
	MaxTradeBytes uint64
	// SyncEvery bounds how long a commit stays unsynced. Default 1 s.
	SyncEvery time.Duration
	// PruneEvery is how often old records are deleted. Default 1 h.
	PruneEvery time.Duration
	// DrainTimeout bounds how long Run waits for the engine's last events after the end
	// of its context. Default 3 s.
	DrainTimeout time.Duration
	// Now is the clock of retention. Default time.Now.
	Now func() time.Time
}

const (
	day = 24 * time.Hour
	// leastKept is what is kept however short the space is: Reconcile rebuilds the current
	// candles from up to a day of trades, and the day's figures need the day before.
	leastKept = 2 * day
)

func (o Options) withDefaults() Options {
	o.KeepTrades = cmp.Or(o.KeepTrades, 90*day)
	o.KeepMinutes = cmp.Or(o.KeepMinutes, 90*day)
	o.SyncEvery = cmp.Or(o.SyncEvery, time.Second)
	o.PruneEvery = cmp.Or(o.PruneEvery, time.Hour)
	o.DrainTimeout = cmp.Or(o.DrainTimeout, 3*time.Second)
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Validate returns the first field that is out of range, after applying defaults.
func (o Options) Validate() error {
	o = o.withDefaults()
	for _, c := range []struct {
		name      string
		v, lo, hi time.Duration
	}{
		{"KeepTrades", o.KeepTrades, leastKept, 100 * 366 * day},
		{"KeepMinutes", o.KeepMinutes, leastKept, 100 * 366 * day},
		{"SyncEvery", o.SyncEvery, time.Millisecond, time.Hour},
		{"PruneEvery", o.PruneEvery, time.Millisecond, day},
		{"DrainTimeout", o.DrainTimeout, time.Millisecond, time.Hour},
	} {
		if c.v < c.lo || c.v > c.hi {
			return fmt.Errorf("archive: %s %s: must be %s to %s", c.name, c.v, c.lo, c.hi)
		}
	}
	return nil
}
