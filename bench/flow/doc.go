// Package flow has the order flows that the engine is tested and measured on:
// recorded ones (LOBSTER, arena) read from their files and planned as orders,
// and seeded ones made here (Mix, Random).
//
// A seeded flow is a function of its options alone: the same seed gives the same
// commands on every machine. Commands come stamped, from Seq 1 without a gap.
// Nothing here is safe for concurrent use.
package flow
