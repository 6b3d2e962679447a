// Package httpgw serves HTTP: the base and api addresses and the WebSocket's address.
// It owns sockets, routing, rate limits, standby and the forwarding between groups,
// and joins the routes of its surfaces, each a value of a package of its own:
// httpgw/market, rfq, dvp and site, over httpgw/wire and httpgw/terms. The operators'
// address is httpgw/admin. None of them owns state or touches the engine: they read
// immutable views and ask package desk.
//
// # Path of a request
//
//	socket ─▶ connection limits ─▶ fasthttp parses ─▶ route by raw path ─▶ method
//	       ─▶ rate limit ─▶ handler: query ─▶ *wire.Page ─▶ ETag, gzip, HEAD ─▶ bytes
//
// and of one with a body:
//
//	─▶ rate limit ─▶ Bearer token ─▶ media type ─▶ Idempotency-Key ─▶ flat JSON object
//	─▶ members ─▶ rfq.Request ─▶ desk ─▶ settlement's package ─▶ bytes
//	           └▶ submission ─▶ settlement co-signs ───────────▶ bytes
//
// Every endpoint is one row that a surface's Routes returns: path, method, addresses,
// handler, cache class, limit class. The service description that GET / returns is made
// from the same rows, so it cannot promise what is not served.
//
// # Invariants
//
//  1. The raw path is compared, byte for byte: no decoding, no "..", no
//     trailing slash is forgiven. What is not in the table is 404.
//  2. A refused request (429) costs no token. A bad request (400) does.
//  3. A panic in a handler is answered with 500 and logged; it does not stop the
//     process, whose order path must live on.
//  4. Logs carry no path, no header, no query and no body of a client.
//  5. In a group of nodes, what only the leader can answer is nowhere else refused
//     for good and nowhere acknowledged: 307 to the leader's address of the same
//     kind, or 503 LEADER_CHANGED (leader.go). A [Standby] has no routes and holds
//     the addresses meanwhile.
//  6. Where instruments are split over groups, a request is forwarded once at most,
//     to the group that its symbol, ticket, claim or build names, and is admitted
//     once, where it came in: the gateway that admitted it signs it (shard_internal.go).
//     A group that is not reached makes no answer definite. Paths below /group/ are
//     for signed requests; for all others they do not exist.
//
// # Concurrency
//
// fasthttp serves each connection on a goroutine of its own. A POST waits for the
// desk's durable outcome, as long as the desk allows, and for the settlement as long
// as its surface does.
//
// # Limits
//
// [Options]: MaxConns, MaxConnsPerIP, MaxHeaderBytes, MaxBodyBytes, MaxClients, and the
// four timeouts. Constants: [MaxCloseReason], standbyGrace, standbyEnd, maxCloseRead,
// maxShardAnswer, maxForwards, maxInternalHeader; [Groups].MaxOpen. MaxConns bounds the requests
// that wait for the desk as well; the desk has a limit of its own. Each surface's
// package names its own.
package httpgw
