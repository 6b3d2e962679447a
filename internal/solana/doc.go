// Package solana has the chain's basic types: addresses, signatures, hashes and their
// base58 texts, known programs, and program-derived addresses. Its subpackages are the
// codecs and the client:
//
//	eddsa    strict verification of ed25519 signatures
//	tx       transactions of every version, to and from exact bytes
//	token    mints and token accounts, and which mints may be traded
//	build    our unsigned transactions, from plain values
//	ledger   a confirmed transaction, as getTransaction answers it
//	payment  what a confirmed transaction paid, and whether that is enough
//	rpc      the JSON-RPC client over several nodes
//
// Invariants:
//  1. All but rpc are pure: bytes in, values out. They hold no key and cannot
//     sign.
//  2. Amounts are integers: lamports and atoms. No float is parsed anywhere.
//  3. Outside data are bounded before they are copied; ambiguous data are an error.
//
// Concurrency: values are safe to copy and to read concurrently; [AccountCache] and
// rpc.Client are safe for concurrent use.
package solana
