package bench

import "slices"

// MedianOf returns the median of a list, which it sorts.
func MedianOf(list []float64) float64 {
	slices.Sort(list)
	n := len(list)
	if n == 0 {
		return 0
	}
	return (list[n/2] + list[(n-1)/2]) / 2
}

// MedianRatio returns the median of a in units of b, turn by turn.
func MedianRatio(a, b []float64) float64 {
	list := make([]float64, min(len(a), len(b)))
	for i := range list {
		list[i] = a[i] / b[i]
	}
	return MedianOf(list)
}

// MedianByCPU returns the series of the median CPU time.
func MedianByCPU(list []*Series) *Series {
	best := append([]*Series(nil), list...)
	for i := range best {
		for j := i; j > 0 && best[j].CPU < best[j-1].CPU; j-- {
			best[j], best[j-1] = best[j-1], best[j]
		}
	}
	return best[len(best)/2]
}
