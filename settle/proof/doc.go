// Package proof proves payments: it finds out what a finalized transaction paid
// us, for which claim, and has the desk book it. A client asks by a signature
// ([Prover.Verify]); the treasury watch ([Prover.Run]) asks for what nobody
// reports.
//
//	            known to the desk ──────────────────────────┐
//	signature ─▶ one of our own ────▶ the claim's state ────┤
//	            else: every node, at finalized              ├─▶ judged against
//	                not found ──────▶ pending               │   the request
//	                failed ─────────▶ refused               │
//	                facts ─▶ claim ─▶ decision ─▶ the desk ─┘
//	                            │         └─────▶ stray, refused
//	                            └───────────────▶ stray, refused
//
// What a final transaction brought us, and where it goes:
//
//	the claim's amount or more, by its wallet, on its rail    the desk: applied, or
//	                                                          due for refund with why
//	less than the claim's amount                              the desk: refund
//	another rail than the claim's                             the desk: refund
//	by another wallet; older than the claim; to another       stray, with the reason
//	wallet of ours; no claim named, two, or an unknown one
//	for an unknown claim that we have delivered               stray, not to be sent back
//	tokens of a mint that is no rail's, for a known claim     stray, without amount
//	tokens of a mint that is no rail's, else                  nothing
//	beside a payment that was booked, on whatever rail        stray, with the amount
//	by our own signature, for a claim that has ended          stray, without amount
//	otherwise or is not known: an atomic settlement
//	by our own signature, else                                nothing
//	less than Rail.Dust, and not a whole payment              counted
//
// # Invariants
//
//  1. A signature pays one claim at most, and only the one that its own bytes name:
//     by a memo that is the claim's text and nothing else, or by its reference.
//  2. Nothing is booked that is not finalized, that its signers have not signed, or
//     that we have signed ourselves.
//  3. What is told of a signature is a function of the chain and of the desk's
//     record, never of who asked first: a request decides neither whether money is
//     booked nor for whom. Once booked, a signature is answered from the record.
//  4. Whatever came is booked by the desk or kept as a stray before Verify says
//     that it is refused, and before the watch passes it.
//  5. A node that is down, behind, or wrong makes an error or "pending", never a
//     refusal.
//  6. No node is believed alone while another one answers: all that answer must
//     have the transaction as final and tell the same of it. One that does not have
//     it makes "pending", a difference [ErrAnswer].
//
// # Concurrency
//
// Verify may be called by any number of goroutines; those that ask for the same
// signature with the same key share one look: one read of the chain, one command.
// Run follows each account by a goroutine of its own, and reads at most
// Options.Readers transactions at once for each.
//
// # Cost
//
// A known signature costs two reads of the desk's store. An unknown one costs one
// getTransaction of each node, all at the same time, some ten microseconds of
// looking at it, a check of each signature, and one command where it is booked;
// benchmarks tell. The watch costs one call an account a round, two while something
// is new.
//
// # Limits
//
// Options.MaxReading, MaxWallets, MaxReaders, MaxAhead, MaxPages, MaxSearched. Where
// one node alone answers it is believed about balances: it cannot forge a wallet's
// signature, but it could tell of money that did not come. So could nodes that lie
// together. One that answers and hides a payment keeps it pending. A stranger can
// fill the list of strays for the price of transactions and dust; set Rail.Dust to
// make it his money. While the list, or the desk's of refunds, is full, the watch
// waits at what it cannot put there and goes on with MaxAhead others.
package proof
