// Package suggest finds the known name that is most like a mistyped one.
package suggest

import (
	"fmt"
	"strings"
)

// Suffix returns `: did you mean "x"?` with the known name nearest to name, to append
// to an error. It is empty if no known name is near.
func Suffix(name string, known []string) string {
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

// distance returns the edit distance of a and b: letters to insert, delete or change.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
