// Package access issues the bearer tokens of the DvP surface: it challenges a key with a
// nonce, verifies the proof that a client has the key, issues a token, admits tokens, and
// lets an operator revoke them.
//
// Invariants:
//
//  1. A nonce is made by this process, for one key, and is valid for 60 s. Its first
//     presentation uses it up, whatever the proof.
//  2. A token is issued only to a client that has signed the nonce's text with the
//     nonce's key; package eddsa refuses signatures that need no key.
//  3. A client is issued at most one token in an hour (Options.IssueWindow), over restarts, crashes and
//     concurrent proofs. A failed proof or a failed store does not use up the hour.
//  4. A token is on disk before the client has it, as its SHA-256 only. It is admitted for
//     7 days, or until it is revoked; a revocation is on disk before Revoke returns.
//  5. Time does not go back: see clock. An hour is never shorter because a clock is set
//     back, and what has expired stays so after a restart, except what expired in the last
//     minute before a crash.
//  6. The log of issues and revocations is append-only, and entries older than
//     [Retention] are deleted. A token has at most one entry of each.
//
// A nonce is not stored before it is presented, because it contains all that is needed to
// check it, under a tag that only this process can make (see nonce). So requests for
// nonces cost no memory, and a restart invalidates all of them.
//
// Concurrency: any goroutine may call every method. [Access.Admit] takes a read lock for
// one look into a map. [Access.Issue] verifies proofs concurrently and commits one token
// at a time, each with a sync that no reader waits for. [Access.Run] deletes what has
// expired and stores the time.
//
// Cost: see the benchmarks. Each token of the last seven days takes about 250 bytes of
// memory. The limits are named constants; at a limit, [desk.ErrTokensFull] is returned and
// existing tokens stay valid. Known: an attacker with [MaxTokens] addresses can use up the
// tokens of a week, and revoking frees none.
package access
