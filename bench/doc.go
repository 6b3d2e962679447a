// Package bench holds what the benchmarks of `blockdesk bench` share: the report, the
// counting of CPU time and memory, and the open loop. Each subject is a package below it
// with a Benchmark that runs: engine, fix, ws, rest, settle, cluster. They use flow
// (workloads), yardstick and echo (the work to compare with), server (a running service
// and connections to it) and clients (many market-data clients in a process of their
// own). replay sends a recorded day through a service.
//
// Rules:
//  1. A speed claim is a ratio: ours and the yardstick's on the same work, in
//     the same run. The machines are noisy; absolute figures are for orientation.
//  2. Latency under load is open loop: an operation's time starts when it was
//     due, not when it was sent (no coordinated omission).
//  3. RESULTS.md keeps the figures with machine, commit, mix and what is left
//     out, also where they fall short of the goal.
package bench
