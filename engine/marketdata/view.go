// Package marketdata computes what readers see of a market, as a function of the events of
// an engine: displayed book, last trades and 24 h ticker of every instrument.
//
// Data applies events and belongs to one goroutine. Flush publishes a View of each
// instrument that has changed; a View is immutable, so any number of readers share it
// without a lock. Machines that have read the same journal have the same numbers.
// Snapshots make a restart independent of the length of the journal.
//
// Limits: MaxDepth levels a side and MaxTape trades of a view. Costs are at Data.
package marketdata

import (
	"blockdesk/engine/event"
	"blockdesk/engine/orders"
	"blockdesk/market"
)

const (
	// MaxDepth is the most levels on a side of a view.
	MaxDepth = 100
	// MaxTape is the most trades of a view.
	MaxTape = 100
)

// Trade is one trade.
type Trade struct {
	ID    market.TradeID
	Seq   uint64 // of the command that caused it
	At    int64  // Unix nanoseconds
	Price market.Price
	Qty   market.Qty
	Side  market.Side // of the aggressor; in an auction of the younger order
	// Ordinal numbers the trades of a mirrored instrument from 1 without gaps; At is then the
	// on-chain time, earlier than that of Seq. 0 = a trade of our own book.
	Ordinal uint64
}

// TradeOf returns the trade of an event; ok is false for events of other kinds.
func TradeOf(e *event.Event) (t Trade, ok bool) {
	t = Trade{ID: market.TradeID(e.Aux), Seq: e.Seq, At: e.At, Price: e.Price, Qty: e.Qty, Side: e.Side}
	switch e.Kind {
	case event.Traded, event.AuctionTraded:
		return t, true
	case event.MirrorTraded:
		t.At, t.Ordinal = int64(e.OrderID), e.Other
		return t, true
	}
	return Trade{}, false
}

// Ticker summarizes one instrument. The 24 h figures cover the trades of the last 24 h, by the
// minute; they are zero without trades.
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

// Auction is the latest event.Auction of an instrument. The zero value is no auction, or one
// that has no end and would trade nothing.
type Auction struct {
	Price     market.Price // 0 = nothing would trade
	Volume    market.Qty
	Imbalance market.Qty // of bids over asks at Price; negative for a surplus of asks
	Until     int64      // when orders stop to gather, Unix ns; 0 = on a command
	// Uncrossing: the orders trade at Price now.
	Uncrossing bool
}

// Halted reports whether orders do not trade as they come, because of a halt or an auction.
func (v *View) Halted() bool {
	return v.Status == event.StatusHalted || v.Status == event.StatusAuction
}

// ImbalanceSide returns the side of Imbalance as JSON: "buy", "sell" or null.
func (a *Auction) ImbalanceSide() string {
	switch {
	case a.Imbalance > 0:
		return `"buy"`
	case a.Imbalance < 0:
		return `"sell"`
	}
	return "null"
}

// View is what readers see of one instrument, built from durable events only. It is immutable
// once published: Bids, Asks and Trades must not be changed.
type View struct {
	Instrument market.InstrumentID
	Status     uint8  // event.StatusTrading, event.StatusHalted or event.StatusAuction
	Epoch      uint64 // grows at every start of the engine
	EngineSeq  uint64 // last command that changed this view; it includes all earlier ones
	At         int64  // of that command
	Slot       uint64 // of a mirrored book, which may stay the same; 0 = our own, or not read yet

	// Each counts the changes of its part of the view from 1 in an epoch; 0 = recovered
	// state, before any event of the epoch. DepthSeq and TradesSeq grow at most once per
	// batch and are equal on every machine that has read it; TickerSeq counts the views of
	// one machine.
	DepthSeq, TradesSeq, TickerSeq uint64

	Bids, Asks []market.Level // best first, at most MaxDepth
	Trades     []Trade        // newest first, at most MaxTape
	Ticker     Ticker
	Auction    Auction       // of event.StatusAuction
	Orders     *orders.Sides // displayed orders of Bids and Asks; nil unless package feed adds them
}
