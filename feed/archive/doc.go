// Package archive stores every trade and the candles of the trades, for as long as its
// options say. It has its own consumer of the engine's durable events and its own store, so
// that neither the engine nor the feed ever waits for it.
//
//	durable events ─▶ Run ─▶ one commit a batch: trades, candles, cursor ─▶ store
//	readers: Trades, Candles, Definition ─────────────────────────────────────┘
//
// # Invariants
//
//  1. A trade is stored once, under its TradeID, and counts in one candle of each
//     interval. The trade, the candles and the cursor are one commit. So the content is a
//     function of the trades: after a crash the journal's events restore the lost commits,
//     and a trade that is already stored is skipped.
//  2. A candle has real trades only: an interval without trades has no candle.
//  3. No candle misses trades of its interval: if events are missing (Skip), the candles
//     over the gap are deleted.
//  4. Readers see committed data, which may not be synced yet.
//  5. A participant counts as a trader of a matched book from its first stored trade on.
//  6. A mirrored instrument's trade counts at the time of its block, which may be long past,
//     but never before the instrument's last trade.
//  7. The first event of an instrument is its definition. A store that has missed it, because
//     an older version made the store or the events are lost, reports none.
//
// # Concurrency
//
// New, Replay, Know, Skip and Reconcile are called before Run, from one goroutine. Trades,
// Candles, Traders, Definition, CompleteSince, Cursor, DurableCursor and Stats may be called from any
// goroutine.
//
// # Cost
//
// A trade takes 33 bytes, a mirrored one 41, and a key of 11; a candle takes 64 bytes and a
// key of 12; a trader of an instrument takes 8 and a key of 5, and some 40 in memory. A batch of trades of one instrument writes each of its six open candles once.
// Reads go from the newest backwards, because the keys hold inverted numbers.
//
// # Limits
//
// MaxTrades and MaxCandles a call; maxBatch trades a commit.
package archive
