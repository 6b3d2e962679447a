package runtest

import (
	"testing"

	"pgregory.net/rapid"
)

// maxRounds is the most rounds of CheckUntil: enough for a case that one round in two lacks.
const maxRounds = 50

// CheckUntil calls rapid.Check at least once, and again until covered returns true. Under
// -short one round has only 20 examples, so a case that a test must have met may be missing
// from it. The test fails if maxRounds rounds lack it.
func CheckUntil(t *testing.T, covered func() bool, property func(*rapid.T)) {
	t.Helper()
	for range maxRounds {
		rapid.Check(t, property)
		if covered() {
			return
		}
	}
	t.Errorf("%d rounds of random examples lack a case that the test needs", maxRounds)
}
