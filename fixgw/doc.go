// Package fixgw is the FIX 4.4 gateway: an acceptor on quickfix, order entry and
// market data, and the reports that tell clients what the engine has done.
//
//	socket ─▶ conn: whole, checked frames ─┬─ ordinary (express.go) ──────┬─▶ request ─▶ Engine.Submit
//	                gate: proves the Logon └─▶ quickfix session (app.go) ─┘
//
//	engine's durable events ─▶ follower ─▶ a session's batch: numbered (outgoing.go) ─▶ socket
//	                              └─ messages, order state, answers, position: one commit, soon after
//	feed's views ─▶ mailbox ─▶ marketData: one X for all subscribers ─▶ sessions
//	desk's records ─▶ follower: quotes and claims of sessions (desk.go)
//	InstrumentSet ─▶ statuses: one f a subscriber ─▶ sessions
//
// It owns the participants, the sessions with their sequence numbers and sent
// messages, the (session, ClOrdID) index and the state of orders, quotes and
// claims as clients see it. It is the only package that knows quickfix.
//
// # Parts
//
// From the bottom: package wire reads and writes messages. server accepts connections,
// proves Logons and owns the sessions: a session's connection, rates (limits), message
// store and way out (line). It knows what it serves by two interfaces, application and
// handler (session.go). Each session has one handler, its blotter: its client's requests
// by ClOrdID (requestIndex), orders, quotes and claims. Gateway joins the server and the
// blotters with the engine, the follower of its events, market data and the desk.
//
// Invariants:
//  1. No report is sent before its command is durable: the follower sees durable
//     events only.
//  2. Every durable command of a session's has its reports in that session's
//     message store, sooner or later, whatever crashes: the store's position is
//     committed with the reports before it, and events past it are followed
//     again at the next start (Replay). A report made twice has the same ExecID
//     (command's Seq, event's index, M for the maker's side of a trade) and says
//     the same; the second carries PossResend.
//  3. An outgoing sequence number is never used for two messages, though commits
//     are not synced: see messageStore.
//  4. A (session, ClOrdID) has one answer. Said again, today or the day before,
//     it is answered by the first answer again, with PossResend, and reaches no
//     engine: also by who says it again the moment he has the answer. What is said
//     again before has the same answer, which is sent once. A request that was
//     refused here, before the engine, does not use its ClOrdID up.
//  5. Nobody waits for a client: a connection's buffer takes a message at once
//     or cuts the client off. The engine never waits for the gateway but by its
//     ring.
//  6. Before a Logon is proven the client has no session, no number moves, and a
//     connection costs at most LogonBytes and LogonTimeout.
//  7. Market data is conflated, reports are not.
//  8. A signed Logon opens a session once: its SendingTime is synced before the
//     session is anybody's.
//  9. A CompID keeps its session number, its numbers and messages, and its
//     participant, as long as the process lives: taken out of the participants and
//     put back, it finds what its orders have done meanwhile. A session number is
//     one participant's for ever: given to another over a restart, a CompID begins
//     there with nothing of the first one's.
//  10. A claim's report is made at the last piece of the desk's record that tells
//     of it, from that record and from what is committed, so invariant 2 holds for
//     claims; a position may lie between two pieces. Nothing is reserved while the
//     chain is not reached, or for a participant without a wallet.
//  11. A claim that is reserved has its package (B) in its session's message store,
//     or is in the packer's agenda, or, after a crash, is taken into it: the mark that
//     it was sent is in the commit that has the message. So is the end of a report of
//     a payment (AE) in the commit that has its answer (AR).
//  12. A fill of a participant whose session has asked for copies has a capture (AE)
//     in that session's store by invariant 2: what a Logon asks for is synced before
//     the Logon is answered.
//
// # Stores
//
// Reports go out when they are numbered, and are committed within saveDelay, with
// orders, answers and position in one step; what a session is answered without an
// event, and its incoming number, go with them or within keeperTick. No commit is
// synced. What a crash loses is a suffix of them, and the journal brings it back:
//   - The numbers that were used in it lie below those reserved, so none comes
//     again; a resend fills them as a gap.
//   - The reports in it are of events behind the position: they are made again,
//     with PossResend, under new numbers.
//   - The incoming number falls back with it: the client is asked for its messages
//     again, and those that were carried out are known by their ClOrdIDs.
//
// Reservations of sequence numbers and resets are synced, and a keeper makes the
// position durable every SyncEvery: DurableCursor is what the journal must be kept
// from.
//
// # Past quickfix
//
// quickfix is the session layer: Logon, Heartbeat, TestRequest, resends, gaps,
// resets, rejects, Logout. Application messages pass it by, as long as the session
// is as if it had handled them:
//   - In: see express.go. Whoever handles a message holds the session's turn, so
//     that one is through before the next, and before OnLogout takes the orders
//     away. Every MinHeartBtInt/2 or more often than that quickfix gets one, since
//     it would otherwise send TestRequests to a client that it hears nothing of.
//   - Out: numbers are given out under quickfix's own lock, and replays keep new
//     messages waiting (outgoing.go). The connection puts them in order (outlet.go).
//     quickfix does not know that they were sent, so that a client gets a
//     Heartbeat every HeartBtInt though reports come meanwhile.
//
// # Our choices
//
// Day orders end with the UTC day; without TimeInForce an order is a day order,
// as FIX 4.4 says. A market order is IOC unless it is FOK. A mass cancel takes
// all orders of the participant; everything else concerns the session's own. Cancel on
// disconnect cancels the session's orders when the client goes, not when we stop;
// after a start it waits RestartGrace for the client. A resend replays the newest
// MaxReplay messages of what is asked for and gap fills the rest: who wants
// everything asks in pieces. AvgPx is rounded down, six digits after the
// instrument's own where it is not exact. A level of the book is identified by
// its side and price. What a Logon asks for (8013, 9406, 5600) holds until the
// next Logon, also for reports that are made while the client is away; our custom
// fields come only after 5600=Y (custom.go). A resend gap fills what told how
// things stood at a moment: market data, instruments, statuses, quotes.
//
// Quotes (R, S, AG, AI, Z, AJ) and claims (8). A QuoteRequest is for one
// instrument and one step of the ladder in dollars (152), and is bought over the
// rail in Currency (15); SecurityID (48) names ticket and tranche as T7/T7-1, and
// without it the first open offer with room is taken. QuoteReqID and QuoteRespID
// are names apart from ClOrdIDs and from each other, at most MaxQuoteReqID bytes.
// A quote is its session's; it counts towards MaxQuotes until the desk forgets it,
// passed on or not. What a D (40=D) or an AJ says of the quote beside its id must
// be so. A claim that AJ has made is reported with QuoteRespID (693) in the place
// of ClOrdID. It ends by its payment or its deadline: F and G are refused, a mass
// cancel and a lost connection leave it alone. Prices are dollars for a whole unit,
// sizes whole units with the mint's decimals. A lock or the end of a ticket ends
// its quotes for good, though the lock be lifted: Z, then AI. An AI that a crash
// has swallowed is not made up for: ValidUntilTime (62) has said when.
//
// Packages, proofs and captures (pay_*.go, capture.go). A package is a News of fixed
// lines with the transaction in RawData, sent by workers after the claim's first
// report; where the chain is away it is tried until a second before the claim's
// deadline, then the News says CHAIN_UNAVAILABLE. A report of a payment has to agree
// with the claim in symbol, side, size and price; it is looked into for ProofTimeout
// and then answered PENDING_TIMEOUT, though the payment is booked when it is final.
// Its AR and the 8s of the claim come by different ways, in any order. A claim that
// is another participant's is as unknown as one that there is not. A capture has
// the ExecID as its TradeReportID, TrdMatchID (880) is the public trade's number,
// and the one party is the CompID that entered the order.
//
// MarketDataRequest: MarketDepth 0 is the 100 levels that a view has; without
// MDUpdateType a subscription is incremental; what ends one is known by its
// MDReqID alone. Beyond section H of the contract, an OpenCloseSettlFlag, a
// TradingSessionID, a Scope other than local and an MDImplicitDelete are refused
// by the MDReqRejReason that FIX 4.4 has for each.
//
// Of a message that breaks several rules one is named: the MsgType, then what is
// required, values, order in the header, tags, repeating groups. A tag of no
// field is 373=0, as QuickFIX's acceptance scripts want it.
//
// quickfix asks for a missing message once, and until it has it answers nothing but
// ResendRequests. Where it does not come for GapTimeout the session is logged out
// with MESSAGE_MISSING, and the next logon asks again (gap.go).
//
// # Participants
//
// Reload replaces all participants or, where something is wrong with them, none.
// Who may log on is an immutable roster behind an atomic pointer. quickfix's
// Acceptor takes no new session while it runs, so each reload that brings CompIDs
// starts one more, and the gate hands every proven connection to the one that owns
// its session. A session that was taken out is logged out and stays, for its
// orders; quickfix keeps one goroutine for it, and one for each such reload, until
// we stop: maxForgotten bounds them. quickfix arms a timer (2 s) at a Logout of its
// own, and where the session has stopped before it fires its goroutine waits for
// ever: sessions stop only when we do, so there is one a session and stop. A reload kills nobody: orders of a session
// without cancel on disconnect live on, as when its client goes, and claims go on.
//
// A fresh session of quickfix sleeps to the next full second. Its first Logon
// waits for that; later ones do not. A node of a group makes the sessions of its
// terms to come ahead (Spares), beside those that serve: quickfix tells the sets
// apart by their Qualifier.
//
// # Concurrency
//
// The follower is one goroutine at a time, under its mutex: its own, or a reader
// that has read one request alone and had the engine do it at once
// (engine.Engine.RunInline). That reader holds no session's turn by then.
//
// One goroutine a session and one an acceptor (quickfix's), two a connection and
// one that writes (before the logon one that reads and one that writes, both
// ours), one follower and its saver, one for market data, one keeper, one sweeper,
// and four each that make packages and look for payments. A blotter's mutex guards
// its orders, quotes, claims and ClOrdIDs; only the follower changes what they
// say. The market data's mutex is held while messages are sent, which may wait for a replay of one
// session, so replays are bounded in length and rate. Locks are taken in the order
// session's turn, market data's mutex, line's mutex, quickfix's locks, message
// store's mutex, connection's mutex, a blotter's; quickfix's callbacks that hold
// its locks (ToApp, ToAdmin, the store's) take only those after them.
//
// # A group of nodes
//
// Where the node does not lead, a Standby has the address (standby.go). Where it is
// deposed (Options.Leadership), nothing is reported of what is not durable, and
// refusals and the Logout say who leads. A follower's gateway
// has sessions of its own and makes no reports.
//
// # Message log
//
// MessageLog, where Options has one, copies each message of a session into a
// bounded queue, about 100 ns, and writes it without its secrets on a goroutine
// of its own. Nobody waits for it: what does not fit is lost and counted.
//
// # Cost
//
// An ordinary request is checked and decoded, and a report encoded, without
// allocation: TestExpressAllocates. What goes through quickfix costs some 90
// allocations each way and 4 µs for the dictionary. A ClOrdID that nobody has used
// is known as such without the store (answered.go).
//
// # Tests of the session
//
// TestSoak lets clients that keep no rule, a disk that crashes, and reloads work on
// the real store, and holds every report to the journal. What the clients do comes
// from a seed; BLOCKDESK_FIX_SOAK has it run longer.
//
// The acceptance scripts of the quickfix module for FIX 4.4 (59 of a server, 7 of
// last-processed and next-expected numbers and resends in chunks) run against the
// door, gate, store and session with an echo above them, so that all they say goes
// through quickfix: TestAcceptance. That what passes quickfix by gives the same
// answers under the same numbers is TestExpressChangesNothing.
//
// # Limits
//
// Options and the constants beside them name every one. FIX 4.4 only, no
// encryption but TLS; XmlData is refused, since quickfix v0.9.11 panics on it.
package fixgw
