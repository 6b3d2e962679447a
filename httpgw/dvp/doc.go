// Package dvp is the DvP surface over HTTP: the handshake that gives tokens, builds
// and submissions.
//
// A client without a valid token learns nothing about a build or a submission, and each
// attempt costs it a request of its limit. A token builds and submits only for its own
// key: the settlement compares a submission with the taker of its build. Tokens, nonces,
// signatures and transactions never enter logs, errors or caches; their answers are
// no-store. A submission needs no Idempotency-Key; of a key that is sent, only the hash of
// its body is stored.
//
// Limits: [MaxToken], [MaxSubmitKeys], submitTime.
package dvp
