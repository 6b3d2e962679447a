package marketdata

const (
	// tapeBlock and recentBlock are the trades allocated at once.
	tapeBlock   = 4 * MaxTape
	recentBlock = 256
)

// tape holds the last trades of one instrument. Views share its memory: what a view can see is
// never written again.
type tape struct {
	// recent holds the trades since the last Flush, oldest first; before the first Flush, the
	// last MaxTape to 2×MaxTape trades.
	recent []Trade
	// block holds the flushed trades newest first. It is filled from its end downwards, so that
	// a new trade goes before the others without moving them; it is free below low.
	block []Trade
	low   int
}

func (t *tape) hasRecent() bool { return len(t.recent) > 0 }

// add adds a trade. Unless all is set, it drops old ones.
func (t *tape) add(trade Trade, all bool) {
	if !all && len(t.recent) == 2*MaxTape {
		t.recent = t.recent[:copy(t.recent, t.recent[MaxTape:])]
	}
	if len(t.recent) == cap(t.recent) {
		// Slices returned before keep the old memory.
		t.recent = append(make([]Trade, 0, max(recentBlock, 2*len(t.recent))), t.recent...)
	}
	t.recent = append(t.recent, trade)
}

// last returns the last trades, newest first, at most MaxTape: recent before old, the result of
// the previous call (nil for the first).
func (t *tape) last(old []Trade) []Trade {
	k := min(len(t.recent), MaxTape)
	keep := min(len(old), MaxTape-k)
	if t.low < k {
		block := make([]Trade, tapeBlock)
		t.low = tapeBlock - keep
		copy(block[t.low:], old[:keep])
		t.block = block
	}
	for _, trade := range t.recent[len(t.recent)-k:] {
		t.low--
		t.block[t.low] = trade
	}
	return t.block[t.low : t.low+k+keep : t.low+k+keep]
}

// takeRecent clears recent and returns it, or nil before the first Flush.
func (t *tape) takeRecent(flushed bool) []Trade {
	news := t.recent
	t.recent = t.recent[len(t.recent):]
	if !flushed {
		return nil
	}
	return news[:len(news):len(news)]
}

// appendLast appends the last trades, oldest first, at most MaxTape. old is the last result of
// last.
func (t *tape) appendLast(dst, old []Trade) []Trade {
	k := min(len(t.recent), MaxTape)
	for i := min(len(old), MaxTape-k) - 1; i >= 0; i-- {
		dst = append(dst, old[i])
	}
	return append(dst, t.recent[len(t.recent)-k:]...)
}
