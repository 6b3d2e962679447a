// Package admin is the admin address: /metrics, /healthz, /readyz, /debug/pprof/, in a
// group /cluster, and under /desk/ the endpoints of the operators. Only the last ask
// for a token. A token is compared by its hash, in a time that does not depend on it;
// a wrong one costs ten requests.
//
// Limits: adminConns, operatorsPerMinute, operatorBurst, operatorClients,
// [MaxListLimit], [MaxNote], [MaxFIXKeys].
package admin
