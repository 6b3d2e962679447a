//go:build !race

package runtest

// RaceEnabled reports whether the race detector is compiled in.
const RaceEnabled = false
