// Package httpgw serves HTTP on the public addresses: base, api and ws. It owns sockets,
// routing, rate limits, standby and the forwarding between shards, and joins the routes
// of its surfaces: httpgw/market, rfq, dvp and site, over httpgw/wire and httpgw/terms.
// The operators' address is httpgw/admin. None of them owns state or touches the
// engine: they read immutable views and call package desk.
//
// A shard is a group of instruments with an engine of its own. The configuration, the
// headers X-Group and X-Groups and the error codes call it a group.
//
// # Path of a request
//
//	socket ─▶ connection limits ─▶ fasthttp parses ─▶ route by raw path ─▶ method
//	       ─▶ rate limit ─▶ handler: query ─▶ *wire.Page ─▶ ETag, gzip, HEAD ─▶ bytes
//
// and of one with a body:
//
//	─▶ rate limit ─▶ Bearer token ─▶ media type ─▶ Idempotency-Key ─▶ flat JSON object
//	─▶ members ─▶ rfq.Request ─▶ desk ─▶ transaction package ─▶ bytes
//	           └▶ submission ─▶ settlement co-signs ───────────▶ bytes
//
// Every endpoint is one row that a surface's Routes returns: path, method, addresses,
// handler, cache class, limit class. GET / describes the service from the same rows, so
// it lists exactly what is served.
//
// # Invariants
//
//  1. The router compares the raw path byte for byte: no decoding, no "..", no optional
//     trailing slash. A path that is not in the table is 404.
//  2. A request that is refused by a rate limit (429) costs no token. A bad request
//     (400) does.
//  3. A panic in a handler is answered with 500 and logged. It does not stop the
//     process, because the order path must go on.
//  4. Logs contain no path, header, query or body of a client.
//  5. In a raft group, only the leader refuses or acknowledges what only the leader can
//     answer. Other nodes answer 307 to the leader's address of the same kind, or 503
//     LEADER_CHANGED (leader.go). A [Standby] holds the addresses without any routes.
//  6. With shards, a request is forwarded at most once, to the shard of its symbol,
//     ticket, claim or build. The gateway that received it admits it and signs the
//     internal request (shard_internal.go). If the shard cannot be reached, the answer
//     says that the outcome is open. Paths below /group/ exist for signed requests only.
//
// # Concurrency
//
// fasthttp serves each connection on its own goroutine. A POST waits for the durable
// outcome of the desk, bounded by the desk's timeout, and for the settlement, bounded by
// the surface's timeout.
//
// # Limits
//
// [Options]: MaxConns, MaxConnsPerIP, MaxHeaderBytes, MaxBodyBytes, MaxClients, and the
// four timeouts. Constants: [MaxCloseReason], standbyGrace, standbyEnd, maxCloseRead,
// maxShardAnswer, maxForwards, maxInternalHeader; [Shards].MaxOpen. MaxConns also bounds
// the requests that wait for the desk, which has its own limit. The transaction package of each
// surface names its limits.
package httpgw
