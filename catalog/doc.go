// Package catalog is what the service says about its markets to those who list,
// show, route or audit them: the market status record, the token catalog, pairs,
// pools, fees, proof, and the small files of integrators.
//
// All of it is made of one value, Facts: the state of everything at one moment.
// A document is a pure function of Facts, so no two files can disagree, and a file
// that is served under several paths is one document.
//
//	configuration ─┐
//	views, history ├─▶ Input ─▶ Facts (once a cycle) ─▶ Documents ─▶ pages
//	mirror, desk  ─┘
//
// NewFacts does the arithmetic of prices, volumes, windows and totals; Cache keeps
// its result for a cycle.
//
// The JSON Schemas in schemas/ are made of the types by the package's tests, are
// what integrators read, and every document is held to its own.
//
// Invariants:
//  1. Nothing is invented: what is not known is null, an empty text or zero, with
//     the status that says so beside it.
//  2. Money is a decimal text of exact integers; every rounding is named where it
//     happens.
//  3. What two documents tell of one thing is the same, to the character; a test
//     walks all of them and holds each to every other.
//  4. Facts do not change once they are made, so any number of goroutines may
//     render them.
//
// Names and types of the members are the description's where it gives them (parts
// 2.5 to 2.8), and the aggregators' in what is made for them; all else is our
// choice. So is what follows:
//   - A price that nothing tells is null, though the description types it as text.
//   - fallback_active: the chain's figures are not live, or there is no chain.
//   - Documents of the configuration alone bear the time since when it is in force
//     and no other, so their bytes change with a restart. The pool registry's do
//     too when a program tells the vaults of its pool.
//   - proof_hash of the status record is that of the proof document: SHA-256 of
//     what the service says of the chain and the prices. A pool's is of the pool.
//   - The token list's version comes from the list before it, which the caller
//     remembers, since consumers ignore one that is not above theirs.
//   - Windows of a pair with a book of our own count its trades by the minute, those
//     of a mirrored pair its decoded swaps to the second; both are at the present
//     price of the quote asset, and status_24h and status_7d say why one is not
//     proven.
//   - Raw fees of a snapshot are no public total where they do not fit its volume:
//     what the fee rate makes of the volume is.
package catalog
