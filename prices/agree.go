package prices

import (
	"cmp"
	"slices"

	"blockdesk/internal/solana/pyth"
)

// agree returns the update of a majority of the configured nodes: of all majorities whose
// prices are within bps of each other, the one with the smallest range, and of its
// updates the lower median. It returns false if there is no such majority. So a minority
// of nodes that lie can move the price by at most bps from an honest one, and a node
// that does not answer never counts as agreement. The nodes need not return the same
// update, because each is at its own slot.
func agree(updates []pyth.Update, configured int, bps uint16) (pyth.Update, bool) {
	majority := configured/2 + 1
	sorted := slices.SortedFunc(slices.Values(updates), func(a, b pyth.Update) int {
		return cmp.Or(cmp.Compare(a.Price, b.Price), cmp.Compare(a.PublishedAt, b.PublishedAt))
	})
	best := -1
	for i := range len(sorted) - majority + 1 {
		low, high := sorted[i].Price, sorted[i+majority-1].Price
		if !apart(low, high, bps) && (best < 0 || high-low < sorted[best+majority-1].Price-sorted[best].Price) {
			best = i
		}
	}
	if best < 0 {
		return pyth.Update{}, false
	}
	return sorted[best+(majority-1)/2], true
}
