package gatewaytest

import (
	"sync/atomic"
	"testing"
	"time"

	"blockdesk/engine"
	"blockdesk/engine/marketdata"
	"blockdesk/market"
)

// Books is a catalog.Views whose views a test can change.
type Books struct {
	Set   *market.Instruments
	Views [3]atomic.Pointer[marketdata.View]
}

// View returns the view of an instrument.
func (b *Books) View(in market.InstrumentID) *marketdata.View { return b.Views[in].Load() }

// NewBooks returns three instruments, of which the first two have full views.
func NewBooks(t testing.TB) *Books {
	t.Helper()
	set, err := market.NewInstruments([]market.Instrument{
		{
			ID: 0, Symbol: "SLUSD/USDC", Base: "SLUSD", Quote: "USDC", PriceDecimals: 6, QtyDecimals: 6,
			Tick: 100, Lot: 500000, MinQty: 1, MaxQty: 1 << 30, MaxPrice: 1 << 30, Source: market.Matched,
		},
		{
			ID: 1, Symbol: "92C/SLUSD", Base: "92C", Quote: "SLUSD", PriceDecimals: 4, QtyDecimals: 3,
			Tick: 1, Lot: 1, MinQty: 10, MaxQty: 1 << 30, MaxPrice: 1 << 30, Source: market.Mirrored,
		},
		{
			ID: 2, Symbol: "EMPTY/USDC", Base: "EMPTY", Quote: "USDC", PriceDecimals: 0, QtyDecimals: 0,
			Tick: 1, Lot: 1, MinQty: 1, MaxQty: 10, MaxPrice: 10, Source: market.Matched,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	b := &Books{Set: set}
	b.Views[0].Store(FullView(0, 1042))
	b.Views[1].Store(FullView(1, 7))
	return b
}

// FullView returns a view with MaxDepth levels per side and MaxTape trades.
func FullView(in market.InstrumentID, seq uint64) *marketdata.View {
	v := &marketdata.View{
		Instrument: in, Status: engine.StatusTrading, Epoch: 7, EngineSeq: 90_000 + seq,
		At:       time.Date(2026, 11, 20, 12, 0, 0, 123456789, time.UTC).UnixNano(),
		DepthSeq: seq, TradesSeq: seq + 1, TickerSeq: seq + 2,
	}
	for i := range market.Price(marketdata.MaxDepth) {
		v.Bids = append(v.Bids, market.Level{Price: 9_990 - i, Qty: market.Qty(24 + 3*i)})
		v.Asks = append(v.Asks, market.Level{Price: 10_001 + i, Qty: market.Qty(31 + 7*i)})
	}
	for i := range marketdata.MaxTape {
		v.Trades = append(v.Trades, marketdata.Trade{
			ID: market.TradeID(500 - i), Seq: 80_000, At: v.At - int64(i)*1e9,
			Price: 9_995 + market.Price(i%5), Qty: market.Qty(1 + i), Side: market.Side(1 + i%2),
		})
	}
	v.Ticker = marketdata.Ticker{
		Last: 9_995, LastQty: 1, LastAt: v.At, Open24h: 9_900, High24h: 10_100, Low24h: 9_800,
		Volume24h: 4_000, QuoteVolume24h: market.Uint128{Lo: 39_980_000}, Trades24h: 77,
	}
	return v
}
