// Package mirror reads decentralized exchanges on Solana: order books, pool states and
// swaps, from the accounts and transactions that RPC nodes return.
//
//	accounts of one slot ─┬▶ Book.Decode ─▶ Depth: ticks and atoms
//	                      └▶ Pool.Decode ─▶ PoolState
//	signatures, newest first ─▶ Backfill ─▶ transactions
//	transaction ─▶ VaultPair.Decode ─▶ Trace ─▶ Windows: 24 h and 7 d
//
// A [Service] does all of it every cycle for each pair, in two loops: accounts of one slot
// ─▶ the engine's book and State; history ─▶ store ─▶ the engine's trades.
//
// [Book] is the interface of the order books of Manifest, Serum v3 (with its fork OpenBook
// v1) and OpenBook v2. [Pool] reads pools of Raydium's CPMM program and any two vaults.
// internal/solana/token parses mints and token accounts.
//
// A swap is any movement of a pool's two vaults, one in and one out, whatever the pool's
// program. [Backfill] reads the pool's finalized transactions as one gapless run that grows
// at both ends. [Windows] counts its swaps and knows which figures are proven.
//
// Invariants:
//  1. Decoders are pure: bytes and the chain's own clock in, values out.
//  2. A node may be wrong or lie. Owner, account type, mints and decimals are checked
//     against the listing, every index is checked, every walk is bounded by the account's
//     size, and a book that is out of order is refused as a whole. A failure is an error,
//     never a guess.
//  3. Prices and sizes are exact integers. A bid's price is rounded down to the tick and an
//     ask's up, so the mirror never shows a better price than the chain.
//  4. Cheap hostile orders, such as a price below the tick, cannot stop the mirror: orders
//     that the instrument cannot express are omitted and counted.
//  5. A swap is the effect of one call on the vaults, and the movements of a transaction add
//     up to the balance changes: an amount that one call takes out and another puts in makes
//     no price. A swap counts once, by its signature and call, however often it is read. An
//     unproven window publishes only the reason.
//  6. Account data is published if more than half of the plausible nodes agree: those with a
//     clock near ours and a slot that the chain can have reached. A single plausible node is
//     believed.
//  7. An older slot never replaces a newer one, and no node advances the slot beyond the slot
//     of a majority.
//  8. A transaction is in the history if more than half of the answering nodes list it, and
//     its content is the majority's: one of three nodes can neither hide a swap, nor invent
//     one, nor delay the others.
//  9. A swap is published to the engine after its ordinal is on disk, so an ordinal means the
//     same swap after a crash. If its store is lost, the service may omit a swap but never
//     publishes one twice.
//
// Our choices: Manifest's global orders are shown as the program would match them, although
// their backing is in another account. OpenBook orders that are pegged to an oracle are
// counted and not shown. A crossed on-chain book is shown crossed. A contradicting minority
// degrades the state and stops nothing. A trade's price is rounded up to the tick for a buyer
// and down for a seller, its size down to the lot; a swap without such a price, size or time
// has no ordinal and counts in the windows only. Trades are published from the time to which
// the history was read back first, 8 days by default, or as far as the nodes have had it for
// 8 polls; older swaps that appear later are counted and not published. While our clock and
// the chain's differ too much, the history waits, because an impossible block time counts as
// none.
//
// Concurrency: a Book and a Pool are immutable and safe for concurrent use. A Depth belongs
// to its caller, a Backfill and Windows to one goroutine. A Service has two goroutines a pair
// while Run runs; State may be called at any time.
//
// Cost: a book is walked from its best order and only as deep as the listing asks, and
// decoding into a used Depth does not allocate: BenchmarkDecode reads the largest account of
// each layout in 10 to 160 µs. After 1024 expired or empty orders of a Manifest book, the
// unexpired ones are searched in memory order: an account of 10 MiB without unexpired orders takes
// 0.6 ms. Only a book with more than 1024 unexpired orders behind 1024 expired ones, or with
// thousands of orders at a few prices, takes some milliseconds.
//
// Limits: [MaxLevels], [MaxBookAccount], [MaxPending], [MaxWindowSwaps]; of a service:
// [MaxPairs], [MaxShownLevels], [MaxObserved], [MaxSnapshots], [MaxTraders], [MaxAttempts],
// [MaxSignatures], Options.MaxPendingSwaps. If two nodes list different transactions, there is
// no majority: the history waits up to 8 cycles, then omits the contested ones and marks its
// windows as uncertain; with more than 16 contested ones on a page it waits until the nodes
// agree. A single node is believed. If nodes order the transactions of a slot differently and
// no order has a majority, the first node's counts. An account of 10 MiB needs an rpc client
// that accepts answers of 14 MiB. Swaps with an ordinal take some 300 bytes each on disk, for
// good; other transactions are kept for a week once the past was read, or more of it than
// Options.MaxPendingSwaps.
package mirror
