// Package rfq is the RFQ surface over HTTP: the documents of the book, quotes, claims
// and proofs of payment.
//
// A document is a function of the desk's view, the ten-second cycle, the mid prices of
// our books at the cycle's first read, and the state of the settlement. Its ts and prices
// change only between cycles, and its strong ETag is a hash of its bytes. Without a ready
// settlement no claim is reserved.
package rfq
