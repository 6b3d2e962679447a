// Package dvp is the DvP surface over HTTP: the handshake that gives tokens, builds
// and submissions.
//
// A client without a good token learns nothing of what a build or a submission would
// get, and pays for each guess with one of its requests. Nothing is built or submitted
// for another key than the token's: the settlement holds the submission to its build's
// taker. Tokens, nonces, signatures and transactions are in no log, no error and no
// cache: their answers are no-store. A submission needs no Idempotency-Key, and of one
// that comes only the body is remembered that it stands for.
//
// Limits: [MaxToken], [MaxSubmitKeys], submitTime.
package dvp
