package feed

import (
	"blockdesk/engine"
	"blockdesk/market"
)

// Snapshots makes the frames of order-book snapshots as a shard does, for who
// has views and no feed, such as a benchmark. It keeps the texts of the levels
// that it encoded last, so a book that has changed little costs little. The zero
// value is ready. Not for concurrent use.
type Snapshots struct{ enc encoder }

// L2 returns the WebSocket frame of v's order book, and false unless depth is
// one that clients can ask for. The frame is overwritten by the next call.
func (s *Snapshots) L2(in *market.Instrument, v *engine.View, depth int) ([]byte, bool) {
	k, ok := depthKind(depth)
	if !ok {
		return nil, false
	}
	return s.enc.snapshot(in, v, k), true
}
