// Package projection keeps stores in step with the journal. A projection is a
// kv.Store whose content is a function of the engine's durable events: trades and
// candles, the answers of the desk, the state of FIX orders. The package that owns a
// projection consumes the events and decides what they change. Store commits these
// changes together with the cursor. Recover brings all projections of a service into
// step with the journal when the service starts.
//
//	at the start  journal ─▶ Recover ─▶ Replay ─┐
//	                                            ├─▶ changes and cursor, one commit ─▶ kv.Store
//	running       engine ─▶ Consumer ─▶ Run ────┘
//
// # The cursor
//
// The cursor of a store is the Seq up to which the store has the changes of every
// command. Cursor is that of the last commit, which a crash may lose. DurableCursor
// is that of the last synced commit: the journal must keep the events after it.
//
// # Invariants
//
//  1. Changes and cursor are one commit, so after a crash the cursor fits the content.
//  2. Changes depend on the events alone, so replaying the events after the cursor
//     restores what a crash has lost, byte for byte. Recover replays from the lowest
//     cursor of all projections, so the owner skips events that its store has.
//  3. DurableCursor is at most Cursor.
//  4. A failed commit leaves the store as it was before.
//
// # A store and the journal
//
// The journal has the commands from one Seq to another; older ones are in snapshots
// only. Compared with the journal a store is:
//
//	behind      its cursor is in the journal's range: the usual case, also when both
//	            end at the same Seq. Recover replays the events after the cursor, then
//	            calls Start
//	ahead       its cursor is after the journal's end: a crash in mode interval lost
//	            the journal's last commands, or the journal is an older backup
//	lost        its cursor is before the journal's first command (the store was
//	            deleted, or is an older backup), or its content contradicts the
//	            journal (ErrDiverged: it is damaged, or belongs to another journal)
//	unfinished  a crash interrupted a Reconcile (ErrUnfinished)
//
// In all cases but the first the journal is right, and the owner's Reconcile makes
// the store agree with it. That may drop what clients were sent, so Recover requires
// the operator's consent, Options.AllowReconcile, if a store is ahead or lost. It
// requires none if the store is ahead and the journal loses its end by design
// (Options.Interval), if the owner says that a lost store has nothing to lose
// (Projection.RefuseLost), or to finish a Reconcile.
//
// # Concurrency
//
// Cursor, DurableCursor, Get, Scan and Sync may be called from any goroutine. Commit
// belongs to one goroutine at a time. Sync runs beside it, so that a client that waits
// for a commit does not wait for the disk; only a Commit that takes the cursor back
// (a Reconcile) and Sync exclude each other.
package projection
