package market

import (
	"encoding/json"
	"errors"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"blockdesk/engine"
	"blockdesk/engine/marketdata"
	"blockdesk/httpgw/gatewaytest"
	"blockdesk/market"
)

// The three answers as a client would declare them.
type depthAnswer struct {
	head
	Bids   [][2]string     `json:"bids"`
	Asks   [][2]string     `json:"asks"`
	Source string          `json:"source"`
	Slot   json.RawMessage `json:"slot"`
}

type head struct {
	OK        bool       `json:"ok"`
	Symbol    string     `json:"symbol"`
	Epoch     string     `json:"epoch"`
	Seq       uint64     `json:"seq"`
	EngineSeq uint64     `json:"engine_seq"`
	TS        *time.Time `json:"ts"`
}

type tradesAnswer struct {
	head
	Before *uint64 `json:"next_before"`
	Trades []struct {
		ID        uint64    `json:"trade_id"`
		Price     string    `json:"price"`
		Qty       string    `json:"qty"`
		Side      string    `json:"side"`
		TS        time.Time `json:"ts"`
		Signature *string   `json:"signature"`
		Source    string    `json:"source"`
	} `json:"trades"`
}

type tickerAnswer struct {
	head
	Last           *string    `json:"last"`
	LastQty        *string    `json:"last_qty"`
	LastTS         *time.Time `json:"last_ts"`
	Bid            *string    `json:"bid"`
	BidQty         *string    `json:"bid_qty"`
	Ask            *string    `json:"ask"`
	AskQty         *string    `json:"ask_qty"`
	Mid            *string    `json:"mid"`
	Spread         *string    `json:"spread"`
	Open24h        *string    `json:"open_24h"`
	High24h        *string    `json:"high_24h"`
	Low24h         *string    `json:"low_24h"`
	Volume24h      *string    `json:"volume_24h"`
	QuoteVolume24h *string    `json:"quote_volume_24h"`
	Trades24h      uint64     `json:"trades_24h"`
	Source         string     `json:"source"`
	Status         string     `json:"status"`
}

func decode(t rapid.TB, body []byte, into any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
}

// onChain knows the signatures of some ordinals.
type onChain struct {
	from, to uint64
	err      error
}

func (o onChain) Signatures(_ market.InstrumentID, from, to uint64) (out [][64]byte, _ error) {
	for n := from; n <= to; n++ {
		var sig [64]byte
		if n >= o.from && n <= o.to {
			sig[63] = byte(n)
		}
		out = append(out, sig)
	}
	return out, o.err
}

// TestSignaturesOfTrades: each trade of a mirrored instrument has the signature of its
// own ordinal.
func TestSignaturesOfTrades(t *testing.T) {
	t.Parallel()
	in := *gatewaytest.NewBooks(t).Set.Get(0)
	v := gatewaytest.FullView(0, 1042)
	for i := range v.Trades {
		v.Trades[i].Ordinal = uint64(200 - i)
	}
	for _, c := range []struct {
		name       string
		source     market.BookSource
		NullNumber Signatures
		want       []string // the last bytes, of the trades 200, 199 and 198
	}{
		{"mirrored", market.Mirrored, onChain{from: 198, to: 199}, []string{"null", `"` + strings.Repeat("1", 63) + `4S"`, `"` + strings.Repeat("1", 63) + `4R"`}},
		{"matched", market.Matched, onChain{from: 1, to: 200}, []string{"null", "null", "null"}},
		{"unknown", market.Mirrored, nil, []string{"null", "null", "null"}},
		{"the store fails", market.Mirrored, onChain{from: 1, to: 200, err: errors.New("gone")}, []string{"null", "null", "null"}},
	} {
		in.Source = c.source
		got := (&pages{signatures: c.NullNumber}).appendTrades(nil, &in, v, 3)
		var a struct {
			Trades []struct{ Signature json.RawMessage }
		}
		if err := json.Unmarshal(got, &a); err != nil || len(a.Trades) != 3 {
			t.Fatalf("%s: %v in %s", c.name, err, got)
		}
		for i, want := range c.want {
			if string(a.Trades[i].Signature) != want {
				t.Errorf("%s: trade %d: %s, want %s", c.name, i, a.Trades[i].Signature, want)
			}
		}
	}
	before := v.Trades[2].Ordinal
	v.Trades[2].Ordinal = 0 // from when the instrument was matched
	in.Source = market.Mirrored
	if list := (&pages{signatures: onChain{from: 1, to: 200}}).signaturesOf(&in, v.Trades[:3]); list != nil {
		t.Errorf("with a trade of our own among them: %d signatures", len(list))
	}
	v.Trades[2].Ordinal = before
}

