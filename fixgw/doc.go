// Package fixgw is the FIX 4.4 gateway: order entry, quotes, claims and payments, market
// data, and the reports of what the engine has done.
//
//	session ─▶ blotter: checks a request, knows its ClOrdID ─▶ Engine.Submit
//
//	engine's durable events ─▶ reporter ─▶ a session's batch ─▶ session.Deliver
//	                              └─ messages, order state, answers, position: one commit, soon after
//	feed's views ─▶ Books: one X for all subscribers ─▶ sessions
//	desk's records ─▶ reporter: quotes and claims of sessions (desk.go)
//	InstrumentSet ─▶ Statuses: one f for each subscriber ─▶ sessions
//
// It owns the (session, ClOrdID) index and the state of orders, quotes and claims as
// clients see it. Below it, package session has connections, logons, sequence numbers and
// sent messages, and package wire reads and writes messages. Each session has one blotter,
// its session.Handler: its requests by ClOrdID, its orders, quotes and claims.
//
// # Invariants
//
//  1. No report is sent before its command is durable: the reporter sees durable events
//     only.
//  2. Every durable command of a session has its reports in that session's message store,
//     sooner or later, whatever crashes: the store's position is committed with the
//     reports before it, and events after it are followed again at the next start
//     (Replay). A report made twice has the same ExecID (command's Seq, event's index,
//     epoch, M for the maker's side of a trade) and content; the second carries
//     PossResend.
//  3. A (session, ClOrdID) has one answer. A repetition, today or the next day, gets the
//     first answer again, with PossResend, and does not reach the engine, even when the
//     client repeats the request as soon as it has the answer. A repetition before the
//     answer gets nothing of its own: the answer is sent once. A request that the gateway
//     itself refused does not use up its ClOrdID.
//  4. Market data is conflated, reports are not.
//  5. The report of a claim is made at the last piece of the desk's record, from that
//     record and from what is committed, so invariant 2 holds for claims too, though the
//     position may lie between two pieces. Nothing is reserved while the chain is not
//     reached, or for a participant without a wallet.
//  6. A reserved claim has its package (B) in its session's message store, or is in the
//     queue of packages, or, after a crash, gets into it: the mark that the package was
//     sent is in the commit that has the message. The same holds for a report of a payment
//     (AE) and the commit that has its answer (AR).
//  7. A fill of a participant whose session has asked for drop copies has a capture (AE)
//     in that session's store by invariant 2: what a Logon asks for is synced before the
//     Logon is answered.
//
// # Stores
//
// Reports go out when they are numbered, and are committed within saveDelay, with orders,
// answers and position in one step. An answer without an event, and the incoming number,
// go with them or within maintenanceTick. No commit is synced. A crash loses a suffix of
// the commits, and the journal brings it back:
//   - The numbers that were used in it lie below the reserved ones, so none is used again;
//     a resend fills them as a gap.
//   - The reports in it are of events after the position: they are made again, with
//     PossResend, under new numbers.
//   - The incoming number falls back with it: the client is asked for its messages again,
//     and those that were carried out are known by their ClOrdIDs.
//
// Reservations of sequence numbers and resets are synced, and the position is made durable
// every SyncEvery: the journal must keep the events after DurableCursor.
//
// # Our choices
//
// Day orders end with the UTC day; without TimeInForce an order is a day order, as FIX 4.4
// says. A market order is IOC unless it is FOK. A mass cancel takes all orders of the
// participant; everything else concerns the session's own. Cancel on disconnect cancels
// the session's orders when the client goes, not when the service stops; after a start it
// waits RestartGrace for the client. A resend replays the newest MaxReplay messages of the
// range and fills the rest as a gap: a client that wants everything asks in pieces. AvgPx
// is rounded down, six digits after the instrument's own where it is not exact. A level of
// the book is identified by its side and price. The choices of a Logon (8013, 9406, 5600)
// hold until the next Logon, also for reports that are made while the client is away; our
// custom fields come only after 5600=Y. A resend leaves out market data, instruments,
// statuses and quotes, because they are of no use later.
//
// Quotes (R, S, AG, AI, Z, AJ) and claims (8). A QuoteRequest is for one instrument and
// one step of the ladder in dollars (152), and is paid over the rail in Currency (15);
// SecurityID (48) names ticket and tranche as T7/T7-1, and without it the first open offer
// with room is taken. QuoteReqID and QuoteRespID are name spaces apart from ClOrdID and
// from each other, at most MaxQuoteReqID bytes. A quote belongs to its session; it counts
// towards MaxQuotes until the desk forgets it, passed on or not. The fields of a D (40=D)
// or an AJ must agree with the quote that it names. A claim made by an AJ is reported
// with QuoteRespID (693) in place of ClOrdID. It ends by its payment or its deadline: F and
// G are refused, a mass cancel and a lost connection leave it alone. Prices are dollars for
// a whole unit, sizes whole units with the mint's decimals. A lock or the end of a ticket
// ends its quotes for good, even if the lock is lifted: Z, then AI. An AI that a crash has
// swallowed is not sent later: ValidUntilTime (62) has said when the quote ends.
//
// Packages, payments and captures (pay_*.go, capture.go). A package is a News of fixed
// lines with the transaction in RawData, sent by workers after the claim's first report.
// While the chain is away it is tried until a second before the claim's deadline; then the
// News says CHAIN_UNAVAILABLE. A report of a payment has to agree with the claim in symbol,
// side, size and price; it is looked for during ProofTimeout and then answered
// PENDING_TIMEOUT, though the payment is booked when it is final. Its AR and the 8s of the
// claim are independent of each other, and come in any order. Another participant's claim
// is as unknown as one that does not exist. A capture has the ExecID as its TradeReportID,
// TrdMatchID (880) is the public trade's number, and its one party is the CompID that
// entered the order.
//
// MarketDataRequest: MarketDepth 0 is the 100 levels that a view has; without MDUpdateType
// a subscription is incremental; an unsubscription needs its MDReqID only. An
// OpenCloseSettlFlag, a TradingSessionID, a Scope other than local and an MDImplicitDelete
// are refused by the MDReqRejReason that FIX 4.4 has for each.
//
// # Concurrency
//
// The reporter is one goroutine at a time, under its mutex: its own, or a connection's
// reader that has read a single request and had the engine execute it at once
// (engine.Engine.RunInline). That reader holds no session's lock by then.
//
// The gateway's goroutines are the reporter and its committer, one for market data, one for
// maintenance, one that cancels on disconnect, and four each that make packages and look
// for payments. A blotter's mutex guards its orders, quotes, claims and ClOrdIDs; only the
// reporter changes what they say. The mutex of market data is held while messages are sent,
// which may wait for a replay of one session, so replays are bounded in length and rate.
// Locks are taken in the order session's lock, market data's, the locks of package
// session, a blotter's.
//
// Where the node is deposed (Options.Leadership), nothing that is not durable is reported,
// and refusals and the Logout name the leader. A follower's gateway has sessions of its own
// and makes no reports.
//
// # Cost
//
// From the frame to the command, and from the event to the message, an ordinary order
// allocates nothing but its own records. A ClOrdID that nobody has used is known to be new
// without asking the store (answered.go).
//
// TestSoak lets clients that keep no rule, a disk that crashes, and reloads work on the real
// store, and holds every report to the journal. A seed decides what the clients do;
// BLOCKDESK_FIX_SOAK has it run longer. Options name every limit.
package fixgw
