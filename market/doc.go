// Package market is blockdesk's vocabulary: instruments, sides, prices,
// quantities and amounts as exact integers, and the arithmetic between them.
//
// Invariants:
//  1. Nothing here is a float. A decimal from outside becomes an integer by
//     [ParseDecimal] and becomes text again by [AppendDecimal]; both are exact.
//     Text that was appended parses to the same value; text that was parsed is
//     appended in its one canonical form.
//  2. Every division names its rounding: Floor or Ceil.
//  3. A product of two 64-bit values is held in 128 bits ([Uint128]); an
//     overflow is an error, never a wrap.
//  4. Pure values: no clock, no I/O, no locks. Everything is safe to copy and
//     to read from several goroutines.
//
// Cost: parsing and appending do not allocate when the destination has room;
// no function walks more than [MaxDecimalText] bytes.
//
// Limits: [MaxPrice], [MaxQty], [MaxDecimals], [MaxDecimalText], [MaxSymbol],
// [MaxInstruments].
package market
