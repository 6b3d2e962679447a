package docs

import (
	"regexp"
	"strings"
	"testing"
)

// safetyTest is the name of a test in docs/safety.md: its package and its function.
var safetyTest = regexp.MustCompile("`([a-z0-9/]+\\.Test[A-Za-z0-9]+)`")

// TestSafetyRules: each rule of docs/safety.md names tests, and each of them is there.
func TestSafetyRules(t *testing.T) {
	t.Parallel()
	text := readTracked(t, "docs/safety.md")
	named := map[string]bool{}
	for _, m := range safetyTest.FindAllStringSubmatch(text, -1) {
		named[m[1]] = true
	}
	for name := range named {
		if !exists(t, name) {
			t.Errorf("docs/safety.md names %s, which is not there", name)
		}
	}
	rules := 0
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| rule |") {
			continue
		}
		if rules++; !safetyTest.MatchString(line) {
			t.Errorf("docs/safety.md: no test proves: %s", line)
		}
	}
	if rules < 30 || len(named) < 60 {
		t.Errorf("docs/safety.md has %d rules and names %d tests", rules, len(named))
	}
}
