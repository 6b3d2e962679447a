package market

import (
	"slices"
	"strconv"
	"sync/atomic"

	"blockdesk/catalog"
	"blockdesk/engine/marketdata"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// oraclePage is the heartbeat of one second, with the views and facts it was made from.
type oraclePage struct {
	second int64
	views  []*marketdata.View // by InstrumentID
	facts  *catalog.Facts     // nil = none
	page   *wire.Page
}

// oraclePages renders the oracle heartbeat: the price of each pair with its source and
// age.
type oraclePages struct {
	market  *pages
	service string
	now     func() int64
	facts   func() *catalog.Facts // nil = none
	cached  atomic.Pointer[oraclePage]
}

// serve serves the page of the present second. It renders again only if a view or the
// facts have changed.
func (o *oraclePages) serve([]byte) (*wire.Page, *wire.Problem) {
	now := o.now()
	second := now / nanosPerSecond
	views := make([]*marketdata.View, o.market.set.Len())
	for i := range views {
		views[i] = o.market.view(market.InstrumentID(i))
	}
	var facts *catalog.Facts
	if o.facts != nil {
		facts = o.facts()
	}
	if cached := o.cached.Load(); cached != nil && cached.second == second && cached.facts == facts && slices.Equal(cached.views, views) {
		return cached.page, nil
	}
	fresh := &oraclePage{second: second, views: views, facts: facts, page: wire.NewPage(o.append(nil, now, views, facts))}
	o.cached.Store(fresh)
	return fresh.page, nil
}

const nanosPerSecond = 1_000_000_000

// append renders the heartbeat at now, in Unix nanoseconds.
func (o *oraclePages) append(dst []byte, now int64, views []*marketdata.View, facts *catalog.Facts) []byte {
	newest := uint64(0)
	for _, v := range views {
		newest = max(newest, v.EngineSeq)
	}
	dst = append(dst, `{"ok":true,"service":`...)
	dst = wire.AppendText(dst, o.service)
	dst = append(dst, `,"api_version":"`+catalog.APIVersion+`","ts":`...)
	dst = appendTime(dst, now)
	dst = append(dst, `,"engine_seq":`...)
	dst = strconv.AppendUint(dst, newest, 10)
	dst = append(dst, `,"pairs":[`...)
	for i, v := range views {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendOraclePair(dst, o.market.set.Get(market.InstrumentID(i)), v, now, facts)
	}
	return append(dst, "]}"...)
}

// appendOraclePair renders one pair. Its price is the last trade, else the middle of the
// book, else null. Its price in dollars, the age of a mirrored pair, and whether a
// mirrored book is live come from the catalog's facts of the cycle.
func appendOraclePair(dst []byte, in *market.Instrument, v *marketdata.View, now int64, facts *catalog.Facts) []byte {
	dst = append(append(dst, `{"symbol":"`...), in.Symbol...)
	dst = append(append(dst, `","source":"`...), in.Source.String()...)
	dst = append(append(dst, `","status":"`...), statusWord(v.Status)...)
	dst = append(dst, `","epoch":"e`...)
	dst = strconv.AppendUint(dst, v.Epoch, 10)
	dst = append(dst, `","seq":`...)
	dst = strconv.AppendUint(dst, v.TickerSeq, 10)
	dst = append(dst, `,"engine_seq":`...)
	dst = strconv.AppendUint(dst, v.EngineSeq, 10)
	dst = append(dst, `,"ts":`...)
	dst = appendTime(dst, v.At)

	bid, ask, readAt := best(v.Bids).Price, best(v.Asks).Price, v.At
	if in.Source == market.Mirrored {
		// The view keeps the last book of the chain for ever, and a restart renews its At.
		at, live := facts.ChainBook(in.Symbol)
		if readAt = int64(at); !live {
			bid, ask = 0, 0
		}
	}
	from := priceSource(v.Ticker.Last, bid, ask)
	switch from {
	case "last_trade":
		dst = appendPrice(dst, `,"price":`, in, v.Ticker.Last)
	case "book_mid":
		dst = append(dst, `,"price":"`...)
		dst = append(appendMiddle(dst, in, bid, ask), '"')
	default:
		dst = append(dst, `,"price":null`...)
	}
	dst = append(append(dst, `,"price_source":"`...), from...)
	usd, usdFrom := facts.PriceUSD(in.Symbol)
	dst = wire.AppendUSDPrice(append(dst, `","price_usd":`...), usd)
	dst = append(append(dst, `,"price_usd_source":"`...), usdFrom.String()...)
	dst = appendPrice(dst, `","last":`, in, v.Ticker.Last)
	dst = appendMid(dst, in, bid, ask)
	dst = append(dst, `,"last_trade_ts":`...)
	dst = appendTime(dst, v.Ticker.LastAt)
	dst = append(dst, `,"data_freshness_seconds":`...)
	if readAt == 0 {
		dst = append(dst, "null"...)
	} else {
		dst = strconv.AppendInt(dst, max(0, (now-readAt)/nanosPerSecond), 10)
	}
	return appendDegradation(dst, v, from, facts.Reasons(in.Symbol))
}

// priceSource returns the word for a pair's price source; 0 means no price.
func priceSource(last, bid, ask market.Price) string {
	switch {
	case last != 0:
		return "last_trade"
	case bid != 0 && ask != 0:
		return "book_mid"
	default:
		return "none"
	}
}

// appendDegradation appends degradation_state, the last member of a pair: the catalog's
// reasons and those of the view.
func appendDegradation(dst []byte, v *marketdata.View, from string, reasons []string) []byte {
	add := func(reason string) {
		if !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	}
	if v.Halted() {
		add("trading_halted")
	}
	switch from {
	case "book_mid":
		add("no_trade_yet")
	case "none":
		add("no_price")
	}
	dst = append(dst, `,"degradation_state":{"degraded":`...)
	dst = strconv.AppendBool(dst, len(reasons) > 0)
	dst = append(dst, `,"reasons":[`...)
	for i, reason := range reasons {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendQuote(dst, reason)
	}
	return append(dst, "]}}"...)
}
