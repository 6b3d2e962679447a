// Package fixgw is the FIX 4.4 gateway: order entry, quotes, claims and payments, market
// data, and the reports of what the engine has done.
//
//	session ─▶ blotter: checks a request and its ClOrdID ─▶ Engine.Submit
//
//	engine's durable events ─▶ reporter ─▶ a session's batch ─▶ session.Deliver
//	                              └─ messages, order state, answers, position: one commit, soon after
//	feed's views ─▶ Books: one X for all subscribers ─▶ sessions
//	desk's records ─▶ reporter: quotes and claims of sessions (desk.go)
//	InstrumentSet ─▶ Statuses: one f or h for each subscriber ─▶ sessions
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
//  2. Every durable command of a session eventually has its reports in that session's
//     message store, also after a crash: the store's position is committed with the
//     reports before it, and the next start processes the events after it again (Replay).
//     A report made twice has the same ExecID (command's Seq, event's index, epoch, M for
//     the maker's side of a trade) and content; the second carries PossResend.
//  3. A (session, ClOrdID) has one answer. A request repeated on the same or the next UTC
//     day gets the first answer again, with PossResend, and does not reach the engine, even
//     if the client repeats it as soon as it has the answer. A request repeated before the
//     answer gets no second one. A request that the gateway itself refused does not use up
//     its ClOrdID.
//  4. Market data is conflated, reports are not.
//  5. The report of a claim is made at the last event of the desk's record, from that
//     record and committed state only. So invariant 2 holds for claims too, although the
//     position may lie between two events of a record. Nothing is reserved while the chain
//     is unreachable, or for a participant without a wallet.
//  6. A reserved claim has its package (B) in its session's message store, or is in the
//     queue of packages. After a crash it is queued again if the store lacks the record
//     that the package was sent, which is committed with the message. The same holds for a
//     report of a payment (AE) and the commit of its answer (AR).
//  7. A fill of a participant whose session has asked for drop copies has a capture (AE)
//     in that session's store by invariant 2: the options of a Logon are synced before the
//     Logon is answered.
//
// A client that has lost everything rebuilds its state from AF, AD and AN (rebuild.go);
// package history has the fills and positions, committed with the reports.
//
// # Stores
//
// Reports are sent as soon as they are numbered. Within saveDelay they are committed, with
// orders, answers and position in one step. Answers without an event, and the incoming
// number, are committed with them or within maintenanceTick. No commit is synced. A crash
// may lose the newest commits, and the journal restores their content:
//   - The sequence numbers that they used lie below the reserved ones, so none is used
//     again; a resend fills them as a gap.
//   - Their reports belong to events after the position, so they are made again, with
//     PossResend and new numbers.
//   - The incoming number falls back: the session requests the client's messages again,
//     and recognizes executed requests by their ClOrdIDs.
//
// Reservations of sequence numbers and resets are synced, and the position is made durable
// every SyncEvery: the journal must keep the events after DurableCursor.
//
// # Our choices
//
// Day orders end with the UTC day; without TimeInForce an order is a day order, as FIX 4.4
// says. A market order is IOC unless it is FOK. A mass cancel cancels all orders of the
// participant; every other request affects the session's own orders. Cancel on disconnect
// cancels the session's orders when the client disconnects, not when the service stops;
// after a start it waits RestartGrace for the client. A resend replays the newest MaxReplay
// messages of the range and fills the rest as a gap: a client that wants everything asks in
// pieces. AvgPx is rounded down, six digits after the instrument's own where it is not
// exact. A level of the book is identified by its side and price. The options of a Logon
// (8013, 9406, 5600) hold until the next Logon, also for reports that are made while the
// client is logged out; our custom fields come only after 5600=Y. A resend leaves out
// market data, instruments, statuses and quotes, because they are of no use later.
//
// Quotes (R, S, AG, AI, Z, AJ) and claims (8). A QuoteRequest is for one instrument and
// one step of the ladder in dollars (152), and is paid over the rail in Currency (15);
// SecurityID (48) names ticket and tranche as T7/T7-1; without it the gateway takes the
// first open offer with enough capacity. QuoteReqID and QuoteRespID are name spaces apart
// from ClOrdID and from each other, at most MaxQuoteReqID bytes. A quote belongs to its
// session; it counts towards MaxQuotes until the desk forgets it, even if the client has
// passed. The fields of a D (40=D) or an AJ must agree with the quote that it names. A
// claim made by an AJ is reported with QuoteRespID (693) in place of ClOrdID. A claim ends
// by its payment or its deadline: F and G are refused, and a mass cancel or a disconnect
// does not affect it. Prices are dollars for a whole unit, sizes whole units with the
// mint's decimals. A lock or the end of a ticket ends its quotes for good, even if the lock
// is lifted: Z, then AI. An AI that a crash has lost is not sent later, because the client
// knows the end of the quote from ValidUntilTime (62).
//
// Packages, payments and captures (pay_*.go, capture.go). A package is a News of fixed
// lines with the transaction in RawData, sent by workers after the claim's first report.
// While the chain is unreachable they retry until a second before the claim's deadline;
// then the News says CHAIN_UNAVAILABLE. A report of a payment has to agree with the claim
// in symbol, side, size and price. Workers look for the payment during ProofTimeout and
// then answer PENDING_TIMEOUT; the payment is still booked when it is final. Its AR and the
// 8s of the claim are independent of each other, and come in any order. A claim of another
// participant is refused as unknown. A capture has the ExecID as its TradeReportID,
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
// reporter changes their content. The mutex of market data is held while messages are sent,
// which may wait for a replay of one session, so replays are bounded in length and rate.
// Locks are taken in the order session's lock, market data's, the locks of package
// session, a blotter's.
//
// A node that has lost the leadership (Options.Leadership) still reports durable events
// only, and its refusals and Logouts name the leader. A follower's gateway has sessions of
// its own and makes no reports.
//
// # Cost
//
// From the frame to the command, and from the event to the message, an ordinary order
// allocates nothing but its own records. A filter recognizes an unused ClOrdID without
// reading the store (answered.go).
//
// TestSoak runs misbehaving clients, crashes of the disk, and reloads against the real
// store, and checks every report against the journal. A seed decides what the clients do;
// BLOCKDESK_FIX_SOAK makes it run longer. Options name every limit.
package fixgw
