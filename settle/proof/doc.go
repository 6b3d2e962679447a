// Package proof proves payments: it determines which amount a finalized transaction paid us and
// for which claim, and records the payment in the desk. A client asks about a signature
// ([Prover.Verify]); the treasury watch ([Prover.Run]) finds payments that no client
// reports.
//
//	            known to the desk ──────────────────────────┐
//	signature ─▶ one of our own ────▶ the claim's state ────┤
//	            else: the nodes, at finalized               ├─▶ judged against
//	                not found ──────▶ pending               │   the request
//	                failed ─────────▶ refused               │
//	                facts ─▶ claim ─▶ decision ─▶ the desk ─┘
//	                            │         └─────▶ unmatched, refused
//	                            └───────────────▶ unmatched, refused
//
// The result for a finalized transaction, by the amount that we received:
//
//	the claim's amount or more, by its wallet, on its rail    the desk: applied, or
//	                                                          refund due, with a reason
//	less than the claim's amount                              the desk: refund due
//	another rail than the claim's                             the desk: refund due
//	by another wallet; older than the claim; to another       unmatched, with the reason
//	wallet of ours; no claim named, two, or an unknown one
//	for an unknown claim that we have delivered               unmatched, not to be sent back
//	tokens of a known mint that is no rail's, for a claim     unmatched, without amount
//	tokens of another mint                                    counted
//	beside a payment that was recorded, on whatever rail      unmatched, with the amount
//	by our own signature, for a claim that has ended          unmatched, without amount
//	otherwise or is unknown: an atomic settlement
//	by our own signature, else                                nothing
//	less than Rail.Dust, and not a whole payment              counted
//
// The block time that the nodes report goes to the desk with each payment: it decides
// whether the payment came in time. A confirmed payment of an unproven claim is reported
// to the desk before it is final (SeePayment), so that the claim gets its full time.
//
// # Invariants
//
//  1. A signature pays at most one claim, and only the one that its own bytes name: by a
//     memo that is the claim's text and nothing else, or by the claim's reference.
//  2. Nothing is recorded that is not finalized, that its signers have not signed, or that
//     we have signed ourselves.
//  3. The result for a signature is a function of the chain and of the desk's record,
//     never of the order of requests: a request decides neither whether a payment is recorded
//     nor for which claim. A recorded signature is answered from the record.
//  4. Every amount that we received is recorded by the desk or stored as unmatched
//     before Verify refuses the transaction and before the watch moves past it;
//     dust is only counted.
//  5. A node that is down, lags, or is wrong causes an error or "pending", never a
//     refusal.
//  6. More than half of the configured nodes must have the transaction as final and
//     report the same content and the same block time. A node that fails, rate-limits
//     us, hides the transaction or is silent agrees with nothing. With too few the
//     result is "pending"; if all that answer know it and differ it is [ErrAnswer].
//
// # Concurrency
//
// Any number of goroutines may call Verify; those that ask about the same signature with
// the same key share one read of the chain and one command. Run follows each account in
// a goroutine of its own, and reads at most Options.Readers transactions of it at once.
//
// # Cost
//
// A known signature costs two reads of the desk's store. An unknown one costs one
// getTransaction of one node, and of each other node only if that one has it, some ten
// microseconds of examination, a check of each signature, and one command if it is
// recorded; the benchmarks have the times. So invented signatures exhaust no node's quota
// but one's, and a different one's each time. The watch costs one call per account and
// round, two while something is new.
//
// # Limits
//
// Options.MaxReading, MaxWallets, MaxReaders, MaxAhead, MaxPages, MaxSearched. If only
// one node is configured, its balances are trusted: it cannot forge a wallet's
// signature, but it could report a payment that did not come. So could a majority that
// lies together. A minority can neither invent a payment nor hide one for long: each
// call asks another node first. At the limit of the list of unmatched payments the least
// of them makes room and is counted, so a stranger who fills it, at the price of
// transactions and amounts of Rail.Dust, hides only payments smaller than the stranger's
// own. While the desk's list of refunds is full, the watch retries what it cannot record and
// continues with at most MaxAhead others.
package proof
