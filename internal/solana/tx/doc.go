// Package tx is the codec of Solana transactions: legacy, version 0 and version
// 1, from exact bytes and back to the same bytes.
//
// A legacy or version 0 transaction, 1,232 bytes at most ("n of" is a
// compact-u16 count, in its shortest form only):
//
//	n of [64]signature ‖ message
//	message: [0x80 if version 0]
//	         required u8, readonly_signed u8, readonly_unsigned u8
//	         n of [32]key ‖ [32]blockhash
//	         n of { program u8, n of account u8, n of data }
//	         [if version 0: n of { [32]table, n of writable u8, n of readonly u8 }]
//
// A version 1 transaction (SIMD-0385), 4,096 bytes at most, little-endian:
//
//	message: 0x81 ‖ required u8, readonly_signed u8, readonly_unsigned u8
//	         mask u32 ‖ [32]blockhash ‖ instructions u8 ‖ keys u8
//	         keys × [32]key ‖ [fee u64] [units u32] [loaded u32] [heap u32]
//	         instructions × { program u8, accounts u8, data u16 }
//	         instructions × { accounts, data }
//	message ‖ required × [64]signature
//
// Invariants:
//  1. A transaction that decodes encodes to the same bytes: no trailing bytes, no alias of a
//     count, no unknown mask bit is accepted.
//  2. A transaction that decodes satisfies the runtime's structural rules (Sanitize in
//     Agave), and names no static key twice, which the runtime refuses to run.
//  3. Nothing is allocated for a count before its bytes are there.
//
// The package does not verify signatures, and does not refuse address tables or a
// durable nonce: it reports them, and the caller decides.
//
// It is hand-written because solana-go's decoder accepts what the runtime refuses, such
// as trailing bytes, and does not keep the exact bytes. Our tests compare the two.
//
// Concurrency: pure functions; values are safe to read concurrently.
package tx
