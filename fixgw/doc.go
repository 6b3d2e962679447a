// Package fixgw is the FIX 4.4 gateway: order entry, quotes, claims and payments, market
// data, and the reports of what the engine has done. It joins the packages that do it:
//
//	session ─▶ handler ─┬─▶ orders, rfq ─▶ engine        reports: requests by ClOrdID,
//	                    └─▶ marketdata                   events to reports, one commit
//	engine's durable events ─▶ reports ─▶ orders, rfq ─▶ reports ─▶ session
//	feed's views ─▶ marketdata.Books ─▶ sessions
//
// Package wire reads and writes messages, session has connections, logons and sequence
// numbers, history the fills and positions, messagelog a copy of all messages. Each session
// has one handler, its session.Handler, with its part of each package.
//
// # Invariants
//
// Those of packages reports, orders, rfq and session. Beside them:
//
//  1. Market data is conflated, reports are not.
//  2. A fill of a participant whose session requests drop copies has a capture (AE)
//     in that session's store: the options of a Logon are synced before the Logon is
//     answered.
//  3. Reservations of sequence numbers and resets are synced, and the position is made
//     durable every SyncEvery: the journal must keep the events after DurableCursor.
//     Messages that no event causes are committed within maintenanceTick.
//
// A client that has lost everything rebuilds its state from AF, AD and AN (rebuild.go).
//
// # Our choices
//
// A resend replays the newest MaxReplay messages of the range and fills the rest as a gap:
// a client that wants everything asks in pieces; it leaves out market data, instruments,
// statuses and quotes, because they are of no use later. A level of the book is identified
// by its side and price. The options of a Logon (8013, 9406, 5600) hold until the next
// Logon, also for reports that are made while the client is logged out; our custom fields
// come only after 5600=Y. A capture has the ExecID as its TradeReportID, TrdMatchID (880) is
// the public trade's number, and its one party is the CompID that entered the order.
//
// MarketDataRequest: MarketDepth 0 is the 100 levels that a view has; without MDUpdateType
// a subscription is incremental; an unsubscription needs its MDReqID only. An
// OpenCloseSettlFlag, a TradingSessionID, a Scope other than local and an MDImplicitDelete
// are refused by the MDReqRejReason that FIX 4.4 has for each.
//
// # Concurrency
//
// The gateway's goroutines are the reader of the engine's events (reports.Follower) and its
// committer, one for market data, one for maintenance, one that cancels on disconnect, four
// that make transaction packages, and four that look for payments. The mutex of market data is held while messages are sent, which may wait
// for a replay of one session, so replays are bounded in length and rate. Locks are taken in
// the order session's lock, market data's, the locks of package session, and last a mutex of
// reports, orders or rfq, of which only one is held at a time.
//
// A node that has lost the leadership (Options.Leadership) still reports durable events
// only, and its refusals and Logouts name the leader. The gateway of a follower process has
// sessions of its own and makes no reports.
//
// TestSoak runs misbehaving clients, crashes of the disk, and reloads against the real
// store, and checks every report against the journal. A seed decides what the clients do;
// BLOCKDESK_FIX_SOAK makes it run longer. Options name every limit.
package fixgw
