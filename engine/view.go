package engine

import (
	"blockdesk/engine/event"
	"blockdesk/market"
)

const (
	// MaxDepth is the largest number of levels a side that a view shows.
	MaxDepth = 100
	// MaxTape is the number of last trades that a view shows.
	MaxTape = 100
)

// Trade is one print.
type Trade struct {
	ID    market.TradeID
	Seq   uint64 // of the command that caused it
	At    int64  // Unix nanoseconds
	Price market.Price
	Qty   market.Qty
	Side  market.Side // of the aggressor
	// Ordinal is the number of a mirrored instrument's trade, from 1 without
	// gaps; At is then the chain's time, earlier than Seq's. 0 = a trade of our
	// own book.
	Ordinal uint64
}

// TradeOf returns the trade that an event tells; ok is false where it tells
// none.
func TradeOf(e *event.Event) (t Trade, ok bool) {
	t = Trade{ID: market.TradeID(e.Aux), Seq: e.Seq, At: e.At, Price: e.Price, Qty: e.Qty, Side: e.Side}
	switch e.Kind {
	case event.Traded:
		return t, true
	case event.MirrorTraded:
		t.At, t.Ordinal = int64(e.OrderID), e.Other
		return t, true
	}
	return Trade{}, false
}

// Ticker sums up one instrument. Window figures cover the last 24 h of real
// trades, by the minute; zero where there were none.
type Ticker struct {
	Last      market.Price // 0 = no trade yet
	LastQty   market.Qty
	LastAt    int64
	Open24h   market.Price
	High24h   market.Price
	Low24h    market.Price
	Volume24h market.Qty
	// QuoteVolume24h is Σ price × qty in ticks × lots: see
	// market.Instrument.AppendTickLots.
	QuoteVolume24h market.Uint128
	Trades24h      uint64
}

// View is what readers see of one instrument: immutable once published, built
// from durable events only. Bids, Asks and Trades must not be changed.
type View struct {
	Instrument market.InstrumentID
	Status     uint8  // StatusTrading or StatusHalted
	Epoch      uint64 // grows with every start of the engine
	EngineSeq  uint64 // last command that has changed this view; all before are in it
	At         int64  // of that command
	// Slot is where the chain was when a mirrored book looked like this; it may
	// grow by itself. 0 = a book of our own, or not read yet.
	Slot uint64

	// Each grows by one when its part of the view changes; from 1 in an epoch. 0:
	// what was recovered, before anything of the epoch. The first two grow once a
	// batch and are the same on every machine that has read it; the TickerSeq
	// counts one machine's views.
	DepthSeq, TradesSeq, TickerSeq uint64

	Bids, Asks []market.Level // best first, at most MaxDepth
	Trades     []Trade        // newest first, at most MaxTape
	Ticker     Ticker
}
