// Package rfq is the RFQ surface over HTTP: the documents of the book, quotes, claims and
// proofs of payment. It translates requests into the desk's and answers with package
// terms; prices, limits and states are the desk's.
//
// A document is a function of the desk's view, the ten-second cycle, the mid prices of our
// books at the cycle's first read, and the state of the settlement. Its ts and prices
// change only between cycles, and its strong ETag is a hash of its bytes; it is rendered
// once for all readers. Without a ready settlement no claim is reserved.
//
// Limits: [MaxTrades] a page; the sizes of bodies and the rates are those of package wire.
package rfq
