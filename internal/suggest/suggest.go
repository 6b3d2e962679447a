// Package suggest finds the known name that is most like a mistyped one, for the errors of
// the command line, of configuration keys and of requests.
//
// Likeness is the edit distance: letters to insert, delete or change, and neighbours to
// swap. A name that differs in more than a third of its letters (at least two) is no
// suggestion. The cost is the product of both lengths for each known name, so callers pass
// names of bounded length. It has no state.
package suggest

import (
	"fmt"
	"strings"
)

// Suffix returns `: did you mean "x"?` with the known name nearest to name, to append
// to an error. It is empty if no known name is near.
func Suffix(name string, known []string) string {
	if name == "" {
		return ""
	}
	best, at := "", max(2, len(name)/3)+1
	for _, k := range known {
		if d := distance(name, k); d < at || d == at && best == "" && strings.HasPrefix(k, name) {
			best, at = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(": did you mean %q?", best)
}

// distance returns the edit distance of a and b: letters to insert, delete or change, and
// neighbours to swap.
func distance(a, b string) int {
	before, row, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next[0] = i + 1
		for j := range len(b) {
			cost := row[j]
			if a[i] != b[j] {
				cost++
			}
			next[j+1] = min(cost, next[j]+1, row[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row, next = row, next, before
	}
	return row[len(b)]
}
