// Package wire has what all HTTP surfaces share: routes, JSON request bodies, cached
// pages, errors, headers, rate limits and connections. It knows HTTP and how values
// are written in JSON. It does not know the desk, the books or the settlement.
//
// # Invariants
//
//  1. DecodeObject is stricter than other JSON parsers: every body that it accepts has
//     the same values in each of them (json.go). It takes linear time and constant
//     memory.
//  2. An error repeats nothing that the client sent, except the path in a 404 if it
//     has only letters, digits and "/ . _ -" and at most MaxEcho characters. A wrong
//     value is named by our name of its field; an unknown member is not named.
//  3. A client has one bucket for all addresses. The client is the peer of the socket,
//     or the address that a trusted proxy names.
//
// # Cost
//
// Writing a cached [Page] does not allocate. A rate limit takes one of 64 locks for
// about 20 ns. [Page] and [PageCache] use atomic pointers: two readers that miss at
// the same time both render the same bytes, and neither waits.
//
// # Limits
//
// [MaxEcho], [MaxSegment], [MaxIdempotencyKey], [MaxTransaction], [MaxWindow],
// [MaxQueryValue], [MaxMembers], [MaxMemberValue], [MaxLongValue], maxForwarded,
// maxNesting.
package wire
