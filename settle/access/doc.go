// Package access hands out the bearer tokens of the DvP surface: it challenges a
// key with a nonce, takes the proof that a client has that key, issues a token,
// admits tokens, and lets an operator revoke them.
//
// What always holds:
//
//  1. A nonce is made here, for one key, by this process, and lives 60 s. It is
//     burnt by its first presentation, whatever the proof that comes with it.
//  2. A token goes only to who has signed the nonce's text with the key that the
//     nonce names; package eddsa refuses signatures that need no key.
//  3. A client is issued at most one token in an hour, over restarts, crashes and
//     proofs that come at once. A proof that fails does not use up the hour, nor
//     does a store that does.
//  4. A token is on disk before anybody has it, as a SHA-256 alone. It is admitted
//     for 7 days, or until it is revoked; a revocation is on disk before it is told.
//  5. Time does not go back: see clock. Hours are never shorter for a clock that is
//     set back, and what has ended stays so, also after a restart, but for what had
//     ended in the last minute before a crash.
//  6. The log of issues and revocations is only appended to, and what is older than
//     [Retention] falls off its end. A token has one entry of each at most.
//
// A nonce is not stored until it is presented, since it carries all that there is
// to know of it, under a tag that only this process can make (see nonce). So who
// asks for any number of them costs no memory, and a restart ends them all.
//
// Concurrency: every method may be called from any goroutine. [Access.Admit] takes
// a read lock for one look at a map. [Access.Issue] verifies proofs side by side
// and then commits one token at a time: a sync of the disk each, which no reader
// waits for. [Access.Run] keeps log and memory short, and what time it is.
//
// Cost: the benchmarks tell. Memory is about 250 bytes for each token of the last
// seven days. Limits are named below; at one, [desk.ErrTokensFull] is answered and what is
// there stays. Known: who commands as many addresses as [MaxTokens] can use up the
// places of a week, and revoking gives none back; the tokens that there are serve
// on.
package access
