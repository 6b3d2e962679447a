// Package admin serves the admin address: /metrics, /healthz, /readyz, /debug/pprof/, in a
// raft group /cluster, and the operators' page and endpoints under /desk/. Only the latter
// require a token. Tokens are compared by hash in constant time; a wrong token costs ten
// requests of the rate limit.
//
// Operators' requests are commands of the desk: they are journaled with the operator's
// name, and a repeated Idempotency-Key gets the first answer. Metrics read their sources
// once a scrape and never hold a lock of the order path. Without TLS and, below the other
// paths, without a token, the address belongs in the operator's own network.
//
// Limits: adminConns, operatorsPerMinute, operatorBurst, operatorClients, [MaxListLimit],
// [MaxNote], [MaxFIXKeys].
package admin
