// Package flow has the order flows that the engine is tested and measured with: recorded
// ones (LOBSTER, arena), which are read from their files and planned as orders, and ones
// that are generated from a seed (Mix, Random).
//
// A generated flow is a function of its options alone: the same seed gives the same
// commands on every machine. Commands have their Seq, from 1 without a gap, and their
// time, so that they can be applied to a state directly. Recorded files are checked line
// by line, and one of an arena has at most MaxArena records. Not for concurrent use.
package flow
