// Package market serves public market data over HTTP: books, trades, candles, the
// documents of package catalog, the oracle heartbeat and the formats of aggregators.
//
// A body is a function of the view and the limit. It is rendered once, by appending exact
// decimals, and served until the view changes; its strong ETag consists of the view's
// sequence numbers. A catalog document is a function of its Facts, which change once per
// cycle; all its paths have the same bytes and ETag. A cached read does not allocate. A
// miss renders for a few µs.
//
// Limits: [MaxDepth], [MaxTrades], [MaxCandles], [MaxPartnerTrades], [MaxPartnerScan],
// maxPartnerDepth, limitSlots, candleSlots.
package market
