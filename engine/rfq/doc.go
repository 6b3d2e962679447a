// Package rfq is the RFQ desk: tickets, tranches, quotes, claims and payments as one pure
// state machine. Requests come in as bytes of the journal, records go out as events; see
// [Machine], [Record] and [ReadModel].
//
// # Invariants
//
//  1. A tranche: Capacity = available + Reserved + Filled. Reserved is the sum of its live
//     claims (reserved, paid, delivering, cosigned), Filled that of its settled claims.
//  2. A pair: Inventory = free + Reserved + Sold in base atoms. Inventory may be lowered
//     below Reserved + Sold; then nothing is free. Reserved and Sold as above.
//  3. A claim returns or sells what it holds exactly once: settled, released and refund_due
//     are final; only a late payment can revive an expired claim.
//  4. A signature is one payment for one claim for as long as the claim is remembered. A
//     claim without payments never evicts one with payments from memory. Every atom that
//     arrived is applied, due for refund, or refunded.
//  5. Nothing is sold below reference × (1 - discount), and base × price never exceeds the
//     fill: the price is rounded up, the base down, the payment up.
//  6. Every request ends with one Outcome, after the records of everything it changed. A
//     refused request changes nothing.
//  7. Records and snapshot are a function of the requests, their stamps, and the mid prices
//     of the books at those moments.
//
// # Tickets
//
//	             SetTranche, claim,     WithdrawTicket   ExpiresAt reached   TicketRetention after the
//	             expiry, release                                             last change, nothing reserved
//	open         open or exhausted¹     withdrawn        expired             -
//	exhausted    open or exhausted¹     withdrawn        expired             -
//	withdrawn    withdrawn²             refused          withdrawn           Removed
//	expired      expired²               refused          expired             Removed
//
// ¹ open while a tranche has capacity for the smallest fill. ² SetTranche, AmendTicket,
// quotes and claims are refused with TicketWithdrawn or TicketExpired. Claims on the ticket
// continue, and return their capacity to the tranche if they expire. AmendTicket changes an
// open or exhausted ticket without changing its state.
//
// # Tranches
//
//	             claim taken, or        settled            expired, released,   SetTranche
//	             paid late                                 abandoned
//	available    - fill                                    + fill               capacity - reserved - filled
//	reserved     + fill                 - fill             - fill
//	filled                              + fill
//
// # Quotes
//
//	             RequestQuote       TakeClaim names it  ValidUntil reached
//	none         live               QuoteExpired        -
//	live         -                  used: Removed       Removed
//
// A quote is a firm price for one claim, valid until just before ValidUntil. It reserves
// nothing. A claim that names a live quote gets its terms, even if the ticket, the anchor or
// the rails have changed since. A withdrawn ticket, a lock, or a lack of capacity or inventory
// refuses the claim, and the quote stays. If the claim's ticket, tranche, fill or rail are
// not those of the quote, it is refused with QuoteMismatch.
//
// # Claims
//
//	Modular      ProvePayment       BeginDelivery  ExpireDelivery  SettleClaim  AbandonDelivery  Deadline
//	reserved     paid³              refused        refused         refused      refused          expired
//	paid         paid⁴              delivering     refused         refused      refund_due⁹      paid
//	delivering   delivering⁴        repeated⁶      paid⁸           settled      refused          delivering
//	settled      settled⁴           refused        refused         repeated⁶    refused          settled
//	expired      paid, refund_due   refused        refused         refused      refused          expired
//	             or expired³ ⁵
//	refund_due   refund_due⁴        refused        refused         refused      repeated⁹        refund_due
//
//	Atomic       ProvePayment       CosignClaim    ReleaseClaim   SettleClaim  Deadline
//	reserved     reserved⁴          cosigned⁷      refused        refused      expired
//	cosigned     cosigned⁴          repeated⁶      released       settled      cosigned
//	settled      settled⁴           refused        refused        repeated⁶    settled
//	released     released⁴          refused        repeated⁶      refused      released
//	expired      expired⁴           refused        refused        refused      expired
//
// Every other request is refused. A refusal has the reason ClaimState and the state's number
// as its limit.
//
// ³ A payment that is too small, or over another rail, is due for refund and leaves the claim
// as it is, so that dust cannot block the real payment. ⁴ The payment is due for refund.
//
// ⁵ With the right amount and rail the claim becomes paid, if the payment is proved at most
// LateWindow after Deadline, a new claim of that size would be accepted (ticket, locks,
// capacity, inventory), and the final checks⁷ of the prices pass; else refund_due
// (docs/specification.md C.4). A late payment takes what nobody has reserved, so a lock and an
// ended ticket prevent it, and without a check of the prices it would be a free option on them.
//
// ⁶ With the same proof (ReleaseClaim has none) the request is done and changes nothing; the
// claim's record is written unchanged. With another proof it is refused.
//
// ⁷ CosignClaim makes the final checks before the desk signs. It is refused with Locked; with
// PriceUnavailable or PriceStale of the anchor or the rail; with PriceCorridor if the reference
// price of the terms has left the corridor, or if their payment is below what the fill costs at
// the rail's current price, less the pair's corridor; and with Inventory if that was lowered
// below what is reserved and sold.
//
// ⁸ With the proof of the current delivery; refused with another. ⁹ For a claim that can never
// be delivered: its payment is due for refund and what it holds is returned. DeskFull if
// MaxRefunds are due. Repeated as in ⁶; refused if the claim is refund_due for another reason.
//
// # Payments
//
//	             ProvePayment of the signature   ProvePayment, another claim  RefundPayment     AbandonDelivery
//	none         applied, or refund_due          -                            UnknownPayment    -
//	applied      repeated                        PaymentUsed                  PaymentUsed       refund_due
//	refund_due   repeated                        PaymentUsed                  refunded          refund_due
//	refunded     repeated                        PaymentUsed                  repeated with the refunded
//	                                                                          same proof, else
//	                                                                          PaymentUsed
//
// Repeated: the request is done and changes nothing; the payment's record is written unchanged.
// The reason of a refund is PaymentMismatch (too small, or over another rail), LatePayment (the
// claim expired and cannot be served), ClaimState (the claim is paid already, or atomic), or
// Undeliverable (its claim was abandoned). A payment above the price is applied whole; Amount
// shows the excess. A payment for an unknown claim is refused with UnknownClaim and not
// recorded here.
//
// # Refusals
//
// Errors in the request come before conditions that the client cannot change. Outcome.Limit:
//
//	CapacityExhausted  the available capacity of the tranche, USD
//	Inventory          free atoms; of CosignClaim the inventory; 2^63-1 at most
//	PriceCorridor      the bound of the corridor that was passed; of a payment, the
//	                   smallest one accepted, atoms
//	PriceStale         the age allowed, ns
//	InvalidQty         the smallest or largest value allowed
//	WalletClaims, DeskFull  the limit
//	ClaimState         the claim's state
//
// A FIX participant that the engine does not know, or has killed, gets no quote and no claim:
// UnknownParticipant, Killed. Its existing claims continue.
//
// InvalidCommand: the request cannot be decoded, has no token, has the id of a live quote or a
// known claim as token, or has a field out of its range.
//
// # Our choices
//
// The service (operator 0) may send any request; an operator in a request must be known. The
// asset and decimals of a pair change only while it has no ticket, inventory or sale. Amending
// a ticket replaces everything that can be amended. Anything that ends at T has ended in a
// command of time T. The limit of a wallet counts reserved claims, not paid ones. An expired claim is
// remembered until its memory is needed, so that a late payment still finds it. A late payment
// is judged by the time of its proof. A change of policy does not affect existing quotes and
// claims.
//
// # Cost
//
// A request costs a few map lookups and a few heap operations; only SetPair (all tickets) and
// Restore cost more. Expire costs as much as is due. A quote or claim allocates only for the
// growth of tables and maps, which never shrink. entities.go names the limits. A refund that is
// due is never forgotten: once MaxRefunds are due, a payment that would be another one is
// refused with DeskFull until the operator refunds some. A payment that pays its claim is still
// accepted.
//
// Nothing here is safe for concurrent use, except that any number of goroutines may read a
// View.
package rfq
