package feed

import (
	"blockdesk/engine/marketdata"
	"blockdesk/market"
)

// Snapshots encodes order-book snapshots as a shard does, for benchmarks that have views
// and no feed. It caches the text of the last encoded levels, so a book that has changed
// little costs little. The zero value is ready. It is not safe for concurrent use.
type Snapshots struct{ enc encoder }

// L2 returns the WebSocket frame of v's order book, and false unless clients can
// subscribe to depth. The frame is valid until the next call.
func (s *Snapshots) L2(in *market.Instrument, v *marketdata.View, depth int) ([]byte, bool) {
	k, ok := depthKind(depth)
	if !ok {
		return nil, false
	}
	return s.enc.snapshot(in, v, k), true
}