// TestTranscripts pins the bytes of each answer for one small view.
func TestTranscripts(t *testing.T) {
	b := gatewaytest.NewBooks(t)
	in := b.Set.Get(0)
	v := gatewaytest.FullView(0, 1042)
	v.Ticker.QuoteVolume24h = market.Uint128{Lo: 3}
	const open = `{"ok":true,"symbol":"SLUSD/USDC","epoch":"e7","seq":`
	const firstSymbol = `{"ok":true,"symbols":[{"symbol":"SLUSD/USDC","base":"SLUSD","quote":"USDC","price_decimals":6` +
		`,"qty_decimals":6,"tick_size":"0.000100","lot_size":"0.500000","min_qty":"0.500000"` +
		`,"max_qty":"536870912.000000","max_price":"107374.182400","book_source":"matched","status":"halted"}` +
		`,{"symbol":"92C/SLUSD",`
	symbols := string(appendSymbols(nil, b.Set, []uint8{engine.StatusHalted, engine.StatusTrading, 0}))
	const ts = `"2026-11-20T12:00:00.123456Z"`
	for _, c := range []struct{ name, got, want string }{
		{
			"depth", string(appendDepth(nil, in, v, 2)), open + `1042,"engine_seq":91042,"ts":` + ts +
				`,"bids":[["0.999000","12.000000"],["0.998900","13.500000"]]` +
				`,"asks":[["1.000100","15.500000"],["1.000200","19.000000"]],"source":"matched","slot":null}`,
		},
		{
			"trades", string((&pages{}).appendTrades(nil, in, v, 1)), open + `1043,"engine_seq":91042,"ts":` + ts +
				`,"next_before":500,"trades":[{"trade_id":500,"price":"0.999500","qty":"0.500000","side":"buy","ts":` + ts +
				`,"signature":null,"source":"matched"}]}`,
		},
		{
			"ticker", string(appendTicker(nil, in, v, 0)), open + `1044,"engine_seq":91042,"ts":` + ts +
				`,"last":"0.999500","last_qty":"0.500000","last_ts":` + ts +
				`,"bid":"0.999000","bid_qty":"12.000000","ask":"1.000100","ask_qty":"15.500000"` +
				`,"mid":"0.9995500","spread":"0.001100","open_24h":"0.990000","high_24h":"1.010000","low_24h":"0.980000"` +
				`,"volume_24h":"2000.000000","quote_volume_24h":"0.000150000000","trades_24h":77` +
				`,"source":"matched","status":"trading"}`,
		},
		{
			"nothing yet", string(appendTicker(nil, b.Set.Get(2), &marketdata.View{}, 0)),
			`{"ok":true,"symbol":"EMPTY/USDC","epoch":"e0","seq":0,"engine_seq":0,"ts":null` +
				`,"last":null,"last_qty":null,"last_ts":null,"bid":null,"bid_qty":null,"ask":null,"ask_qty":null` +
				`,"mid":null,"spread":null,"open_24h":null,"high_24h":null,"low_24h":null` +
				`,"volume_24h":"0","quote_volume_24h":"0","trades_24h":0,"source":"matched","status":"trading"}`,
		},
		{
			"symbols", symbols[:len(firstSymbol)], firstSymbol,
		},
	} {
		if c.got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, c.got, c.want)
		}
	}
}

// drawInstrument draws any valid instrument, including extremes.
func drawInstrument(t *rapid.T) *market.Instrument {
	in := &market.Instrument{
		Symbol: "A/B", Base: "A", Quote: "B",
		PriceDecimals: uint8(rapid.IntRange(0, market.MaxDecimals).Draw(t, "price decimals")),
		QtyDecimals:   uint8(rapid.IntRange(0, market.MaxDecimals).Draw(t, "qty decimals")),
		Tick:          rapid.Uint64Range(1, 1<<16).Draw(t, "tick"), Lot: rapid.Uint64Range(1, 1<<16).Draw(t, "lot"),
		MinQty: 1, MaxQty: market.MaxQty, MaxPrice: market.MaxPrice,
		Source: rapid.SampledFrom([]market.BookSource{market.Matched, market.Mirrored}).Draw(t, "source"),
	}
	if err := in.Validate(); err != nil {
		t.Fatal(err)
	}
	return in
}

