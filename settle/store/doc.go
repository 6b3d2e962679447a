// Package store keeps the data that settlement needs after a restart: the unsigned
// transactions that were handed out, the signed ones, refunds, payments that the desk
// cannot record, and how far the treasury's accounts have been read.
//
// # Invariants
//
//  1. A claim has one build for as long as the store keeps it: the first one. A
//     later PutBuild returns the first.
//  2. A [Transaction] is on disk before any caller has it, so after a crash the exact
//     bytes of every sent transaction are there.
//  3. A message is stored under one set of signatures, and a claim has at most one
//     cosigned message.
//  4. Signed transactions and resolved payments are never deleted: a resolved payment
//     does not become unmatched again. Of the unmatched ones only the least are dropped,
//     at MaxUnmatched, and counted: a flood of small ones never hides a larger one.
//  5. A payment has at most one open transaction that pays it back, and with those that
//     are final no more goes back than is due. Its unsigned bytes are on disk before the desk allows it, the signed ones before they
//     are sent.
//  6. An entry that this package cannot have written is an error that wraps
//     [ErrDamaged]; no byte of it is used.
//
// # Layout
//
// Other packages share the map: keys of this package begin with a byte from 0x01 to
// 0x1f. Layout version 1, frozen by golden bytes. Numbers in keys are big-endian,
// so that a scan sees them in order; in values they are little-endian. The values
// of builds, transactions and unmatched payments begin with their own version, 1.
//
//	key                                  value
//	┌────┐                               ┌───┐
//	│ 01 │                               │ 1 │ layout version
//	├────┼───────────┐                   ├───┼─────────┬────────────┬────────────────┬───────────────┬───────┐
//	│ 02 │ claim u64 │                   │ 1 │ mode u8 │ taker [32] │ last valid u64 │ built at i64  │ raw … │ build
//	├────┼───────────┼───────────┐       ├───┼─────────┼────────────┼────────────────┼───────────────┼───────┤
//	│ 03 │ claim u64 │ hash [32] │       │ 1 │ kind u8 │ ordinal u8 │ last valid u64 │ signed at i64 │ raw … │ signed transaction
//	├────┼───────────┴────┬──────┘       ├───┴───────┬─┴─────────┬──┴────────────────┴───────────────┴───────┘
//	│ 04 │ signature [64] │              │ claim u64 │ hash [32] │ the transaction that has the signature
//	├────┼────────────────┤              ├───┬───────┴─┬─────────┴──┬────────────┬──────────┬─────────────┬───────────┬────────┐
//	│ 05 │ signature [64] │              │ 1 │ rail u8 │ amount u64 │ payer [32] │ slot u64 │ seen at i64 │ claim u64 │ reason │ unmatched payment
//	├────┼────────────────┤              ├───┴─────────┴────────────┴────┬───────┴─────────┬┴────┬──────┬─┴───────────┴────────┘
//	│ 06 │ signature [64] │              │ an unmatched payment, then    │ resolved at i64 │ by  │ note │ resolved
//	├────┼──────────────┬─┘              ├────────────────┬──────────────┴─────────────────┴─────┴──────┘
//	│ 07 │ account [32] │                │ signature [64] │ an account's history was read up to here
//	├────┼──────────────┴┬───────────┐   └────────────────┘
//	│ 08 │ built at u64  │ claim u64 │   (empty) builds that nobody signed, by age
//	├────┼───────────┬───┴───────────┘   ┌───┬──────────┬────────────────┬─────────────┬───────────────┬──────────────┬──────────────┬────┬───────┐
//	│ 09 │ hash [32] │                   │ 1 │ state u8 │ last valid u64 │ made at i64 │ signed at i64 │ ended at i64 │ operator u16 │ by │ raw … │ refunds
//	├────┼───────────┴────┬───────────┐   └───┴──────────┴────────────────┴─────────────┴───────────────┴──────────────┴──────────────┴────┴───────┘
//	│ 0a │ payment [64]   │ hash [32] │   (empty) refunds of a payment
//	├────┼───────────┬────┴───────────┘
//	│ 0b │ hash [32] │                    (empty) refunds that have not ended
//	├────┼───────────┴────┐               ┌───┬────────┬──────────────┬──────┐
//	│ 0c │ payment [64]   │               │ 1 │ at i64 │ operator u16 │ by … │ an order to pay back
//	├────┼────────────────┘               ├───┼────────┴──┬───────────┴──┬───┴──────┐
//	│ 0d │                                │ 1 │ count u64 │ USDC atoms u64 │ lamports u64 │ unmatched payments that were dropped
//	└────┘                                └───┴───────────┴────────────────┴──────────────┘
//
// reason and by are a byte of length and the text, note two bytes of length and
// the text. ordinal counts a claim's signed transactions from 1.
//
// # Concurrency
//
// Safe for concurrent use. Writes for one claim wait for each other; those for
// different claims share one sync of the map.
//
// # Cost
//
// A build and a signed transaction are one commit each, of some 700 bytes;
// PutTransaction reads the claim's other transactions first. The map's filters usually
// answer ClaimOf for a foreign signature.
//
// # Limits
//
// MaxRaw, MaxTransactions of a claim, MaxUnmatched, MaxRefundsOfPayment, MaxCursors, MaxPrunedACall, and the
// lengths of texts. Builds of signed claims and signed transactions grow with the
// desk's sales.
package store
