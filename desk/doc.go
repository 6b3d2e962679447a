// Package desk is the business API of the RFQ desk, for every gateway: it submits
// a request to the engine, waits for its durable outcome, and returns the newest
// view of the desk. It follows the engine's events by its own consumer.
//
//	Do ─▶ key? ─▶ commands ─▶ engine ─▶ matcher ─▶ journal
//	 ▲                                                │ durable events
//	 └── waiters ◀── view ◀── store ◀── records ◀─────┘
//
// It keeps, in a store of its own, what outlives a request: the answers to
// idempotency keys and every state that a claim has had. Both are made of the
// events alone, so the store is a copy of what the journal says: what a crash
// takes from its end comes back by Replay.
//
// # Invariants
//
//  1. Nothing is said before it is durable in the journal, and nothing before the
//     store has it (committed, not synced): who has an answer can ask for the
//     claim in it, and finds his change in the View.
//  2. A request with a key happens once at most in KeyTTL, over all callers, and
//     restarts and crashes between; the first answer is the answer. A flight
//     leaves the table only when its answer is in the store, and who sends a
//     request looks into the store after it has taken the key. Options.MaxKeys
//     is the exception: past it the oldest answers go early.
//  3. The store's content is a function of the events: whatever prefix of its
//     commits a crash leaves, Replay makes the same content of it.
//  4. A View is that of whole commands.
//  5. Do waits for its outcome for Options.Timeout at most, whatever the engine and
//     the journal do; a stop or a failed journal ends it at once.
//  6. A store that fails makes the desk read-only: Views go on, and so do answers
//     that can still be read. What the store has missed comes back by Replay.
//  7. A store that has lost what it had seen, or is another journal's, is noticed
//     at Start, where its tickets or the number of its answers show it.
//
// # Concurrency
//
// Any number of goroutines may call Do, View, Claim and Stats. Requests under way
// are in two tables of 64 locks each, by token and by key. All that is written
// comes from Run's goroutine, a commit a batch of events, but the syncs, which
// have one of their own. A waiter has a channel of its own, from a pool; nobody
// polls.
//
// # Cost
//
// A View is published once a batch of events and only if something shown has
// changed; Options.OnView is told of each. Every claim is written once a state: about 190 bytes; an answer 50
// bytes (a refusal) to 1.5 kB (a claim on a ticket with 32 tranches). A request
// with a key reads the store once before it is sent and once when it has its
// outcome.
//
// # Limits
//
// Options: MaxWaiting, MaxKeys, KeyTTL, Timeout. Constants: MaxStates. The
// history of claims is kept for ever.
package desk
