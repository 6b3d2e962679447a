// Package rfq is the RFQ desk: tickets, tranches, quotes, claims and payments as one pure
// state machine. Requests come in as bytes of the journal, records go out as events; see
// [Machine], [Record] and [ReadModel].
//
// # Invariants
//
// Everything here holds under RulesGuarded. Where 0.1.0 had another rule, which its journals
// still replay, it says so.
//
//  1. A tranche: Capacity = available + Reserved + Filled. Reserved is the sum of its live
//     claims (reserved, paid, delivering, cosigned), Filled that of its settled claims.
//  2. A pair: Inventory = free + Reserved + Sold in base atoms, and free is at most OnChain -
//     Reserved if the balance is known. Inventory may be lowered below Reserved + Sold; then
//     nothing is free. Reserved and Sold as above.
//  3. A claim returns or sells what it holds exactly once: settled and released are final;
//     only a payment in time can revive a claim that has expired.
//  4. A signature is one payment for one claim for as long as the claim is remembered. A
//     claim without payments never evicts one with payments from memory. Every atom that
//     arrived is applied, due for refund, being refunded, or refunded.
//  5. Nothing is sold below reference × (1 - discount), and base × price never exceeds the
//     fill: the price is rounded up, the base down, the payment up.
//     At the moment when a delivery or countersignature is permitted, the price has not moved
//     against the desk by more than FirmBps since the terms were made, no lock stops it, and
//     the desk holds the atoms.
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
//	             revived                                   abandoned
//	available    - fill                                    + fill               capacity - reserved - filled
//	reserved     + fill                 - fill             - fill
//	filled                              + fill
//
// # Quotes
//
//	             RequestQuote       TakeClaim names it  ValidUntil reached, or ended
//	none         live               QuoteExpired        -
//	live         -                  used: Removed       Removed
//
// A quote is a firm price for one claim, valid until just before ValidUntil. It reserves
// nothing. A claim that names a live quote gets its terms, even if the ticket has changed
// since. A withdrawn ticket, a lock, or a lack of capacity or inventory refuses the claim, and
// the quote stays. So does a price that is gone, stale, or has moved against the desk by more
// than FirmBps, with PriceUnavailable, PriceStale or QuoteExpired, because the delivery would be
// refused. If the claim's ticket, tranche, fill or rail are not those of the quote, it is
// refused with QuoteMismatch.
//
// SetAnchor and SetRailPrice end the quotes of a pair and rail if they move the price by more
// than its FirmBps, in either direction, or withdraw it. Other rules end all quotes. In 0.1.0
// no price affects a quote.
//
// # Prices
//
// The market price of a pair is its anchor, or the mid price of its book, which must lie within
// the corridor around the anchor. The price of USDC is 1, that of SOL is set. A price that was
// withdrawn or never set is PriceUnavailable, one older than MaxAge PriceStale; its age counts
// from PublishedAt, or, if that is unknown, from when it was set. A ticket may have a reference
// price of its own; the market price must be there all the same, because the terms record it.
//
// # Claims
//
//	Modular      ProvePayment       BeginDelivery  ExpireDelivery  SettleClaim  AbandonDelivery  Deadline + Grace
//	reserved     paid³              refused        refused         refused      refused          expired
//	paid         paid⁴              delivering⁷    refused         refused      refund_due⁹      paid
//	delivering   delivering⁴        repeated⁶      paid⁸           settled      refused          delivering
//	settled      settled⁴           refused        refused         repeated⁶    refused          settled
//	expired      paid, refund_due   refused        refused         refused      refused          expired
//	             or expired³ ⁵
//	refund_due   refund_due⁴ or     refused        refused         refused      repeated⁹        refund_due
//	             paid⁵
//	released     released⁴          refused        refused         refused      refused          released
//
//	Atomic       ProvePayment       CosignClaim    ReleaseClaim   SettleClaim  Deadline
//	reserved     reserved⁴          cosigned⁷      refused        refused      expired
//	cosigned     cosigned⁴          repeated⁶      released       settled      cosigned
//	settled      settled⁴           refused        refused        repeated⁶    settled
//	released     released⁴          refused        repeated⁶      refused      released
//	expired      expired⁴           refused        refused         refused      expired
//
//	Both         ReleaseUnbuilt     SeePayment
//	reserved     released           reserved¹⁰; atomic: refused
//	released     repeated⁶ ¹¹       refused
//	others       refused            refused
//
// Every other request is refused. A refusal has the reason ClaimState and the state's number
// as its limit.
//
// ³ A payment that is too small, or over another rail, or whose block is not before Deadline,
// is due for refund and leaves the claim as it is, so that nobody else's payment can block the
// real one. Grace is the time in which a payment before Deadline may become final. ⁴ The payment is due for refund.
//
// ⁵ A payment with the right amount and rail in a block before Deadline makes the claim paid,
// whenever it is proved, if the capacity and inventory are still there, even if the ticket has
// ended; else the claim is refund_due. It is refund_due also if the block is later, and then a
// payment in time can still revive it; nothing can if its delivery was abandoned. A block of
// unknown time counts as one of the time of the proof. In 0.1.0 there is no Grace, and a payment
// of an expired claim is judged by the time of its proof: until LateWindow after Deadline it
// makes the claim paid if a new claim of that size would be accepted and the prices are still
// within their corridor.
//
// ⁶ With the same proof (ReleaseClaim has none) the request is done and changes nothing; the
// claim's record is written unchanged. With another proof it is refused.
//
// ⁷ The guard, for BeginDelivery and CosignClaim. In this order: Locked, if deliveries are
// locked; PriceUnavailable or PriceStale, if there is no market price or none of the rail, also
// if a book contradicts its anchor; Inventory, if the balance on the chain is below Base;
// PriceCorridor, if market now ÷ market then × rail then ÷ rail now is above 1 + FirmBps,
// exactly, where then is when the terms were made. A move in the desk's favour never refuses.
// CosignClaim is also refused with Locked by every other lock, and with Inventory if that was
// lowered below what is reserved and sold. Terms that were made under the rules of 0.1.0 have
// no market price: the guard refuses them with PriceCorridor if their reference price has left
// the corridor, or if their payment is below what the fill costs at the rail's current price,
// less the pair's corridor. In 0.1.0 BeginDelivery is checked only for the lock of deliveries
// and the balance.
//
// ⁸ With the proof of the current delivery; refused with another. ⁹ For a claim that can never
// be delivered (Undeliverable), or whose price has moved too far (PriceCorridor): its payment
// is due for refund and what it holds is returned. PriceCorridor is refused unless the guard
// refuses with it now: with the guard's reason, or ClaimState if it passes. DeskFull if
// MaxRefunds are due; PaymentUsed while a refund of the surplus may still land. Repeated as
// in ⁶; refused if the claim is refund_due because of a late payment.
//
// ¹⁰ Deadline becomes ReservedAt + ClaimTTL if it was earlier, which it was for an unproven
// claim. ¹¹ Refused if a countersigned transaction was released.
//
// # Unproven claims
//
// Anyone can name a wallet. So a claim without proof of its wallet never counts against it: while
// it is reserved it counts against UnprovenPerClient of its client address (UnprovenLimit) and,
// with all others, against UnprovenShareBps of what claims with proof leave of the tranche, rounded down
// (UnprovenShare). Its Deadline is UnprovenTTL after ReservedAt, if that is less than ClaimTTL,
// until SeePayment. A proven claim counts against WalletClaims of its wallet, as all do in 0.1.0.
//
// # Payments
//
//	             ProvePayment             BeginRefund    ExpireRefund  RefundPayment  AbandonDelivery of
//	                                                                                 the claim it pays
//	none         applied, or refund_due¹  UnknownPayment UnknownPayment UnknownPayment -
//	applied      repeated                 PaymentUsed    PaymentUsed   PaymentUsed    refund_due
//	refund_due   repeated                 refunding      PaymentUsed   refunded       refund_due²
//	refunding    repeated                 repeated³      refund_due³   refunded³      PaymentUsed
//	refunded     repeated                 PaymentUsed    PaymentUsed   repeated³      refund_due²
//
// ProvePayment of a known signature for another claim is PaymentUsed. Repeated: the request is
// done and changes nothing; the payment's record is written unchanged.
//
// ¹ The reason of a refund is PaymentMismatch (too small, or over another rail), LatePayment
// (its block was too late, or the claim has expired and cannot be served), ClaimState (the
// claim is paid already, released or atomic), Surplus, or that of AbandonDelivery. A payment
// above the price pays the claim; if the surplus is more than the rail's Dust it is due for
// refund with the reason Surplus, and Applied is the price, Due the surplus. Less is kept.
// ² With a surplus that is due, the whole Amount; after a surplus was refunded, the rest.
// ³ With the same proof; with another PaymentUsed.
//
// A payment for an unknown claim is refused with UnknownClaim and not recorded here. In 0.1.0 a
// payment above the price is applied whole.
//
// # Refusals
//
// Errors in the request come before conditions that the client cannot change. Outcome.Limit:
//
//	CapacityExhausted  the available capacity of the tranche, USD
//	Inventory          free atoms; of CosignClaim the inventory; 2^63-1 at most
//	PriceCorridor      the bound of the corridor that was passed; of the guard, FirmBps, or
//	                   under the rules of 0.1.0 the smallest payment accepted, atoms
//	PriceStale         the age allowed, ns
//	InvalidQty         the smallest or largest value allowed
//	UnprovenLimit, UnprovenShare  the limit, USD
//	WalletClaims, DeskFull  the limit
//	ClaimState         the claim's state
//
// A FIX participant that the engine does not know, or has killed, gets no quote and no claim:
// UnknownParticipant, Killed. Its existing claims continue.
//
// InvalidCommand: the request cannot be decoded, has no token, has the id of a live quote or a
// known claim as token, or has a field out of its range. InvalidCombination: SetPolicy would
// return to older rules.
//
// # Our choices
//
// The service (operator 0) may send any request; an operator in a request must be known. The
// asset and decimals of a pair change only while it has no ticket, inventory or sale. Amending
// a ticket replaces everything that can be amended. Anything that ends at T has ended in a
// command of time T, even if Expire has not swept it yet. The limits of wallets and clients
// count reserved claims, not paid ones. An expired claim is remembered until its memory is
// needed, so that a payment still finds it. A change of policy affects existing claims only by
// its Grace, and existing quotes only if it changes the rules. The lock of deliveries stops no
// quotes, claims, payments and refunds.
//
// # Cost
//
// A request costs a few map lookups and a few heap operations. More cost only SetPair (all
// tickets), a price that moves beyond FirmBps (all quotes), a policy with another Grace or other
// rules (all claims, all quotes), and Restore. Expire costs as much as is due, and takes slices
// of it. A quote or claim allocates only for the
// growth of tables and maps, which never shrink. entities.go names the limits. A refund that is
// due is never forgotten: once MaxRefunds are due, a payment that would be another one is
// refused with DeskFull until the operator refunds some. A payment that pays its claim without
// a surplus is still accepted.
//
// Nothing here is safe for concurrent use, except that any number of goroutines may read a
// View.
package rfq
