//go:build !race

package runtest

// Raced reports whether the race detector is compiled in.
const RaceEnabled = false
