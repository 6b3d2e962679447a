package feed

import "blockdesk/market"

// form is how a strip writes a level.
type form uint8

const (
	asPair   form = iota + 1 // ["0.999000","12.500000"],
	asDigits                 // 99900012500000, as the checksum wants it
)

// strip is the text of one side's first levels. When the side changes, only the
// levels that are new are formatted; runs that stay are copied. The zero value
// is an empty side.
type strip struct {
	levels []market.Level // what text says; part of a view
	text   []byte
	ends   []int32 // where each level's text ends

	spareText []byte
	spareEnds []int32
}

// head returns the text of the first n levels, all of them if there are fewer.
func (s *strip) head(n int) []byte {
	if n = min(n, len(s.ends)); n == 0 {
		return nil
	}
	return s.text[:s.ends[n-1]]
}

// set makes s the text of levels, which are best first and never change. sign
// is +1 for asks, whose prices rise, and -1 for bids.
func (s *strip) set(in *market.Instrument, levels []market.Level, sign market.Price, f form) {
	if len(levels) == len(s.levels) && (len(levels) == 0 || &levels[0] == &s.levels[0]) {
		return
	}
	text, ends := s.spareText[:0], s.spareEnds[:0]
	i := 0            // the old level that may be the same
	from, run := 0, 0 // run old levels, from this one on, stay and are not copied yet
	for _, l := range levels {
		for i < len(s.levels) && sign*s.levels[i].Price < sign*l.Price {
			i++
		}
		if i < len(s.levels) && s.levels[i] == l {
			if run > 0 && from+run == i {
				run++
			} else {
				text, ends = s.copyRun(text, ends, from, run)
				from, run = i, 1
			}
			i++
			continue
		}
		text, ends = s.copyRun(text, ends, from, run)
		run = 0
		text = appendLevel(text, in, l, f)
		ends = append(ends, int32(len(text)))
	}
	text, ends = s.copyRun(text, ends, from, run)
	s.spareText, s.spareEnds = s.text, s.ends
	s.levels, s.text, s.ends = levels, text, ends
}

// copyRun appends the text of run old levels that begin with level from.
func (s *strip) copyRun(text []byte, ends []int32, from, run int) ([]byte, []int32) {
	if run == 0 {
		return text, ends
	}
	start := int32(0)
	if from > 0 {
		start = s.ends[from-1]
	}
	moved := int32(len(text)) - start
	text = append(text, s.text[start:s.ends[from+run-1]]...)
	for _, end := range s.ends[from : from+run] {
		ends = append(ends, end+moved)
	}
	return text, ends
}

func appendLevel(dst []byte, in *market.Instrument, l market.Level, f form) []byte {
	if f == asDigits {
		dst = market.Mul(uint64(l.Price), in.Tick).AppendDecimal(dst, 0)
		return market.Mul(uint64(l.Qty), in.Lot).AppendDecimal(dst, 0)
	}
	dst = append(dst, `["`...)
	dst = in.AppendPrice(dst, l.Price)
	dst = append(dst, `","`...)
	dst = in.AppendQty(dst, l.Qty)
	return append(dst, `"],`...)
}
