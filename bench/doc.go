// Package bench is what the benchmarks of `blockdesk bench` share: the report, the
// accounts of CPU time and memory, the open loop. Each subject is a package below it
// whose Benchmark is a value with a Run: engine, fix, ws, rest, settle, cluster. They
// stand on flow (workloads), yardstick and echo (what they are measured against), server
// (a running service with its clients) and crowd (many readers); play replays a day.
//
// Rules:
//  1. A speed claim is a ratio: ours and the yardstick's on the same work, in
//     the same run. The machines are noisy; absolute figures are for orientation.
//  2. Latency under load is open loop: an operation's time starts when it was
//     due, not when it was sent (no coordinated omission).
//  3. RESULTS.md keeps the figures with machine, commit, mix and what is left
//     out, also where they fall short of the goal.
package bench
