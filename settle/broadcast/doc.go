// Package broadcast gives signed transactions to the chain until their end: the
// same bytes again and again, until a finalized block has them, or none ever can.
//
// What is at stake: after [Failed] and [Expired] the desk may sign another
// transaction for the same claim. Said too early, both land, and the desk pays
// twice. Said too late, somebody waits. So in doubt it waits.
//
// Invariants:
//  1. Only bytes that a store.Transaction has are sent. Nothing is ever changed in them.
//  2. [Expired] is said only when enough nodes (Options.Quorum), and all that
//     answer, each for itself: told that a block above the last one that the
//     transaction can be in is finalized; then, as of that slot or later, with
//     their whole history searched, did not know its signature; and have no
//     transaction with its message among those that name the claim's reference.
//     Where the desk pays the fee its signature is looked for there, and no other.
//  3. [Failed] is said only when as many, and all that answer, have it failed in
//     a finalized block. [Finalized] is said only when all that answer, one at
//     least, have it in the same finalized block and not failed: the claim is
//     settled by it. One that may have forgotten it does not count.
//  4. What one node tells of heights moves only the moment at which all are asked.
//  5. Each transaction has one end, which is told until that was taken. Whoever
//     gives it to the tracker again, before or after, does no harm.
//  6. Whatever the nodes do, every transaction ends once enough of them answer as
//     nodes should; but for the limits below, which wait for a person.
//
// # Why the nodes must agree
//
// A node that lags tells an old height and does not know what is new: invariant 2
// compares its own two answers. One that lies about its height, or has lost part
// of its history, is outvoted: by default a majority of those configured must
// agree. With one node configured its word is all there is; with two, both must
// answer. The search by reference finds what no signature does: where the taker
// pays the fee, he can sign the desk's message again with another signature, and
// the transaction lands under that name.
//
// # How it works
//
//	Track ─▶ fresh ─▶ senders ─▶ again after ResendEvery, until confirmed
//	  │                                │
//	  └──▶ looks, in batches of 256 every PollEvery ──▶ finalized, one node ▶ tellers ─▶ ended
//	            │ finalized, failed, or unknown and past its height   ▲
//	            └──────────▶ examination: every node ─────────────────┘
//
// What is not seen yet is looked for every PollEvery, and every ResendEvery once
// five seconds old. What is confirmed rests until its slot is finalized, or five
// seconds have passed.
//
// A [Missing] transaction is not looked for but by examinations: at its height, or,
// where that is not known, every ResendEvery from the start, each of which bounds
// the height by what the nodes tell of their newest blocks. It is found by its
// message as soon as that is final.
//
// # Concurrency
//
// All methods may be called from any goroutine; none blocks but Run. One lock,
// never held during a call of a node or of ended.
//
// # Cost
//
// Four queues by time, slot and height: a change costs the logarithm of their
// length, a tick nothing for what is not due. Some five looks and one send a
// transaction where the chain is well; with several nodes configured, one
// examination before its end, of up to 256 at once. BenchmarkTracked tells the CPU
// time. A tracker holds 1.5 MB, and about 2 kB a transaction under way. With none
// under way it calls no node.
//
// # Limits
//
// MaxTracked, MaxHistory, MaxSending, MaxReporting. A transaction older than
// HistoryFor expires only where the nodes have all blocks since: they forget, and
// then know it as little as one that never landed. One whose fee the taker pays, or
// whose bytes are lost, and whose reference is named more often than MaxHistory does
// not expire by itself. [Tracker.Unresolved] lists who waits, and [Tracker.GiveUp]
// forgets one on a person's word.
package broadcast
