// Package mirror reads a decentralized exchange on Solana: order books, pool
// states and swaps, from accounts and transactions as a node tells them.
//
//	accounts of one slot ─┬▶ Book.Decode ─▶ Depth: ticks and atoms
//	                      └▶ Pool.Decode ─▶ PoolState
//	signatures, newest first ─▶ Backfill ─▶ transactions
//	transaction ─▶ VaultPair.Decode ─▶ Trace ─▶ Windows: 24 h and 7 d
//
// A [Service] does all of it every cycle for each pair, in two loops: accounts of
// one slot ─▶ engine's book and state; history ─▶ store ─▶ engine's trades.
//
// Books of Manifest, of Serum v3 (and OpenBook v1, its fork) and of OpenBook v2
// stand behind the one interface [Book]; pools of Raydium's CPMM program and any
// two vaults behind [Pool]. Mints and token accounts are internal/solana/token's.
//
// Swaps of any program's pool are what moves its two vaults, one in and one out.
// [Backfill] reads the pool's finalized transactions as one gapless run that grows
// at both ends; [Windows] counts its swaps, and knows what is proven.
//
// Invariants:
//  1. Decoders are pure: bytes and the chain's own clock in, values out.
//  2. A node may be wrong or lie. The owner, the kind, the mints and what a
//     market tells of decimals are held against the listing; every index is in
//     range, every walk is bounded by the account's size, and a book that is out
//     of order is refused as a whole. What fails is an error, never a guess.
//  3. Prices and sizes are exact integers. A bid's price is rounded down to the
//     tick and an ask's up, so that the mirror never shows a better price than
//     the chain has.
//  4. What a stranger can place for next to nothing, such as a price below the
//     tick, cannot stop a mirror: orders that the instrument cannot express are
//     left out and counted.
//  5. A swap is what one call did to the vaults, and the movements of a transaction
//     add up to the balances: what one call takes out and another puts in makes no
//     price. It is counted once for ever, by its signature and call, however often
//     it is told. A window that is not proven shows nothing but why.
//  6. What is published of accounts is told by more than half of the nodes that
//     can be right: whose clock is ours, and whose slot can have been reached. A
//     node that alone can be right is believed.
//  7. An older slot never replaces a newer one, and no node moves the slot further
//     than a majority has come.
//  8. What is in the history is listed by more than half of the nodes that answer,
//     and read as most tell it: one of three can neither hide a swap, nor invent
//     one, nor hold the others up.
//  9. The engine is told of a swap when its ordinal is on disk, so that after a
//     crash the same number means the same swap; without its store the service
//     rather leaves a swap out than tells it twice.
//
// Our choices: Manifest's global orders are shown as the program would match
// them, though their backing is in another account; OpenBook orders pegged to an
// oracle are counted and not shown; a book that the chain itself has crossed is
// shown crossed. Contradictions of a minority degrade and stop nothing. A trade's
// price is rounded up to the tick for a buyer and down for a seller, its size down
// to the lot; swaps without such a price, size or time have no ordinal and are
// counted in the windows alone. Trades are told from the time that the history
// was first read back to, 8 days by default, or as far as the nodes have had it for
// 8 polls: what turns up before it is counted and not told. While our clock and the chain's are too far apart the history
// waits, since a block's time that cannot be is taken for none.
//
// Concurrency: a Book and a Pool are immutable once opened and safe for
// concurrent use; a Depth belongs to its caller, a Backfill and Windows to one
// goroutine. A Service has two goroutines a pair while Run runs; State may be
// called at any time.
//
// Cost: a book is walked from its best order and only as deep as the listing
// asks, and decoding into a Depth that has been used before allocates nothing:
// BenchmarkDecode reads the largest account of each layout in 10 to 160 µs. Past
// 1024 orders that have expired or are empty Manifest's live ones are looked for in
// the order of memory: an account of 10 MiB of nothing alive takes 0.6 ms. Only one
// in which more than 1024 live orders stand behind 1024 dead ones, or more than
// some thousand at a few prices, is walked for up to some milliseconds.
//
// Limits: [MaxLevels], [MaxBookAccount], [MaxPending], [MaxWindowSwaps]; a
// service's: [MaxPairs], [MaxShownLevels], [MaxObserved], [MaxSnapshots],
// [MaxTraders], [MaxAttempts], [MaxSignatures], Options.MaxUnnumbered. Of two nodes that list different
// transactions neither is right: the history waits for them up to 8 cycles at a
// time, then leaves what is contested out, and its windows in doubt; where they
// differ about more than 16 of a page it waits until they agree. A node alone is
// believed. Where nodes order the transactions of one slot differently, and no
// order prevails, the first node's counts. An account of 10 MiB needs an rpc
// client that takes answers of 14. Of swaps with an ordinal some 300 bytes each
// are kept for good, of other transactions those of a week, once the past has been
// read, or more of it than Options.MaxUnnumbered.
package mirror
