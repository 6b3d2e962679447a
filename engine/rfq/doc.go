// Package rfq is the desk: tickets, tranches, quotes, claims and payments as one
// pure state machine. Requests go in as bytes of the journal, records come out
// as events; see [Machine], [Record] and [ReadModel].
//
// # Invariants
//
//  1. A tranche: Capacity = available + Reserved + Filled. Reserved is the sum
//     of its live claims (reserved, paid, delivering, cosigned), Filled that of
//     the settled ones.
//  2. A pair: Inventory = free + Reserved + Sold in base atoms, or less after it
//     was lowered; then nothing is free. Reserved and Sold as above.
//  3. What a claim holds it gives back or sells exactly once: settled, released
//     and refund_due are for ever; expired is left by a late payment alone.
//  4. A signature is one payment for one claim for as long as the claim is
//     remembered, and no claim without a payment pushes one with a payment out.
//     Every atom that arrived is applied, due for refund or refunded.
//  5. Nothing is sold below reference × (1 - discount), and base × price never
//     exceeds the fill: the price is rounded up, the base down, the payment up.
//  6. Every request ends with one Outcome; before it stand the records of all
//     that it changed, as they are then. A refused request changes nothing.
//  7. The records and the snapshot are a function of the requests and their
//     stamps, and of the books' middles at those moments.
//
// # Tickets
//
//	             SetTranche, claim,     WithdrawTicket   ExpiresAt reached   TicketRetention after the last
//	             expiry, release                                             change, nothing reserved
//	open         open or exhausted¹     withdrawn        expired             -
//	exhausted    open or exhausted¹     withdrawn        expired             -
//	withdrawn    withdrawn²             refused          withdrawn           Removed
//	expired      expired²               refused          expired             Removed
//
// ¹ open while a tranche has room for the smallest fill. ² SetTranche,
// AmendTicket, quotes and claims are refused with TicketWithdrawn or
// TicketExpired; what is reserved is honoured, and given back to the tranche
// where it lapses. AmendTicket changes an open or exhausted ticket without moving
// it.
//
// # Tranches
//
//	             claim taken or     settled            expired, released,   SetTranche
//	             honoured late                         given up
//	available    - fill                                + fill               capacity - reserved - filled
//	reserved     + fill             - fill             - fill
//	filled                          + fill
//
// # Quotes
//
//	             RequestQuote       TakeClaim names it  ValidUntil reached
//	none         live               QuoteExpired        -
//	live         -                  used: Removed          Removed
//
// A quote is a firm price, good until just before ValidUntil, for one claim; it
// reserves nothing. A claim that names a live quote gets its terms: an amended
// ticket, another anchor or fewer rails do not touch them; a withdrawn ticket, a
// lock, lack of capacity or of inventory do refuse the claim, and the quote
// stays. A ticket, tranche, fill or rail that is not the quote's is
// QuoteMismatch.
//
// # Claims
//
//	Modular      ProvePayment       BeginDelivery  ExpireDelivery  SettleClaim  AbandonDelivery  Deadline
//	reserved     paid³              refused        refused        refused      refused          expired
//	paid         paid⁴              delivering     refused        refused      refund_due⁹      paid
//	delivering   delivering⁴        again⁶         paid⁸          settled      refused          delivering
//	settled      settled⁴           refused        refused        again⁶       refused          settled
//	expired      paid, refund_due   refused        refused        refused      refused          expired
//	             or expired³ ⁵
//	refund_due   refund_due⁴        refused        refused        refused      again⁹           refund_due
//
//	Atomic       ProvePayment       CosignClaim    ReleaseClaim   SettleClaim  Deadline
//	reserved     reserved⁴          cosigned⁷      refused        refused      expired
//	cosigned     cosigned⁴          again⁶         released       settled      cosigned
//	settled      settled⁴           refused        refused        again⁶       settled
//	released     released⁴          refused        again⁶         refused      released
//	expired      expired⁴           refused        refused        refused      expired
//
// What is not there is refused, the other way's requests too. Refused is
// ClaimState, with the state's number as limit. ³ Short, or over another rail: it
// stays as it is, and the payment is due for refund; so dust bars nobody's real
// payment. ⁴ The payment is due for refund. ⁵ The amount and rail are right: paid
// if at most LateWindow after Deadline, and a new claim of that size could be
// had: the ticket has not ended, no lock, capacity and inventory are there; and
// the last look⁷ passes the prices. Contract D asks for capacity alone; the rest
// is our choice: a late payment takes what nobody reserves, so a lock and an
// ended ticket stop it, and without a look at the prices it would be a free
// option on them. Else refund_due. ⁶ With the same proof (ReleaseClaim has none):
// done, nothing changes, the claim's record is written as it is, with its old
// ChangedAt. With another proof: refused. ⁷ CosignClaim is the last look: Locked,
// the anchor's PriceUnavailable or PriceStale, PriceCorridor where the reference
// of the terms has left the corridor, the rail's PriceUnavailable or PriceStale,
// PriceCorridor where the payment of the terms is below what their fill costs at
// the rail's price of now, less the pair's corridor, and Inventory where it was
// lowered below what is promised, refuse it. ⁸ With the proof of the delivery
// that is out; with another one: refused. ⁹ For what can never be delivered: the
// payment that was applied is due for refund, what the claim holds is given back.
// DeskFull where MaxRefunds are due. Again: as in ⁶; refused where it is
// refund_due for another reason.
//
// # Payments
//
//	             ProvePayment of the signature   ProvePayment, another claim  RefundPayment     AbandonDelivery
//	none         applied, or refund_due + why    -                            UnknownPayment    -
//	applied      again                           PaymentUsed                  PaymentUsed       refund_due
//	refund_due   again                           PaymentUsed                  refunded          refund_due
//	refunded     again                           PaymentUsed                  again with the    refunded
//	                                                                          same proof, else
//	                                                                          PaymentUsed
//
// Again: done, nothing changes, the payment's record is written as it is. Why is
// PaymentMismatch (short, or over another rail), LatePayment (the claim expired
// and cannot be served), ClaimState (surplus: the claim is paid for, or is
// settled the atomic way), or Undeliverable (it paid a claim that was given up). A payment above the price is applied whole; what is
// above it is seen in Amount. A payment for a claim that is not known is refused
// with UnknownClaim and leaves no trace here.
//
// # Refusals
//
// What a client can do nothing about comes after what is wrong with the request.
// Outcome.Limit:
//
//	CapacityExhausted  what the tranche has available, USD
//	Inventory          free atoms; of CosignClaim the inventory; 2^63-1 at most
//	PriceCorridor      the edge of the corridor that was passed; of a payment, the
//	                   least that is taken, atoms
//	PriceStale         the age allowed, ns
//	InvalidQty         the least or the most that is allowed
//	WalletClaims, DeskFull  the limit
//	ClaimState         the claim's state
//
// A participant of FIX whom the engine does not know, or has killed, gets no quote
// and no claim: UnknownParticipant, Killed. What it has claimed already goes on.
//
// InvalidCommand is a request that cannot be read, has no token, a token that is
// the id of a live quote or a known claim, or a field out of its range.
//
// # Our choice
//
// Where the contract is silent: the service (operator 0) may command anything,
// an operator named must be known; a pair's asset and decimals change only while
// it has no ticket, inventory or sale; amending a ticket replaces all that can
// be amended; what ends at T has ended in a command of time T; a wallet's limit
// counts claims that are reserved, not paid ones; an expired claim is remembered
// until the room is needed, so that its money has a home for long; late payments are judged by the time of their proof; a policy that changes leaves
// quotes and claims as they were made.
//
// # Cost
//
// A request costs a few map lookups and a few heap moves; only SetPair (all
// tickets) and Restore walk more. Expire costs what is due. A quote and a claim
// allocate nothing but the growth of tables and maps, which never shrink. Limits
// are named in entities.go. A refund that is due is never forgotten, so where
// MaxRefunds of them have piled up a payment that would be due too is refused
// with DeskFull: the operator must refund. What pays its claim goes on. Nothing
// here is for concurrent use, but a View may be read by all.
package rfq
