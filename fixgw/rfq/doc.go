// Package rfq handles the messages of FIX sessions to the RFQ desk: quotes (R, S, AG, AI, Z,
// AJ), claims (D with OrdType D, 8), transaction packages (B) and payments (AE, AR). Requests
// go to the engine; the records of the desk come back as events, of which the Reporter makes reports.
//
//	Session.QuoteRequest ─▶ checks, QuoteReqID (package reports) ─▶ Entry.Engine
//	reports.Follower ─▶ Reporter.Apply ─▶ quotes and claims of sessions, their messages
//	                       └─▶ Packages ─▶ News        Payments ─▶ AR
//
// Package desk follows the same records and has the view and the history of the whole desk,
// which this package reads for each request (Entry.Desk). Its own store has only what its
// messages need: the reference, the decimals and the last report of each quote and claim of
// a session, committed with those messages.
//
// # Invariants
//
//  1. The report of a claim is made at the last event of the desk's record, from that
//     record and committed state only. So each durable event has its reports for claims
//     too, although the position may lie between two events of a record. Nothing is
//     reserved while the chain is unreachable, or for a participant without a wallet.
//  2. A reserved claim has its transaction package (B) in its session's message store, or is in the
//     queue of Packages. After a crash it is queued again if the store lacks the record
//     that it was sent, which is committed with the message. The same holds for a
//     report of a payment (AE) and the commit of its answer (AR).
//
// # Our choices
//
// A QuoteRequest is for one instrument and one step of the ladder in dollars (152), and is
// paid over the rail in Currency (15); SecurityID (48) names ticket and tranche as T7/T7-1;
// without it the gateway takes the first open offer with enough capacity. QuoteReqID and
// QuoteRespID are name spaces apart from ClOrdID and from each other, at most MaxQuoteReqID
// bytes. A quote belongs to its session; it counts towards MaxQuotes until the desk forgets
// it, even if the client has passed. The fields of a D (40=D) or an AJ must agree with the
// quote that it names. A claim made by an AJ is reported with QuoteRespID (693) in place of
// ClOrdID. A claim ends by its payment or its deadline: F and G are refused, and a mass
// cancel or a disconnect does not affect it. Prices are dollars for a whole unit, sizes
// whole units with the mint's decimals. A lock or the end of a ticket ends its quotes for
// good, even if the lock is lifted: Z, then AI. An AI that a crash has lost is not sent
// later, because the client knows the end of the quote from ValidUntilTime (62).
//
// A transaction package is a News of fixed lines with the transaction in RawData, sent by workers after
// the claim's first report. While the chain is unreachable they retry until a second before
// the claim's deadline; then the News has CHAIN_UNAVAILABLE. A report of a payment has to
// agree with the claim in symbol, side, size and price. Workers look for the payment during
// PaymentLimits.Timeout and then answer PENDING_TIMEOUT; the payment is still booked when it
// is final. Its AR and the 8s of the claim are independent of each other, and come in any
// order. A claim of another participant is refused as unknown.
//
// # Concurrency
//
// A request is handled under the session's lock. Only the reporter changes a claim or a
// quote, under the mutex of its Session, but a client's pass ends its quote there. Four
// goroutines make transaction packages, and four look for payments.
package rfq
