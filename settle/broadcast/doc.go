// Package broadcast sends signed transactions until their end: the same bytes again and
// again, until a finalized block has them or none ever can.
//
// After [Failed] and [Expired] the desk may sign another transaction for the same claim.
// If the end is reported too early, both transactions land and the desk pays twice. If
// it is reported too late, a client waits. When in doubt, the tracker waits.
//
// # Invariants
//
//  1. Only bytes of a store.Transaction are sent, unchanged.
//  2. [Expired] is reported only if at least Options.Quorum nodes agree, each by itself: it
//     has said that a block above the transaction's last valid height is finalized; then, as
//     of that slot or later and with its whole history searched, it did not know the
//     signature; it lists for the claim's reference no transaction that has the message; and
//     after each of these answers it still had every block in which the transaction can be.
//     All that answer must agree, except those without such a history, which have no vote,
//     and except that a listed transaction which enough nodes do not list, and which no node
//     returns, counts for nothing. If the desk pays the fee, only its own signature is
//     looked for in that list.
//  3. [Failed] is reported only if as many nodes, and all that answer, have the
//     transaction failed in a finalized block; [Finalized] only if as many have it in the
//     same finalized block and not failed. A node that may have pruned it says neither yes
//     nor no; one that fails or is silent is no vote.
//  4. The heights of a single node decide nothing unless all nodes are asked.
//  5. Each transaction has one end, which is reported until the callback has taken it.
//     Tracking a transaction again, before or after its end, does no harm.
//  6. Every transaction ends once enough nodes answer as nodes should, except at the
//     limits below, which wait for a person.
//
// # Why the nodes must agree
//
// A node that lags reports an old height and does not know new transactions: invariant 2
// compares its own two answers. A node that was begun from a snapshot a moment ago knows no
// older transaction: the height of its first block shows that, however young the
// transaction is. A node that lies about its height, or has lost part of its history, is
// outvoted: by default a majority of the configured nodes must agree. One node that has the
// transaction, truly or not, delays an expiry nevertheless, because the desk pays twice for
// an expiry that is wrong; State.Problem shows it. With one node, its
// answer decides; with two, both must answer. The search by reference finds what no
// signature does: a taker who pays the fee can sign the desk's message again with another
// signature, under which the transaction lands.
//
// Sends and polls ask another node each time, so that no node withholds a transaction or
// reports it as confirmed for ever; past its last block all are asked in any case.
//
// # How it works
//
//	Track ─▶ fresh ─▶ senders ─▶ again after ResendEvery, until confirmed
//	  │                                │
//	  └──▶ polls, in batches of 256 every PollEvery ──▶ finalized, one node ▶ reporters ─▶ ended
//	            │ finalized, failed, or unknown and past its height   ▲
//	            └──────────▶ examination: every node ─────────────────┘
//
// A transaction that no node has seen is polled every PollEvery, and every ResendEvery
// once it is five seconds old. A confirmed one is polled when its slot is finalized, or
// after five seconds.
//
// A [Missing] transaction is only examined: at its height or, if that is unknown, every
// ResendEvery from the start. Each of these examinations bounds the height by the nodes'
// newest blocks. It is found by its message as soon as that is final.
//
// # Concurrency
//
// All methods may be called from any goroutine; only Run blocks. One lock, which is
// never held during a call of a node or of the callback.
//
// # Cost
//
// Four queues by time, slot and height: a change costs the logarithm of their length, a
// tick costs nothing for what is not due. A transaction costs some five polls and one
// send on a healthy chain; with several nodes, one examination before its end, of up to
// 256 transactions at once. BenchmarkTracked has the CPU time. A tracker takes 1.5 MB,
// and about 2 kB for each transaction. Without transactions it calls no node.
//
// # Limits
//
// MaxTracked, MaxHistory, MaxSending, MaxReporting. A transaction expires only if enough
// nodes have all blocks since. A node that kept old blocks, and was begun again from a newer
// snapshot, has a gap that it does not report. A transaction whose fee the
// taker pays, or whose bytes are lost, does not expire by itself if its reference is named
// more often than MaxHistory. [Tracker.Unresolved] lists those that wait, and
// [Tracker.GiveUp] forgets one after an operator's decision.
package broadcast
