// Package market is the public market data over HTTP: books, trades, candles, the
// documents of package catalog, the oracle's heartbeat and the formats of partners.
//
// A body is a function of (view, limit) alone. It is rendered once, by appending exact
// decimals, and the same bytes are served until the view changes; so its strong ETag
// is the view's numbers. A document of the catalog is a function of its Facts, which
// change once in a cycle; all its paths have the same bytes and ETag. A cached read
// allocates nothing. A miss renders once: a few µs.
//
// Limits: [MaxDepth], [MaxTrades], [MaxCandles], limitSlots, candleSlots,
// maxPartnerDepth, maxPartnerTrades, maxPartnerScan.
package market
