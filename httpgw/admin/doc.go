// Package admin serves the admin address: /metrics, /healthz, /readyz, /debug/pprof/, in a
// raft group /cluster, and the operators' endpoints under /desk/. Only the latter require
// a token. Tokens are compared by hash in constant time; a wrong token costs ten requests
// of the rate limit.
//
// Limits: adminConns, operatorsPerMinute, operatorBurst, operatorClients,
// [MaxListLimit], [MaxNote], [MaxFIXKeys].
package admin
