// Package settle settles the desk's claims on Solana: it builds what a client signs,
// countersigns it, delivers the tokens that were paid for, and records in the desk
// how each transaction ended. Each package below it has one task:
//
//	binding    ties a transaction to its claim
//	cosign     what may be signed with the desk's key, and who holds the key
//	store      what must survive a restart
//	broadcast  sends signed transactions until their end
//	proof      proves payments on the chain to the desk
//	access     tokens of those who may submit
//
// The types of this package, from the bottom: chainState (blockhash, mints) and
// builder make unsigned transactions; guard checks them; deskKey signs and stores;
// submissions, deliveries and refunder are the three paths to a signature; resumer and
// recovery continue what a crash has left; outcomes records how transactions ended;
// payments proves payments and watches for them; refundSearches and refunds decide which
// refunds are listed; operations are an operator's lists and decisions; jobs, workers
// and tables drive it all.
//
// # Invariants
//
//  1. No token of the desk leaves before its payment: an atomic transaction pays
//     in the same instant, and a delivery is signed only for a claim that is paid.
//  2. The desk's key signs only what the engine has durably permitted, by the
//     message's hash: the types of package cosign make nothing else possible.
//  3. A signed transaction is on disk before it is sent or handed out.
//  4. At most one atomic message is ever signed for a claim. A delivery is signed
//     only after each earlier one is known to have ended without delivering.
//  5. A transaction's end changes its claim once, and is reported until it has.
//  6. A refused submission leaves no signature. An accepted one gives the same
//     answer forever.
//  7. The engine's consumer never waits for the chain, the disk or the key.
//
// # An atomic claim, and what a crash leaves
//
//	    step                              a crash right after it
//	1   build stored                      the claim keeps its build
//	2   taker's signature, claim, block   nothing has happened
//	    height and simulation checked
//	3   CosignClaim durable               Start finds it cosigned without bytes. A
//	                                      submission signs; without one the tracker
//	                                      waits until the transaction can no longer
//	                                      land, and the claim is released
//	4   signed                            as 3: nobody has the signature, and signing
//	                                      again gives the same one
//	5   signed bytes stored               Start finds the bytes and sends them
//	6   sent, repeatedly                  as 5: the same bytes land once
//	7   end seen                          as 5: it is seen again
//	8   SettleClaim, ReleaseClaim durable nothing; recording it again changes nothing
//
// Before step 3 a claim ends at its deadline.
//
// # A modular claim
//
//	    step                              a crash right after it
//	1   build stored                      as above
//	2   paid on the chain                 the watch, or a client's proof, finds it
//	3   ProvePayment durable              Start finds it paid, and delivers
//	4   BeginDelivery durable             Start finds it delivering without bytes. The
//	                                      tracker waits until they can no longer land:
//	                                      ExpireDelivery, then 3
//	5   signed                            as 4
//	6   signed bytes stored               Start finds the bytes and sends them
//	7   sent, repeatedly                  as 6
//	8   end seen                          as 6
//	9   SettleClaim, ExpireDelivery durable  settled; or 3
//
// # A refund
//
//	    step                              a crash right after it
//	1   order stored                      the payment is due, and Start finds the order
//	2   payer, store, chain and           nothing has happened
//	    simulation checked
//	3   unsigned transaction stored       Start finds it: step 4, or, if it can hardly land
//	                                      any more, the tracker waits for that: 9
//	4   BeginRefund durable, for each     as 3: permission is asked for again. If the
//	    of its payments                   desk refuses one, nothing is signed
//	5   signed                            as 3: signing again gives the same signature
//	6   signed bytes stored               Start finds the bytes and sends them
//	7   sent, repeatedly                  as 6: the same bytes land once
//	8   end seen                          as 6: it is seen again
//	9   RefundPayment or ExpireRefund     the end is seen again, and recording it again
//	    durable, for each payment         changes nothing
//	10  end stored, order forgotten       nothing
//
// The refund goes to the wallet that owned what was paid, by the desk's record. Before
// step 3 the store is asked for another refund of the payment, and the chain is searched
// by the payment's reference, so an old backup costs time, not money. Searches believe
// no single node: see package search. A payment whose
// refund is under way by the journal, and whose transaction the store lacks, is looked for
// by the tracker. The lock of deliveries stops refunds before step 4.
//
// # What an old backup leaves
//
// After ExpireDelivery the claim is in state paid again. Before the next delivery is
// made, each stored delivery whose end was not seen since the start is begun and
// tracked again, and the chain is searched by the claim's reference for a delivery
// that the store lacks. So an old backup of the journal or the store costs time, not
// tokens. An atomic transaction whose permission the journal has lost is found by
// recovery. A settlement on the chain that the desk can no longer record becomes an
// unmatched payment. A refund is listed only after a search for a delivery
// in the same way.
//
// Before BeginDelivery and CosignClaim the engine's guard compares the price with that of
// the claim, and looks at the lock of deliveries and at the balance. If it refuses, nothing
// is signed: a countersignature is refused, a paid claim waits, is listed with the reason,
// and goes on by itself; if the price has moved against the desk, the claim is abandoned
// and its payment is due for refund. A delivery that is signed already is never abandoned:
// its end is awaited first.
//
// # What continues after a start
//
//	Start, then the engine's records ─▶ jobs: paid, delivering, cosigned, searches ─▶ workers
//	                                 └▶ refunds
//	worker: paid ─▶ deliver;  delivering, cosigned ─▶ tracker (Track, or Await)
//	tracker ─▶ outcomes ─▶ desk ─▶ records ─▶ jobs
//
// Only package store keeps data on disk. Each start makes the tables in memory from
// the engine's claims.
//
// # Concurrency
//
// The work on a claim holds one lock of a striped table: making its build, its
// submissions, and the worker that resumes it. A job belongs to at most one worker at
// a time. The table of jobs has a mutex that is never held during a call. Every method
// but New and Start may be called from any goroutine while Run runs.
//
// # Cost
//
// A build costs one derivation of accounts and one commit. A submission costs one
// simulation by a node, one request of the desk and one sync. A delivery costs one
// call of every node before it is signed, the search, and the simulation by one. The benchmarks
// have the times.
//
// # Limits
//
// MaxDeliverers, MaxDeliveryAttempts, MaxTreasury, MinLife, stripes, and
// those of the packages below. Jobs and refunds in memory are at most the engine's
// claims and refunds: rfq.MaxClaims, rfq.MaxRefunds.
//
// Time passes between the desk's rules and the block: a price that moves, or a lock that
// comes, after the permission does not stop the transaction. A stranger who names a claim's
// reference often enough hides an old delivery from the search; the search matters only
// after the restore of a backup. If the signer is down for longer than a blockhash's
// life, each paid claim has one delivery that expires, and waits for that.
package settle
