// Package wire is what every HTTP surface speaks: routes, requests with a JSON body,
// pages and their cache, errors, headers, limits and connections. It knows HTTP and
// the forms of values; it knows nothing of the desk, the books or the settlement.
//
// # Invariants
//
//  1. A body is read by one decoder that is stricter than any other: what it takes,
//     every JSON parser takes with the same values (json.go). It is read in linear
//     time and constant memory.
//  2. Nothing a client sent comes back in an error, but a path of letters, digits
//     and "/ . _ -" of at most MaxEcho characters in a 404; a value that is wrong
//     only as our own name of its field, and an unknown member not at all.
//  3. One bucket a client over all addresses. The client is the peer of the socket,
//     unless that peer is a trusted proxy.
//
// # Cost
//
// A cached [Page] is written without an allocation. A limit takes one of 64 locks
// for some 20 ns. A [Page] and a [Kept] sit behind atomic pointers: two readers that
// miss at the same time both render the same bytes, and none waits.
//
// # Limits
//
// [MaxEcho], [MaxSegment], [MaxIdempotencyKey], [MaxTransaction], [MaxWindow],
// [MaxQueryValue], [MaxLongValue], maxForwarded, maxMembers, maxValue, maxNesting.
package wire
