// Package desk is the business API of the RFQ desk for every gateway: it submits a
// request to the engine, waits for its durable outcome, and returns the newest view of
// the desk. It follows the engine's events with a consumer of its own.
//
//	Do ─▶ key? ─▶ commands ─▶ engine ─▶ matcher ─▶ journal
//	 ▲                                                │ durable events
//	 └── waiters ◀── view ◀── store ◀── records ◀─────┘
//
// Its store keeps what outlives a request: the answers to idempotency keys and every
// state of every claim. Both are made of events alone, so Replay restores from the
// journal what a crash takes from the store's end.
//
// # Invariants
//
//  1. An answer is given after the journal has made it durable and after the store has
//     it (committed, not synced). So a client that has an answer can read the claim in
//     it, and finds the change in the View.
//  2. A request with a key happens at most once in KeyTTL, over all callers, restarts
//     and crashes, and its first answer is the answer. A request in flight leaves the
//     table only when its answer is in the store, and a caller that is about to send
//     looks into the store after it has entered the table. Options.MaxKeys is the
//     exception: beyond it the oldest answers are deleted early.
//  3. The store's content is a function of the events: Replay completes whatever
//     prefix of its commits a crash leaves.
//  4. A View contains whole commands.
//  5. Do waits for its outcome at most Options.Timeout, whatever the engine and the
//     journal do; a stop or a failed journal ends it at once.
//  6. If the store fails, the desk becomes read-only: Views continue, and so do answers
//     that can still be read. Replay restores what the store has missed.
//  7. Start notices a store that has lost data, or belongs to another journal, by its
//     tickets or the number of its answers.
//
// # Concurrency
//
// Any number of goroutines may call Do, View, Claim and Stats. Requests in flight are
// in two tables, by request ID and by key, of 64 locks each. Only Run's goroutine writes,
// one commit for a batch of events; syncs have a goroutine of their own. A waiter has
// a channel from a pool; nothing polls.
//
// # Cost
//
// A View is published once for a batch of events, and only if it has changed;
// Options.OnView is called for each. Every state of a claim takes about 190 bytes in
// the store, an answer 50 bytes (a refusal) to 1.5 kB (a claim on a ticket with 32
// tranches). A request with a key reads the store once before it is sent and once with
// its outcome.
//
// # Limits
//
// Options: MaxWaiting, MaxKeys, KeyTTL, Timeout. Constant: MaxStates. The history of
// claims is kept forever.
package desk
