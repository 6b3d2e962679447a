// Package catalog makes the documents that the service publishes about its markets for
// listing sites, wallets, routers and auditors: the market status record, the token
// catalog, pairs, pools, fees, the proof, and the integrators' small files.
//
// All documents are made from one value, Facts: the state of everything at one moment. A
// document is a pure function of Facts, so two files can never disagree. A document with
// several paths has the same bytes on each.
//
//	configuration ─┐
//	views, history ├─▶ Input ─▶ Facts (once a cycle) ─▶ Documents ─▶ pages
//	mirror, desk  ─┘
//
// NewFacts does the arithmetic of prices, volumes, windows and totals. Cache keeps its
// result for a cycle. The package's tests generate the JSON Schemas in schemas/ from the
// types, and validate every document against its schema.
//
// Invariants:
//  1. No value is invented: an unknown value is null, an empty text or zero, next to a
//     status that says so.
//  2. Money is a decimal string of exact integers. Every rounding is named where it
//     happens.
//  3. Two documents that publish the same value publish the same text. A test walks all
//     documents and compares every value with every other.
//  4. Facts are immutable, so any number of goroutines may render them.
//
// Names and types follow docs/specification.md 2.5 to 2.8, and the aggregators' own
// formats in the documents for them. The rest is our choice, also:
//   - An unknown price is null, although the specification types it as a string.
//   - fallback_active: the chain figures are not live, or there is no chain.
//   - The only time in documents that depend on the configuration alone is when it took
//     effect, so their bytes change only with a restart. The pool registry also changes
//     when a program names the vaults of its pool, and the integration manifest when a
//     pool was read first.
//   - proof_hash of the status record is that of the proof document: the SHA-256 of the
//     published chain state and prices. A pool's proof_hash covers the pool.
//   - The token list's version follows from the list published before, which the caller
//     stores, because consumers ignore a version that is not above their own.
//   - Windows count a matched pair's trades by the minute and a mirrored pair's decoded
//     swaps by the second. Both are at the present price of the quote asset. status_24h
//     and status_7d say why a window is not proven.
//   - Cumulative fees are fees that were paid: by settled claims, or, if the canonical pair
//     is mirrored, as its active snapshot recorded them. A matched book takes no fee, so its
//     fee_bps is 0 in pairs and in the aggregators' documents; the status record's fee_bps
//     is that of claims.
//   - The active snapshot of a mirrored pair is its present state, so the cumulative totals
//     never lag the windows.
package catalog
