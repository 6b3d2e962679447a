// Package httpgw is the HTTP door: REST on the base and api addresses, the
// WebSocket's address, and the admin address. It owns sockets, routing, rate
// limits, error bodies and the rendering of market data and of the RFQ desk; it
// owns no state of either. It reads the immutable views that [Views] and [Desk]
// hand out, asks the desk for quotes and claims, and never touches the engine.
//
// # Path of a request
//
//	socket ─▶ connection limits ─▶ fasthttp parses ─▶ route by raw path ─▶ method
//	       ─▶ rate limit ─▶ handler: query ─▶ *page ─▶ ETag, gzip, HEAD ─▶ bytes
//
// and of one with a body:
//
//	─▶ rate limit ─▶ Bearer token ─▶ media type ─▶ Idempotency-Key ─▶ flat JSON object
//	─▶ members ─▶ rfq.Request ─▶ [Desk].Do ─▶ [Settlement].Package ─▶ bytes
//	           └▶ [Submission] ─▶ [DvP].Submit ──────────────────────▶ bytes
//
// Every endpoint is one row of the route table (routes.go, catalog_pages.go,
// partners.go, rfq_routes.go, writes.go, dvp.go, downloads.go, board_pages.go): path,
// method, surfaces, handler, cache class, limit class.
// The service description that GET / returns is made from the same rows, so it
// cannot promise what is not served.
//
// # Invariants
//
//  1. A body is a function of (view, limit) alone. It is rendered once, by
//     appending exact decimals, and the same bytes are served until the view
//     changes; so its strong ETag is the view's numbers.
//     A document of the desk is a function of (desk's view, ten-second cycle,
//     middles of our books at the cycle's first read), and of how the settlement
//     was when it was rendered: its ts and its prices move between cycles only,
//     and its strong ETag is made from its bytes.
//     A document of the market is a function of package catalog's Facts, which
//     change once in such a cycle; all its paths have the same bytes and ETag.
//     The pages for people are what package board was built to, and only they are
//     sent with a Content-Security-Policy.
//  2. The raw path is compared, byte for byte: no decoding, no "..", no
//     trailing slash is forgiven. What is not in the table is 404.
//  3. Nothing a client sent comes back in an error, but a path of letters, digits
//     and "/ . _ -" of at most 160 characters in a 404; a value that is wrong only
//     as our own name of its field, and an unknown member not at all. The stream's
//     door repeats symbols and channels that there are not, of the same characters.
//  4. A refused request (429) costs no token. A bad request (400) does.
//  5. One bucket a client over all addresses. The client is the peer of the
//     socket, unless that peer is a trusted proxy.
//  6. A panic in a handler is answered with 500 and logged; it does not stop the
//     process, whose order path must live on.
//  7. Logs carry no path, no header, no query and no body of a client.
//  8. A body is read by one decoder that is stricter than any other: what it
//     takes, every JSON parser takes with the same values (json.go). It is read
//     in linear time and constant memory.
//  9. An answer from the desk is a function of its result, of the pair's mint and
//     decimals, of the USDC mint and of the claim's package, so the same
//     Idempotency-Key and body get the same bytes again; a refusal differs in its
//     request_id. What was refused before the desk was asked is not remembered. Of
//     a submission, which needs no key, a key keeps the body that it stands for.
//  10. Without a settlement, or while it is not ready, nothing is reserved.
//  11. Whoever has no good DvP token learns nothing of what a build or a
//     submission would get, and pays for each guess with one of his three
//     requests in 60 s. Nothing is built or submitted for another key than the
//     token's: the settlement holds the submission to its build's taker.
//  12. In a group of nodes, what only the leader can answer is nowhere else refused
//     for good and nowhere acknowledged: 307 to the leader's address of the same
//     kind, or 503 LEADER_CHANGED (leader.go). A [Standby] has no routes and holds
//     the addresses meanwhile.
//  13. Where instruments are split over groups, a request is forwarded once at most,
//     to the group that its symbol, ticket, claim or build names, and is admitted
//     once, where it came in: who says that it was has signed it (groups_hop.go).
//     A group that is not reached makes no answer definite. Paths below /group/ are
//     for signed requests; to all others they are not there.
//  14. Tokens, nonces, signatures and transactions are in no log, no error and no
//     cache: their answers are no-store.
//
// # Concurrency
//
// fasthttp serves each connection on a goroutine of its own. Pages sit behind
// atomic pointers: two readers that miss at the same time both render the same
// bytes, and none waits. A limit takes one of 64 locks for some 20 ns. A POST
// waits for the desk's durable outcome, as long as the desk allows, for the
// settlement at most settleTime, and for the desk's signature at most submitTime.
//
// # Cost
//
// A cached read allocates nothing. A miss renders once: a few µs.
//
// # Limits
//
// [Options]: MaxConns, MaxConnsPerIP, MaxHeaderBytes, MaxBodyBytes, MaxClients,
// and the four timeouts. Constants: [MaxDepth], [MaxTrades], [MaxEcho],
// [MaxSegment], [MaxIdempotencyKey], [MaxToken], [MaxTransaction],
// [MaxSubmitKeys], [MaxWindow], [MaxMoneyLimit], [MaxNote],
// limitWays, maxForwarded, maxQueryValue, maxMembers, maxValue, maxLong,
// maxNesting, settleTime, submitTime, maxPartnerDepth, maxPartnerTrades,
// maxPartnerScan, [MaxCloseReason], standbyGrace, standbyEnd, farewellTime,
// maxFarewell, maxGroupAnswer, maxForwards, maxHop, [Groups].MaxOpen. MaxConns bounds the requests that
// wait for the desk as well; the desk has a limit of its own.
package httpgw

