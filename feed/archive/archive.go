package archive

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"blockdesk/engine/marketdata"
	"blockdesk/market"
	"blockdesk/persist/kv"
	"blockdesk/persist/projection"
)

// Limits of one call.
const (
	MaxTrades  = 1000
	MaxCandles = 1440 // docs/specification.md 8
	maxBatch   = 4096 // trades of one commit
)

// ErrLimit means that a caller asked for less than one record or for more than one call
// returns.
var ErrLimit = errors.New("archive: limit out of range")

// Archive stores trades and candles: see the package. The calls are New, then Replay,
// Know, and Start, Skip or Reconcile, as recovery requires, then Run.
type Archive struct {
	o        Options
	store    *projection.Store
	follower follower

	trades, commits atomic.Uint64
	pruned          atomic.Int64 // time of the last prune, Unix ns
	shedding        atomic.Bool
}

// Stats are the figures at one moment.
type Stats struct {
	Trades  uint64 // archived since the start
	Commits uint64
	Cursor  uint64
}

// New opens the store and reads its cursor. Errors: ErrLayout, errors of the store.
func New(o Options, store kv.Store) (*Archive, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	a := &Archive{o: o.withDefaults()}
	f := &a.follower
	f.archive, f.open = a, make(map[series]*openCandle)
	var err error
	a.store, err = projection.Open(kv.Named(store, "archive"), projection.Layout{
		Version: layoutVersion, Err: ErrLayout,
		Load: func(value []byte) (uint64, error) {
			var err error
			f.cursor, err = parseCursor(value)
			return f.cursor.seq, err
		},
	})
	if err != nil {
		return nil, err
	}
	return a, errors.Join(a.loadTraders(), a.loadDefinitions())
}

// Cursor returns the Seq of the last command whose events are stored, though perhaps not
// synced. Replay needs the events of all later commands.
func (a *Archive) Cursor() uint64 { return a.store.Cursor() }

// DurableCursor returns the Cursor after a crash of the machine: the journal must keep
// the events after it.
func (a *Archive) DurableCursor() uint64 { return a.store.DurableCursor() }

// CompleteSince returns the time since which no trade is missing, Unix nanoseconds: the
// end of the last gap, or 0 without one. Recovery sets it before Run.
func (a *Archive) CompleteSince() int64 { return a.follower.cursor.gapEnd }

// Version changes whenever the results of Trades and Candles may change.
func (a *Archive) Version() uint64 { return a.commits.Load() }

// Stats returns the figures.
func (a *Archive) Stats() Stats {
	return Stats{Trades: a.trades.Load(), Commits: a.commits.Load(), Cursor: a.Cursor()}
}

// Trades returns the trades of an instrument with ids below before, newest first, at most
// limit; before 0 means from the newest. limit is 1 to MaxTrades. Errors: ErrLimit,
// ErrLayout, errors of the store.
func (a *Archive) Trades(in market.InstrumentID, before market.TradeID, limit int) ([]marketdata.Trade, error) {
	if limit < 1 || limit > MaxTrades {
		return nil, ErrLimit
	}
	lo := tradeKey(nil, in, ^market.TradeID(0))
	if before > 0 {
		lo = tradeKey(nil, in, before-1)
	}
	var out []marketdata.Trade
	err := kv.Each(a.store, lo, tradesEnd(in), func(key, value []byte) error {
		t, err := parseTrade(key, value)
		if out = append(out, t); err == nil && len(out) == limit {
			return kv.ErrStop
		}
		return err
	})
	return out, err
}

// TradeBefore returns the last trade of an instrument before a time in Unix nanoseconds; ok
// is false if there is none. Trades must have come in order of time, as those of our own
// books do. It takes a binary search of some forty reads. Errors: ErrLayout, errors of the
// store.
func (a *Archive) TradeBefore(in market.InstrumentID, at int64) (t marketdata.Trade, ok bool, err error) {
	newest, err := a.Trades(in, 0, 1)
	if err != nil || len(newest) == 0 {
		return t, false, err
	}
	since, err := a.searchSince(in, at, newest[0].ID+1)
	if err != nil {
		return t, false, err
	}
	before, err := a.Trades(in, since, 1)
	if err != nil || len(before) == 0 {
		return t, false, err
	}
	return before[0], true, nil
}

// Candles returns the newest candles of an instrument that open before a time in Unix
// nanoseconds, oldest first, at most limit; before 0 means all. limit is 1 to MaxCandles.
// Errors: ErrLimit, ErrLayout, errors of the store.
func (a *Archive) Candles(in market.InstrumentID, i Interval, before int64, limit int) ([]Candle, error) {
	if limit < 1 || limit > MaxCandles {
		return nil, ErrLimit
	}
	lo := candleKey(nil, in, i, -1) // ^-1 = 0: before the newest possible key
	if before > 0 {
		lo = candleKey(nil, in, i, before-1)
	}
	var out []Candle
	err := kv.Each(a.store, lo, candlesEnd(in, i), func(key, value []byte) error {
		c, err := parseCandle(key, value)
		if out = append(out, c); err == nil && len(out) == limit {
			return kv.ErrStop
		}
		return err
	})
	slices.Reverse(out)
	return out, err
}

