// Package market holds the value types that all other packages share: instruments,
// sides, prices, quantities, amounts and ids, all exact integers, and the arithmetic
// between them.
//
// Invariants:
//  1. There are no floats. [ParseDecimal] turns text into an integer and
//     [AppendDecimal] turns it back into its one canonical text; both are exact.
//  2. Every division names its rounding: Floor or Ceil.
//  3. A product of two 64-bit values is held in 128 bits ([Uint128]); an overflow is
//     an error, never a wrap-around.
//  4. The package has no clock, no I/O and no locks. All values may be copied, and
//     read from several goroutines.
//
// Cost: parsing never allocates, appending only when the destination is full, and no
// function reads more than [MaxDecimalText] bytes.
//
// Limits: [MaxPrice], [MaxQty], [MaxDecimals], [MaxDecimalText], [MaxSymbol],
// [MaxInstruments].
package market
