package engine

const (
	// tapeBlock and newsBlock are how many trades are allocated at once.
	tapeBlock = 4 * MaxTape
	newsBlock = 256
)

// tape is the last trades of one instrument. Views share its memory: what a
// view can see is never written again.
type tape struct {
	// news are the trades since the last Flush, oldest first; before the first
	// one, the last MaxTape to 2×MaxTape of all.
	news []Trade
	// block holds the flushed tape newest first and is filled from its end
	// downwards, so that a new trade is put before the others without moving
	// them. It is free below index low.
	block []Trade
	low   int
}

func (t *tape) pending() bool { return len(t.news) > 0 }

// add takes a trade. Unless all are wanted, old ones go.
func (t *tape) add(trade Trade, all bool) {
	if !all && len(t.news) == 2*MaxTape {
		t.news = t.news[:copy(t.news, t.news[MaxTape:])]
	}
	if len(t.news) == cap(t.news) {
		// What was handed out before stays in the old memory.
		t.news = append(make([]Trade, 0, max(newsBlock, 2*len(t.news))), t.news...)
	}
	t.news = append(t.news, trade)
}

// last returns the last trades, newest first, at most MaxTape: news before old,
// which is what the last call returned (nil for the first).
func (t *tape) last(old []Trade) []Trade {
	k := min(len(t.news), MaxTape)
	keep := min(len(old), MaxTape-k)
	if t.low < k {
		block := make([]Trade, tapeBlock)
		t.low = tapeBlock - keep
		copy(block[t.low:], old[:keep])
		t.block = block
	}
	for _, trade := range t.news[len(t.news)-k:] {
		t.low--
		t.block[t.low] = trade
	}
	return t.block[t.low : t.low+k+keep : t.low+k+keep]
}

// take returns the news and forgets them; none are told if they are not news to
// anybody, before the first Flush.
func (t *tape) take(told bool) []Trade {
	news := t.news
	t.news = t.news[len(t.news):]
	if !told {
		return nil
	}
	return news[:len(news):len(news)]
}

// appendLast appends the last trades, oldest first, at most MaxTape. old is what
// last returned last.
func (t *tape) appendLast(dst, old []Trade) []Trade {
	k := min(len(t.news), MaxTape)
	for i := min(len(old), MaxTape-k) - 1; i >= 0; i-- {
		dst = append(dst, old[i])
	}
	return append(dst, t.news[len(t.news)-k:]...)
}
