// Package bench holds the workloads, the yardsticks they are measured against,
// and the latency runner behind `blockdesk bench`.
//
// Rules:
//  1. A speed claim is a ratio: ours and the yardstick's on the same work, in
//     the same run. The machines are noisy; absolute figures are for orientation.
//  2. Latency under load is open loop: an operation's time starts when it was
//     due, not when it was sent (no coordinated omission).
//  3. RESULTS.md keeps the figures with machine, commit, mix and what is left
//     out, also where they fall short of the goal.
package bench
