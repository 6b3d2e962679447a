// Package rfq is the RFQ surface over HTTP: the documents of the book, quotes, claims
// and proofs of payment.
//
// A document is a function of (desk's view, ten-second cycle, middles of our books at
// the cycle's first read), and of the settlement when it was rendered: its ts and its
// prices move between cycles only, and its strong ETag is made from its bytes. Without
// a settlement, or while it is not ready, nothing is reserved.
package rfq
