// Package archive keeps every trade, and the candles that trades make, for as
// long as the options say. It follows the engine's durable events by a consumer
// of its own and has a store of its own, so that neither the engine nor the feed
// ever waits for history.
//
//	durable events ─▶ Run ─▶ one commit a batch: trades, candles, cursor ─▶ store
//	readers: Trades, Candles ─────────────────────────────────────────────────┘
//
// # Invariants
//
//  1. A trade is in the store once, under its TradeID, and in one candle of each
//     interval; both and the cursor that says so are one commit. So the content
//     is a function of the trades: whatever suffix of commits a crash takes, the
//     journal's events make it again, and a trade that is there is passed over.
//  2. A candle is of real trades alone: an interval without any has none.
//  3. No candle is told that misses trades of its interval: where events are
//     missing (Skip), the candles over the hole are taken out.
//  4. What a reader sees is committed, though perhaps not synced.
//  5. A mirrored instrument's trade counts at the time of its block, which may be
//     long past when it comes, but never before the instrument's last trade.
//
// # Concurrency
//
// New, Replay, Skip and Reconcile come before Run and are one goroutine's. Trades,
// Candles, CompleteSince, Cursor, DurableCursor and Stats may be called from any
// goroutine.
//
// # Cost
//
// A trade is 33 bytes, a mirrored one 41, and a key of 11; a candle 64 bytes and 12. A batch of
// trades on one instrument writes each of its six open candles once. Reading
// goes from the newest backwards, since the keys hold inverted numbers.
//
// # Limits
//
// MaxTrades and MaxCandles a call; maxBatch trades a commit.
package archive
