package engine

import (
	"strconv"
	"strings"

	"blockdesk/market"
)

// refresh packs a transcript's refresh: its levels are price:qty separated by commas, or
// the number of levels on each side, away from 1000.
func (a arguments) refresh() ([]Command, error) {
	b := MirrorBook{Instrument: market.InstrumentID(a.number("in", 0)), Slot: uint64(a.number("slot", 0))}
	b.Bids, b.Asks = a.levels("bids"), a.levels("asks")
	for n := range market.Price(a.number("levels", 0)) {
		b.Bids = append(b.Bids, market.Level{Price: 1000 - n, Qty: 1 << 40})
		b.Asks = append(b.Asks, market.Level{Price: 1001 + n, Qty: 1 << 40})
	}
	cs, err := MirrorRefreshCommands(nil, &b)
	if err != nil {
		return nil, err
	}
	return a.pieces(cs)
}

func (a arguments) levels(key string) (levels []market.Level) {
	for text := range strings.SplitSeq(a[key], ",") {
		price, qty, found := strings.Cut(text, ":")
		if !found {
			continue
		}
		p, _ := strconv.ParseInt(price, 10, 64)
		q, _ := strconv.ParseInt(qty, 10, 64)
		levels = append(levels, market.Level{Price: market.Price(p), Qty: market.Qty(q)})
	}
	return levels
}
