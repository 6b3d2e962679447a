// Package reports gives each request of a FIX session one answer, and each durable event its
// reports. It has the requests of sessions by ClOrdID, and it follows the engine's events:
// packages orders and rfq make the reports of an event, and this package sends them and
// commits them with the changed state and the position.
//
//	engine's durable events ─▶ Follower ─▶ orders, rfq ─▶ Reporter ─▶ a session's batch ─▶ session
//	                              └─ messages, state, answers, position: one commit, soon after
//
// # Invariants
//
//  1. No report is sent before its command is durable: the follower sees durable events
//     only.
//  2. Every durable command of a session eventually has its reports in that session's
//     message store, also after a crash: the position is committed with the reports before
//     it, and the next start processes the events after it again (Replay). A report made
//     twice has the same ExecID (command's Seq, event's index, epoch, M for the maker's side
//     of a trade) and content; the second carries PossResend.
//  3. A (session, ClOrdID) has one answer. A request repeated on the same or the next UTC
//     day gets the first answer again, with PossResend, and does not reach the engine, even
//     if the client repeats it as soon as it has the answer. A request repeated before the
//     answer gets no second one. A request that the gateway itself refused does not use up
//     its ClOrdID.
//
// # Store
//
// Reports are sent as soon as they are numbered. Within saveDelay they are committed, with
// the state that has changed, the answers and the position in one step. No commit is synced.
// A crash may lose the newest commits, and the journal restores their content:
//   - The sequence numbers that they used lie below the reserved ones, so none is used
//     again; a resend fills them as a gap.
//   - Their reports belong to events after the position, so they are made again, with
//     PossResend and new numbers.
//   - The incoming number falls back: the session requests the client's messages again,
//     and recognizes executed requests by their ClOrdIDs.
//
// # Concurrency
//
// The follower works on one goroutine at a time, under its mutex: its own, or a connection's
// reader that has read a single request and had the engine execute it at once
// (engine.Engine.RunInline). That reader holds no session's lock by then. A Session's mutex
// guards its requests; no other lock is taken while it is held.
//
// # Cost
//
// A filter recognizes an unused ClOrdID without reading the store (answered.go). A commit
// takes the work of some milliseconds together.
package reports
