// Package settle turns claims into settlements on the chain: it makes what a
// client signs, gives the desk's signature, delivers what was paid for, and books
// how each transaction ended. The packages below it each hold one promise:
//
//	binding    ties a transaction to its claim
//	cosign     who may have the desk's signature, and who holds its key
//	store      what must be found again after a restart
//	broadcast  signed bytes until their end
//	proof      payments on the chain, proved to the desk
//	access     tokens for those who may submit
//
// # Invariants
//
//  1. No token of the desk leaves before its payment: an atomic transaction pays
//     in the same instant, a delivery is signed only for a claim that is paid.
//  2. The desk's key is used for what the engine has allowed durably, by the
//     message's hash, and for nothing else: the types of package cosign have no
//     other way.
//  3. What was signed is on disk before it is sent, and before anybody else has it.
//  4. Of one claim, one atomic message is ever signed. A delivery is signed only
//     once each one before it is known to have ended without delivering.
//  5. A transaction's end moves its claim once, and is told until it has.
//  6. A refused submission leaves no signature. One that was taken gives the same
//     answer for ever.
//  7. Whoever follows the engine never waits for the chain, the disk or the key.
//
// # The way of an atomic claim, and what a crash leaves
//
//	    step                              crash right after it
//	1   build kept                        the claim's package is the same ever after
//	2   taker's signature verified,       nothing has happened
//	    claim, height, simulation
//	3   CosignClaim durable               Start: cosigned, no bytes. A submission
//	                                      signs; without one the tracker waits until
//	                                      it can never land, and the claim is released
//	4   signed                            as 3: the signature was nobody's, and is the
//	                                      same when it is made again
//	5   signed bytes kept                 Start: cosigned, with bytes. They are sent
//	6   sent, again and again             as 5: the same bytes land once
//	7   end seen                          as 5: it is seen again
//	8   SettleClaim, ReleaseClaim durable nothing is left; told again, nothing changes
//
// Before 3 a claim ends by its deadline.
//
// # The way of a modular claim
//
//	    step                              crash right after it
//	1   build kept                        as above
//	2   paid on the chain                 the watch, or whoever verifies, finds it
//	3   ProvePayment durable              Start: paid. It is delivered
//	4   BeginDelivery durable             Start: delivering, no bytes. The tracker waits
//	                                      until it can never land: ExpireDelivery, then 3
//	5   signed                            as 4
//	6   signed bytes kept                 Start: delivering, with bytes. They are sent
//	7   sent, again and again             as 6
//	8   end seen                          as 6
//	9   SettleClaim, ExpireDelivery durable  settled; or 3
//
// A claim is paid again after ExpireDelivery. Before another delivery is made, each
// kept one of the claim that was not seen to end since the start is begun and
// tracked once more; and the chain is searched by the claim's reference for one
// that is in no store. So a journal or a store from an old backup costs time, not
// tokens. An atomic transaction whose promise the journal has lost is found by
// recall. What the chain has and the desk can no longer book becomes a stray. Money
// that is owed back is listed only after an audit: a delivery that it has bought
// after all is searched for in the same way.
//
// # Who resumes
//
//	Start, and the events after it ─▶ work: paid, delivering, cosigned ─▶ workers
//	                               └▶ owed: refunds that are due; work: their audits
//	worker: paid ─▶ deliver;  delivering, cosigned ─▶ tracker (Track, or Await)
//	tracker ─▶ ended ─▶ desk ─▶ events ─▶ work
//
// Nothing of this is kept on disk but what package store has: the tables are made
// of the engine's claims at each start.
//
// # Concurrency
//
// A claim has one lock of a striped table: its package, its submissions and the
// worker that takes it up wait for each other. A job is one worker's at a time.
// The table of jobs has a mutex that is never held during a call. Every method but
// New and Start may be called from any goroutine while Run runs.
//
// # Cost
//
// A package costs one derivation of accounts and one commit. A submission asks a
// node once, to simulate, the desk once and the disk once. A delivery asks a node
// twice before it is signed: for the claim's reference, and to simulate.
// Benchmarks tell the times.
//
// # Limits
//
// MaxDeliverers, MaxDeliveryAttempts, MaxTreasury, MinLife, stripes, maxLooked, and
// those of the packages below. The jobs and the refunds in memory are as many as
// the engine's claims and refunds: rfq.MaxClaims, rfq.MaxRefunds.
//
// The check of the desk's rules and the chain's last word lie apart: a price that
// leaves the corridor between the promise and the block does not stop the
// transaction. A stranger who names a claim's reference often enough hides an old
// delivery from the search, which is there for backups. A signer that is away for
// longer than a blockhash lives costs each paid claim one lapse, and the wait for
// it.
package settle