func drawView(t *rapid.T) *marketdata.View {
	price := rapid.Custom(func(t *rapid.T) market.Price {
		return market.Price(rapid.Int64Range(1, int64(market.MaxPrice)).Draw(t, "price"))
	})
	qty := rapid.Custom(func(t *rapid.T) market.Qty {
		return market.Qty(rapid.Int64Range(1, 1<<62).Draw(t, "qty"))
	})
	level := rapid.Custom(func(t *rapid.T) market.Level {
		return market.Level{Price: price.Draw(t, "p"), Qty: qty.Draw(t, "q")}
	})
	at := rapid.Int64Range(0, 1<<62)
	trade := rapid.Custom(func(t *rapid.T) marketdata.Trade {
		return marketdata.Trade{
			ID: market.TradeID(rapid.Uint64().Draw(t, "id")), At: at.Draw(t, "at") + 1,
			Price: price.Draw(t, "p"), Qty: qty.Draw(t, "q"), Side: market.Side(rapid.IntRange(1, 2).Draw(t, "side")),
		}
	})
	return &marketdata.View{
		Slot:  rapid.SampledFrom([]uint64{0, 1, 1<<64 - 1}).Draw(t, "slot"),
		Epoch: rapid.Uint64().Draw(t, "epoch"), EngineSeq: rapid.Uint64().Draw(t, "engine seq"), At: at.Draw(t, "at"),
		DepthSeq: rapid.Uint64().Draw(t, "depth seq"), TradesSeq: rapid.Uint64().Draw(t, "trades seq"),
		TickerSeq: rapid.Uint64().Draw(t, "ticker seq"), Status: rapid.Uint8Range(0, 2).Draw(t, "status"),
		Bids:   rapid.SliceOfN(level, 0, marketdata.MaxDepth).Draw(t, "bids"),
		Asks:   rapid.SliceOfN(level, 0, marketdata.MaxDepth).Draw(t, "asks"),
		Trades: rapid.SliceOfN(trade, 0, marketdata.MaxTape).Draw(t, "trades"),
		Ticker: marketdata.Ticker{
			Last: price.Draw(t, "last"), LastQty: qty.Draw(t, "last qty"), LastAt: at.Draw(t, "last at"),
			Volume24h: qty.Draw(t, "volume"), Trades24h: rapid.Uint64().Draw(t, "n"),
			QuoteVolume24h: market.Uint128{Hi: rapid.Uint64().Draw(t, "hi"), Lo: rapid.Uint64().Draw(t, "lo")},
		},
	}
}

// units returns n × unit × 10^-decimals computed with math/big.
func units(n, unit uint64, decimals int) *big.Rat {
	num := new(big.Int).Mul(new(big.Int).SetUint64(n), new(big.Int).SetUint64(unit))
	return new(big.Rat).SetFrac(num, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil))
}

func sameDecimal(t *rapid.T, name, got string, want *big.Rat, decimals int) {
	t.Helper()
	if text := want.FloatString(decimals); got != text {
		t.Fatalf("%s: %q, want %q", name, got, text)
	}
}

// TestRenderAgainstBig: what encoding/json decodes from an answer equals the view to
// the last digit, for any instrument and view.
func TestRenderAgainstBig(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in, v := drawInstrument(t), drawView(t)
		limit := rapid.IntRange(1, MaxDepth).Draw(t, "limit")
		var d depthAnswer
		decode(t, appendDepth(nil, in, v, limit), &d)
		checkHead(t, d.head, v, v.DepthSeq)
		checkLevels(t, in, d.Bids, v.Bids, limit)
		checkLevels(t, in, d.Asks, v.Asks, limit)
		slot := "null"
		if v.Slot != 0 {
			slot = strconv.FormatUint(v.Slot, 10)
		}
		if d.Source != in.Source.String() || string(d.Slot) != slot {
			t.Fatalf("source %q slot %s, want %s", d.Source, d.Slot, slot)
		}
		checkTrades(t, in, v, limit)
		checkTicker(t, in, v)
	})
}