// Shed begins (true) or ends a time in which only the last 48 h of trades and of candles
// below an hour are kept, because the disk is short of space. It takes effect within
// SyncEvery. Deleted records do not come back. Any goroutine.
func (a *Archive) Shed(on bool) {
	if a.shedding.Swap(on) != on && on {
		a.pruned.Store(0) // at once
	}
}

// prune deletes what is older than the options allow, once every PruneEvery.
func (a *Archive) prune(now time.Time) error {
	if now.Sub(time.Unix(0, a.pruned.Load())) < a.o.PruneEvery {
		return nil
	}
	a.pruned.Store(now.UnixNano())
	keepTrades, keepMinutes := a.o.KeepTrades, a.o.KeepMinutes
	if a.shedding.Load() {
		keepTrades, keepMinutes = leastKept, leastKept
	}
	list, err := a.instruments()
	if err != nil {
		return err
	}
	batch := &a.follower.batch
	for _, in := range list {
		oldest, err := a.oldestKept(in, now, keepTrades)
		if err != nil {
			return err
		}
		if oldest > 1 {
			batch.DeleteRange(tradeKey(nil, in, oldest-1), tradesEnd(in))
		}
		for i := Minute1; i < Hour1; i++ {
			edge := i.openTime(now.Add(-keepMinutes).UnixNano())
			if edge > 0 {
				batch.DeleteRange(candleKey(nil, in, i, edge-1), candlesEnd(in, i))
			}
		}
	}
	a.follower.prunableTo = a.follower.cursor.trade
	if batch.Len() == 0 {
		return nil
	}
	return a.follower.commit(false)
}

// oldestKept returns the id of the oldest trade of an instrument to keep: those of the time
// keep, and of those no more than MaxTradeBytes allows. TradeIDs count the trades of all
// instruments, so the newest trades have the highest ids.
func (a *Archive) oldestKept(in market.InstrumentID, now time.Time, keep time.Duration) (market.TradeID, error) {
	oldest, err := a.firstSince(in, now.Add(-keep).UnixNano())
	trades := market.TradeID(a.o.MaxTradeBytes / (tradeKeySize + mirroredSize))
	if err != nil || a.o.MaxTradeBytes == 0 || a.follower.cursor.trade < oldest+trades {
		return oldest, err
	}
	least, err := a.firstSince(in, now.Add(-leastKept).UnixNano())
	return max(oldest, min(least, a.follower.cursor.trade-trades+1)), err
}

// instruments returns the instruments with trades, in order.
func (a *Archive) instruments() (out []market.InstrumentID, err error) {
	next, end := tradeKey(nil, 0, ^market.TradeID(0)), []byte{keyTrade + 1}
	for next != nil {
		from := next
		next = nil
		err := kv.Each(a.store, from, end, func(key, _ []byte) error {
			if len(key) != tradeKeySize {
				return fmt.Errorf("%w: trade under a key of %d bytes", ErrLayout, len(key))
			}
			in := market.InstrumentID(binary.BigEndian.Uint16(key[1:]))
			out = append(out, in)
			next = tradesEnd(in)
			return kv.ErrStop
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// firstSince returns the id of an instrument's first trade at or after a time, or the id
// after its last one. It is a binary search of some sixty reads, because TradeIDs and
// times of one instrument grow together.
//
// A mirrored instrument's trades may be old when they arrive. Those that a Reconcile
// might need count as later than any time: those since the last prune, and those of the
// day of the last trade before it.
func (a *Archive) firstSince(in market.InstrumentID, at int64) (market.TradeID, error) {
	hi := a.follower.prunableTo + 1
	last, err := a.Trades(in, hi, 1)
	if err != nil {
		return 0, err
	}
	if len(last) > 0 && last[0].Ordinal != 0 {
		at = min(at, Day1.openTime(last[0].At))
	}
	return a.searchSince(in, at, hi)
}

// searchSince returns the id of the first trade at or after a time, or the id after the last
// one before hi; the answer is at most hi.
func (a *Archive) searchSince(in market.InstrumentID, at int64, hi market.TradeID) (market.TradeID, error) {
	lo := market.TradeID(1) // the answer lies in [lo, hi]
	for lo < hi {
		mid := lo + (hi-lo)/2
		newest, err := a.Trades(in, mid+1, 1)
		switch {
		case err != nil:
			return 0, err
		case len(newest) == 0 || newest[0].At < at:
			lo = mid + 1
		default:
			hi = newest[0].ID
		}
	}
	return lo, nil
}
