package feed

import (
	"strconv"
	"sync/atomic"
	"time"
)

// counters are the feed's figures. A shard adds its deliveries once a pass.
type counters struct {
	subscriptions atomic.Int64
	messages      atomic.Uint64
	bytes         atomic.Uint64
	encoded       atomic.Uint64
	batches       atomic.Uint64
	conflated     atomic.Uint64
	collapsed     atomic.Uint64
	slow          atomic.Uint64
	refused       atomic.Uint64
	overruns      atomic.Uint64
	engineSeq     atomic.Uint64
	published     atomic.Uint64
	deskSeq       atomic.Uint64
	lag           atomic.Int64
	byEncoding    [numEncodings]atomic.Int64 // open connections
}

// Stats are the figures at one moment. All but the gauges only grow.
type Stats struct {
	Connections   int    // gauge: WebSockets and streams
	Streams       int64  // gauge: server-sent events
	Compressed    int64  // gauge: with compression
	Subscriptions int64  // gauge: (connection, channel, symbol)
	MessagesOut   uint64 // written to sockets in full, including streams' event ids
	BytesOut      uint64
	Encoded       uint64 // updates encoded
	Batches       uint64 // flushes with at least one changed view
	Conflated     uint64 // ticker updates skipped for blocked connections
	Collapsed     uint64 // times that pending updates were replaced by snapshots
	SlowConsumers uint64 // connections closed because they did not read
	Refused       uint64 // connections beyond a limit
	Overruns      uint64 // times that a shard's inbox overflowed
	EngineSeq     uint64 // gauge: newest command in any view
	// Published is the last command whose updates every shard has, and DeskSeq the same
	// for changes of the desk's tickets: a later request is answered from there on.
	// Gauges.
	Published uint64
	DeskSeq   uint64
	Epoch     uint64 // gauge
	// Lag is the time from the engine's stamp on the last batch to its publication; 0
	// once the market has been quiet for Options.QuietAfter. A gauge.
	Lag time.Duration
}

// WebSockets returns the number of connections that are not streams. A connection is
// counted a moment before its shard knows its encoding.
func (s Stats) WebSockets() int { return max(0, s.Connections-int(s.Streams)) }

// Followed reports whether a connection has subscribed to anything. Any goroutine.
func (f *Feed) Followed() bool { return f.stats.subscriptions.Load() > 0 }

// Stats returns the feed's figures.
func (f *Feed) Stats() Stats {
	return Stats{
		Connections:   f.limits.count(),
		Streams:       f.stats.byEncoding[eventStream].Load(),
		Compressed:    f.stats.byEncoding[deflated].Load(),
		Subscriptions: f.stats.subscriptions.Load(),
		MessagesOut:   f.stats.messages.Load(),
		BytesOut:      f.stats.bytes.Load(),
		Encoded:       f.stats.encoded.Load(),
		Batches:       f.stats.batches.Load(),
		Conflated:     f.stats.conflated.Load(),
		Collapsed:     f.stats.collapsed.Load(),
		SlowConsumers: f.stats.slow.Load(),
		Refused:       f.stats.refused.Load(),
		Overruns:      f.stats.overruns.Load(),
		EngineSeq:     f.stats.engineSeq.Load(),
		Published:     f.stats.published.Load(),
		DeskSeq:       f.stats.deskSeq.Load(),
		Epoch:         f.epoch.Load(),
		Lag:           time.Duration(f.stats.lag.Load()),
	}
}

// Health is the body of GET /ws/rfq/health: the members of docs/specification.md 4.4, and
// figures that show why clients fall behind (our choice). See Stats.
type Health struct {
	OK             bool   `json:"ok"`
	Status         string `json:"status"` // "up" or "down"
	Connections    int    `json:"connections"`
	Streams        int64  `json:"streams"`
	Compressed     int64  `json:"compressed"`
	MaxConnections int    `json:"max_connections"`
	MaxPerIP       int    `json:"connections_per_ip"`
	Subscriptions  int64  `json:"subscriptions"`
	MessagesOut    uint64 `json:"messages_out"`
	BytesOut       uint64 `json:"bytes_out"`
	Conflated      uint64 `json:"conflated"`
	Collapsed      uint64 `json:"collapsed"`
	SlowConsumers  uint64 `json:"slow_consumers"`
	Refused        uint64 `json:"refused"`
	Shards         int    `json:"shards"`
	Overruns       uint64 `json:"overruns"`
	Epoch          string `json:"epoch"`
	EngineSeq      uint64 `json:"engine_seq"`
	LagUS          int64  `json:"lag_us"`
}

// Health returns the body of GET /ws/rfq/health. OK is false unless Run is running.
func (f *Feed) Health() Health {
	s := f.Stats()
	h := Health{
		OK: f.running.Load(), Status: "down",
		Connections: s.Connections, Streams: s.Streams, Compressed: s.Compressed,
		MaxConnections: f.o.MaxConnections, MaxPerIP: f.o.MaxPerIP,
		Subscriptions: s.Subscriptions, MessagesOut: s.MessagesOut, BytesOut: s.BytesOut,
		Conflated: s.Conflated, Collapsed: s.Collapsed, SlowConsumers: s.SlowConsumers,
		Refused: s.Refused, Shards: len(f.shards), Overruns: s.Overruns,
		Epoch: "e" + strconv.FormatUint(s.Epoch, 10), EngineSeq: s.EngineSeq,
		LagUS: s.Lag.Microseconds(),
	}
	if h.OK {
		h.Status = "up"
	}
	return h
}