func checkHead(t *rapid.T, h head, v *marketdata.View, seq uint64) {
	t.Helper()
	if !h.OK || h.Symbol != "A/B" || h.Seq != seq || h.EngineSeq != v.EngineSeq {
		t.Fatalf("head %+v of view %+v", h, v)
	}
	if (h.TS == nil) != (v.At == 0) || h.TS != nil && h.TS.UnixMicro() != v.At/1000 {
		t.Fatalf("ts %v of %d", h.TS, v.At)
	}
}

func checkLevels(t *rapid.T, in *market.Instrument, got [][2]string, want []market.Level, limit int) {
	t.Helper()
	want = want[:min(limit, len(want))]
	if got == nil || len(got) != len(want) {
		t.Fatalf("%d levels, want %d", len(got), len(want))
	}
	for i, l := range want {
		sameDecimal(t, "price", got[i][0], units(uint64(l.Price), in.Tick, int(in.PriceDecimals)), int(in.PriceDecimals))
		sameDecimal(t, "qty", got[i][1], units(uint64(l.Qty), in.Lot, int(in.QtyDecimals)), int(in.QtyDecimals))
	}
}

func checkTrades(t *rapid.T, in *market.Instrument, v *marketdata.View, limit int) {
	t.Helper()
	var a tradesAnswer
	decode(t, (&pages{}).appendTrades(nil, in, v, limit), &a)
	checkHead(t, a.head, v, v.TradesSeq)
	want := v.Trades[:min(limit, len(v.Trades))]
	if older := len(want) == limit; (a.Before != nil) != older || older && *a.Before != uint64(want[limit-1].ID) {
		t.Fatalf("the next page is before %v", a.Before)
	}
	if a.Trades == nil || len(a.Trades) != len(want) {
		t.Fatalf("%d trades, want %d", len(a.Trades), len(want))
	}
	for i := range want {
		got, w := a.Trades[i], want[i]
		sameDecimal(t, "price", got.Price, units(uint64(w.Price), in.Tick, int(in.PriceDecimals)), int(in.PriceDecimals))
		sameDecimal(t, "qty", got.Qty, units(uint64(w.Qty), in.Lot, int(in.QtyDecimals)), int(in.QtyDecimals))
		if got.ID != uint64(w.ID) || got.Side != w.Side.String() || got.TS.UnixMicro() != w.At/1000 || got.Signature != nil {
			t.Fatalf("trade %+v, want %+v", got, w)
		}
	}
}

func checkTicker(t *rapid.T, in *market.Instrument, v *marketdata.View) {
	t.Helper()
	var a tickerAnswer
	decode(t, appendTicker(nil, in, v, 0), &a)
	checkHead(t, a.head, v, v.TickerSeq)
	priceDecimals, qtyDecimals := int(in.PriceDecimals), int(in.QtyDecimals)
	sameDecimal(t, "last", *a.Last, units(uint64(v.Ticker.Last), in.Tick, priceDecimals), priceDecimals)
	sameDecimal(t, "volume", *a.Volume24h, units(uint64(v.Ticker.Volume24h), in.Lot, qtyDecimals), qtyDecimals)
	if a.Open24h != nil || (a.Bid == nil) != (len(v.Bids) == 0) || (a.Ask == nil) != (len(v.Asks) == 0) {
		t.Fatalf("a price where there is none, or none where there is one: %+v", a)
	}
	if a.Bid != nil && a.Ask != nil {
		bid := units(uint64(v.Bids[0].Price), in.Tick, priceDecimals)
		ask := units(uint64(v.Asks[0].Price), in.Tick, priceDecimals)
		mid := new(big.Rat).Quo(new(big.Rat).Add(bid, ask), big.NewRat(2, 1))
		sameDecimal(t, "mid", *a.Mid, mid, priceDecimals+1)
		sameDecimal(t, "spread", *a.Spread, ask.Sub(ask, bid), priceDecimals)
	}
	volume := new(big.Int).Lsh(new(big.Int).SetUint64(v.Ticker.QuoteVolume24h.Hi), 64)
	volume.Add(volume, new(big.Int).SetUint64(v.Ticker.QuoteVolume24h.Lo))
	volume.Mul(volume, new(big.Int).SetUint64(in.Tick)).Mul(volume, new(big.Int).SetUint64(in.Lot))
	if a.QuoteVolume24h == nil {
		t.Fatal("no quote volume")
	}
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(in.NotionalDecimals())), nil)
	sameDecimal(t, "quote volume", *a.QuoteVolume24h, new(big.Rat).SetFrac(volume, scale), in.NotionalDecimals())
}
