// Package projection keeps stores in step with the journal. A projection is a
// kv.Store whose content follows from the engine's durable events: trades and
// candles, the answers of the desk, the state of FIX orders. The package that owns a
// projection follows the events and decides what they change. Store commits these
// changes together with the cursor. Recover brings all projections of a service into
// step with the journal when it starts.
//
//	at the start  journal ─▶ Recover ─▶ Replay ─┐
//	                                            ├─▶ changes and cursor, one commit ─▶ kv.Store
//	running       engine ─▶ Consumer ─▶ Run ────┘
//
// # The cursor
//
// The cursor of a store is the Seq up to which the store has the changes of every
// command. Cursor is that of the last commit, which a crash may take; DurableCursor
// is that of the last synced one, so the journal must keep the events after it.
//
// # Invariants
//
//  1. Changes and cursor are one commit: after a crash the cursor is that of the
//     changes that are left.
//  2. Changes follow from the events alone, so the events after the cursor make again
//     what a crash has taken, byte for byte. Events that the store has seen come
//     again too, since Recover replays from the cursor that is furthest behind: the
//     owner passes over them.
//  3. DurableCursor is at most Cursor.
//  4. After a failed commit the store is as it was before.
//
// # A store and the journal
//
// The journal ends at a Seq and reaches back to an older one: what is older still is
// in snapshots alone. Compared with it a store is:
//
//	behind      its cursor is in what the journal has: the usual case, also with
//	            equal ends. The events after the cursor are replayed, Start ends it
//	ahead       its cursor is after the journal's end: a crash in mode interval took
//	            the journal's last commands, or the journal is an older backup
//	lost        its cursor is before what the journal reaches back to (the store was
//	            deleted, or is an older backup), or the content is not what the
//	            journal says (ErrDiverged: it was damaged, or is another journal's)
//	unfinished  a crash came in the middle of a Reconcile (ErrUnfinished)
//
// In all cases but the first the journal is right, and the owner's Reconcile makes
// the store agree with it. That may forget what clients were sent, so Recover asks
// for the operator's consent, Options.AllowReconcile, before it takes a store that is
// ahead or lost. It needs no consent for a store that is ahead where the journal loses
// its end by design (Options.Interval), nor for a lost one where nothing is lost by
// the owner's account (Member.RefuseLost), nor to finish what was begun.
//
// # Concurrency
//
// Cursor, DurableCursor, Get and Scan may be called from any goroutine. Commit is the
// owner's, one goroutine at a time. Sync may run on another one beside it, so that a
// client that waits for a commit does not wait for the disk. Reconcile is over before
// the first Sync: a cursor that goes back must not meet one.
package projection
