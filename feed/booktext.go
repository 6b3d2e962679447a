package feed

import (
	"slices"

	"blockdesk/market"
)

// levelFormat is the format of a level's text.
type levelFormat uint8

const (
	pairFormat  levelFormat = iota + 1 // ["0.999000","12.500000"],
	digitFormat                        // 99900012500000, as in the checksum
)

// sideText is the text of one side's first levels. When the side changes, only new levels
// are formatted: the text before the first change and after the last one stays, and runs
// of unchanged levels between them are copied. The zero value is an empty side.
type sideText struct {
	levels []market.Level // the levels of text; part of a view
	text   []byte
	ends   []int32 // end of each level's text

	// The changed part while it is built.
	midText []byte
	midEnds []int32
}

// firstLevels returns the text of the first n levels, or of all if there are fewer.
func (s *sideText) firstLevels(n int) []byte {
	if n = min(n, len(s.ends)); n == 0 {
		return nil
	}
	return s.text[:s.ends[n-1]]
}

// start returns the start of level i's text.
func (s *sideText) start(i int) int32 {
	if i == 0 {
		return 0
	}
	return s.ends[i-1]
}

// set updates the text to levels, which are best first and immutable. sign is +1 for
// asks, whose prices rise, and -1 for bids.
func (s *sideText) set(in *market.Instrument, levels []market.Level, sign market.Price, f levelFormat) {
	old := s.levels
	if len(old) == len(levels) && (len(old) == 0 || &old[0] == &levels[0]) {
		return // views share an unchanged side
	}
	first := commonHead(old, levels)
	tail := commonTail(old[first:], levels[first:])
	s.levels = levels
	if first+tail == len(old) && first+tail == len(levels) {
		return
	}
	s.between(in, old[:len(old)-tail], levels[:len(levels)-tail], first, sign, f)
	from, to := s.start(first), s.start(len(old)-tail)
	moved := from + int32(len(s.midText)) - to
	s.text = slices.Replace(s.text, int(from), int(to), s.midText...)
	s.ends = slices.Replace(s.ends, first, len(old)-tail, s.midEnds...)
	if moved != 0 {
		for i := len(levels) - tail; i < len(levels); i++ {
			s.ends[i] += moved
		}
	}
}

// block is the number of levels compared at once, as one piece of memory, which takes a
// fraction of the time of comparing level by level.
const block = 16

// commonHead returns the number of equal levels at the start of a and b.
func commonHead(a, b []market.Level) int {
	n, limit := 0, min(len(a), len(b))
	for limit-n >= block && *(*[block]market.Level)(a[n:]) == *(*[block]market.Level)(b[n:]) {
		n += block
	}
	for n < limit && a[n] == b[n] {
		n++
	}
	return n
}

// commonTail returns the number of equal levels at the end of a and b.
func commonTail(a, b []market.Level) int {
	n, limit := 0, min(len(a), len(b))
	for limit-n >= block && *(*[block]market.Level)(a[len(a)-n-block:]) == *(*[block]market.Level)(b[len(b)-n-block:]) {
		n += block
	}
	for n < limit && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}

// between sets midText and midEnds to the levels from first on, reusing the text of
// levels that are also in old.
func (s *sideText) between(in *market.Instrument, old, levels []market.Level, first int, sign market.Price, f levelFormat) {
	s.midText, s.midEnds = s.midText[:0], s.midEnds[:0]
	base := s.start(first)
	i := first            // the next old level to compare
	from, run := first, 0 // the unchanged old levels that are not copied yet
	for _, l := range levels[first:] {
		for i < len(old) && sign*old[i].Price < sign*l.Price {
			i++
		}
		if i < len(old) && old[i] == l {
			if run == 0 || from+run != i {
				s.copyRun(base, from, run)
				from, run = i, 0
			}
			run++
			i++
			continue
		}
		s.copyRun(base, from, run)
		run = 0
		s.midText = appendLevel(s.midText, in, l, f)
		s.midEnds = append(s.midEnds, base+int32(len(s.midText)))
	}
	s.copyRun(base, from, run)
}

// copyRun appends the text of run old levels, beginning with level from. base is the
// start of the changed part.
func (s *sideText) copyRun(base int32, from, run int) {
	if run == 0 {
		return
	}
	start := s.start(from)
	moved := base + int32(len(s.midText)) - start
	s.midText = append(s.midText, s.text[start:s.ends[from+run-1]]...)
	for _, end := range s.ends[from : from+run] {
		s.midEnds = append(s.midEnds, end+moved)
	}
}

func appendLevel(dst []byte, in *market.Instrument, l market.Level, f levelFormat) []byte {
	if f == digitFormat {
		dst = market.Mul(uint64(l.Price), in.Tick).AppendDecimal(dst, 0)
		return market.Mul(uint64(l.Qty), in.Lot).AppendDecimal(dst, 0)
	}
	dst = append(dst, `["`...)
	dst = in.AppendPrice(dst, l.Price)
	dst = append(dst, `","`...)
	dst = in.AppendQty(dst, l.Qty)
	return append(dst, `"],`...)
}
