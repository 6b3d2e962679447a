// Package store is what settlement must find again after a restart: the unsigned
// transactions that were handed out, the signed ones that are or were on their
// way, money that came and that the desk cannot book, and how far the treasury's
// accounts have been read.
//
// Invariants:
//  1. A claim has one build for ever, or as long as its build is kept: the first
//     one put. Whoever puts another gets the first one back.
//  2. A [Kept] is on disk before anybody has it: a crash after a signed
//     transaction was sent finds its exact bytes again.
//  3. A message is kept under one set of signatures, and a claim has one cosigned
//     message at most.
//  4. What was signed, and strays, are never dropped: a stray that was resolved
//     does not come up again.
//  5. What cannot have been written here is an error that wraps [ErrDamaged]; no
//     byte of it is used.
//
// # Layout
//
// A folder's map is shared: keys of this package begin with a byte from 0x01 to
// 0x1f. Layout version 1, frozen by golden bytes. Numbers in keys are big-endian,
// so that a scan sees them in order; in values they are little-endian. The values
// of builds, transactions and strays begin with their own version, 1.
//
//	key                                  value
//	┌────┐                               ┌───┐
//	│ 01 │                               │ 1 │ layout version
//	├────┼───────────┐                   ├───┼─────────┬────────────┬────────────────┬───────────────┬───────┐
//	│ 02 │ claim u64 │                   │ 1 │ way u8  │ taker [32] │ last valid u64 │ built at i64  │ raw … │ build
//	├────┼───────────┼───────────┐       ├───┼─────────┼────────────┼────────────────┼───────────────┼───────┤
//	│ 03 │ claim u64 │ hash [32] │       │ 1 │ kind u8 │ ordinal u8 │ last valid u64 │ signed at i64 │ raw … │ kept
//	├────┼───────────┴────┬──────┘       ├───┴───────┬─┴─────────┬──┴────────────────┴───────────────┴───────┘
//	│ 04 │ signature [64] │              │ claim u64 │ hash [32] │ the kept transaction of that name
//	├────┼────────────────┤              ├───┬───────┴─┬─────────┴──┬────────────┬──────────┬─────────────┬───────────┬────────┐
//	│ 05 │ signature [64] │              │ 1 │ rail u8 │ amount u64 │ payer [32] │ slot u64 │ seen at i64 │ claim u64 │ reason │ stray
//	├────┼────────────────┤              ├───┴─────────┴────────────┴────┬───────┴─────────┬┴────┬──────┬─┴───────────┴────────┘
//	│ 06 │ signature [64] │              │ all of a stray, then          │ resolved at i64 │ by  │ note │ resolved stray
//	├────┼──────────────┬─┘              ├────────────────┬──────────────┴─────────────────┴─────┴──────┘
//	│ 07 │ account [32] │                │ signature [64] │ an account's history was read up to here
//	├────┼──────────────┴┬───────────┐   └────────────────┘
//	│ 08 │ built at u64  │ claim u64 │   (empty) builds that nobody signed, by age
//	└────┴───────────────┴───────────┘
//
// reason and by are a byte of length and the text, note two bytes of length and
// the text. ordinal counts a claim's kept transactions from 1.
//
// # Concurrency
//
// Safe for concurrent use. Puts of one claim wait for each other; those of
// different claims wait together for one sync of the map.
//
// # Cost
//
// A build and a kept transaction are one commit each, of some 700 bytes; Keep
// reads the claim's other transactions first. ClaimOf of a stranger's signature
// is answered by the map's filters, as a rule.
//
// # Limits
//
// MaxRaw, MaxTransactions a claim, MaxUnmatched, MaxCursors, MaxPrunedACall a call, and those of
// texts. Builds of signed claims and kept transactions grow with what the desk
// sells.
package store
