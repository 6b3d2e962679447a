package archive

import (
	"blockdesk/market"
	"blockdesk/persist/kv"
)

// Skip replaces Start if the journal does not reach back to Cursor. It continues at the
// journal's end, seq; the events between are lost. at is the time of the last of them,
// Unix nanoseconds. Skip deletes the candles over the gap.
func (a *Archive) Skip(seq uint64, at int64) error {
	f := &a.follower
	list, err := a.instruments()
	if err != nil {
		return err
	}
	for _, in := range list {
		end := f.cursor.at
		last, err := a.Trades(in, 0, 1)
		if err != nil {
			return err
		}
		if len(last) > 0 && last[0].Ordinal != 0 {
			end = last[0].At // missing trades may be as old as that
		}
		for i := Minute1; i <= Day1; i++ {
			// Delete the candles that end after the last trade before the gap.
			f.batch.DeleteRange(candleKey(nil, in, i, -1), candleKey(nil, in, i, i.openTime(end)-1))
		}
	}
	f.prunableTo = f.cursor.trade
	f.cursor.seq, f.cursor.at, f.cursor.gapEnd = seq, max(f.cursor.at, at), max(f.cursor.at, at)+1
	clear(f.open)
	return f.commit(true)
}

// Reconcile replaces Start if the store has commands after seq, the journal's end, which
// the journal has lost (a crash in mode interval, or an older backup). Reconcile deletes
// their trades and definitions, and rebuilds the affected candles from the remaining trades.
func (a *Archive) Reconcile(seq uint64) error {
	f := &a.follower
	list, err := a.instruments()
	if err != nil {
		return err
	}
	last := market.TradeID(0)
	for _, in := range list {
		lastTrade, since, err := a.lastBefore(in, seq)
		if err != nil {
			return err
		}
		last = max(last, lastTrade)
		if since < 0 {
			continue // the journal lost no trade of this instrument
		}
		f.batch.DeleteRange(tradeKey(nil, in, ^market.TradeID(0)), tradeKey(nil, in, lastTrade))
		f.forgetTraders(in, lastTrade)
		for i := Minute1; i <= Day1; i++ {
			open := i.openTime(since)
			f.batch.DeleteRange(candleKey(nil, in, i, -1), candleKey(nil, in, i, open-1))
			c, err := a.rebuildCandle(in, open, lastTrade)
			if err != nil {
				return err
			}
			if c.Trades > 0 && open >= f.cursor.gapEnd {
				f.putCandle(series{in, i}, &c)
			}
		}
	}
	f.forgetDefinitions(seq)
	f.cursor.seq, f.cursor.trade, f.prunableTo = seq, last, last
	clear(f.open)
	return f.commit(true)
}

// lastBefore returns the id of an instrument's last trade up to seq, 0 if there is none,
// and the time of the first trade after it, -1 if there is none.
func (a *Archive) lastBefore(in market.InstrumentID, seq uint64) (id market.TradeID, since int64, err error) {
	since = -1
	err = kv.Each(a.store, tradeKey(nil, in, ^market.TradeID(0)), tradesEnd(in), func(key, value []byte) error {
		t, err := parseTrade(key, value)
		if err == nil && t.Seq <= seq {
			id = t.ID
			return kv.ErrStop
		}
		since = t.At
		return err
	})
	return id, since, err
}

// rebuildCandle aggregates the trades of an instrument at or after open, up to the
// trade with the id last.
func (a *Archive) rebuildCandle(in market.InstrumentID, open int64, last market.TradeID) (Candle, error) {
	c := Candle{OpenAt: open}
	err := kv.Each(a.store, tradeKey(nil, in, last), tradesEnd(in), func(key, value []byte) error {
		t, err := parseTrade(key, value)
		if err != nil {
			return err
		}
		if t.At < open {
			return kv.ErrStop
		}
		c.addEarlier(&t)
		return nil
	})
	return c, err
}
