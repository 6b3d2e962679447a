// Package metrics makes Prometheus collectors of what packages count: engine, journal,
// FIX, feed, fan-out, history, prices, transactions. The packages know nothing of
// Prometheus; each has a Stats that is read here.
//
// Each collector reads its source once a scrape, so its values belong to one moment; the
// path of an order does not use them. Names and help texts are public: a name does not
// change, and its unit is its suffix. docs/metrics.md lists them. Label values come from
// the configuration and never from clients, so the number of series is bounded.
package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"blockdesk/engine"
	"blockdesk/feed"
	"blockdesk/feed/archive"
	"blockdesk/fixgw"
	"blockdesk/httpgw/admin"
	"blockdesk/persist"
	"blockdesk/persist/fanout"
	"blockdesk/service/program"
	"blockdesk/settle/broadcast"
)

// Process returns the metrics that every process has: the version, the durability
// mode, and the clock.
func Process(mode string) []prometheus.Collector {
	return []prometheus.Collector{
		constant("blockdesk_build_info", "Always 1; the label is the program's version.", "version", program.Version),
		constant("blockdesk_journal_mode",
			"Always 1; the label is durability.mode.",
			"mode", mode),
		admin.NewMetrics("blockdesk_", time.Now).
			Gauge("clock_timestamp_seconds", "The service's time, by which orders and claims expire.",
				func(t *time.Time) float64 { return float64(t.UnixMilli()) / 1e3 }),
	}
}

// constant returns a metric with the value 1, whose label is the information.
func constant(name, help, label, value string) prometheus.Collector {
	one := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: prometheus.Labels{label: value}})
	one.Set(1)
	return one
}

// Engine returns the metrics of the engine.
func Engine(read func() engine.Stats) prometheus.Collector {
	return admin.NewMetrics("blockdesk_", read).
		Gauge("engine_seq", "Last command applied by the engine.", func(s *engine.Stats) float64 { return float64(s.Seq) }).
		Gauge("durable_seq", "Last durable command. Later ones are not published yet.", func(s *engine.Stats) float64 { return float64(s.Durable) }).
		Gauge("ingress_ring_commands", "Commands in the ingress ring, not applied or not durable yet.", func(s *engine.Stats) float64 { return float64(s.Ingress) }).
		Gauge("ingress_ring_capacity_commands", "Capacity of the ingress ring (engine.ingress_size). Full, it refuses commands.", func(s *engine.Stats) float64 { return float64(s.IngressSize) }).
		Gauge("egress_ring_events", "Events in the egress ring not released by all consumers.", func(s *engine.Stats) float64 { return float64(s.Egress) }).
		Gauge("egress_ring_capacity_events", "Capacity of the egress ring (engine.egress_size). Full, it waits for its slowest consumer.", func(s *engine.Stats) float64 { return float64(s.EgressSize) }).
		Counter("commands_refused_total", "Commands refused by the engine: ring full, read-only, or stopped.", func(s *engine.Stats) float64 { return float64(s.Refused) }).
		Gauge("read_only", "1 while orders are refused: the journal cannot write.", func(s *engine.Stats) float64 { return admin.BoolValue(s.Failed != nil) }).
		Gauge("cancels_only", "1 while only cancels are admitted: disk nearly full, or starting.", func(s *engine.Stats) float64 { return admin.BoolValue(s.Admission != engine.AdmitAll) })
}

// ConsumerLags returns the metrics of the consumers of the engine's events, by their names.
func ConsumerLags(read func() engine.Stats) prometheus.Collector {
	return admin.NewFamily("blockdesk_consumer_lag_events", "Events not released by a consumer of the engine. It grows for the slow consumer.", "consumer",
		prometheus.GaugeValue, func(send func(string, float64)) {
			for _, lag := range read().Consumers {
				send(lag.Name, float64(lag.Events))
			}
		})
}

// Journal returns the metrics of the journal's state.
func Journal(read func() persist.Health) prometheus.Collector {
	return admin.NewMetrics("blockdesk_", read).
		Gauge("journal_epoch", "Starts of the journal. It rises with each restart.", func(h *persist.Health) float64 { return float64(h.Epoch) }).
		Gauge("journal_failed", "1 after a failed journal write: read-only until a restart.", func(h *persist.Health) float64 { return admin.BoolValue(h.Failed != nil) }).
		Gauge("disk_free_ratio", "Free share of the journal's disk.", func(h *persist.Health) float64 { return float64(h.FreePercent) / 100 }).
		Gauge("disk_low", "1 while the disk is nearly full: only cancels are admitted.", func(h *persist.Health) float64 { return admin.BoolValue(h.Disk >= persist.DiskLow) }).
		Gauge("disk_level", "How full the disk is: 1 well, 2 old market data is deleted, 3 only cancels are admitted, 4 also no backup and no FIX message log.", func(h *persist.Health) float64 { return float64(h.Disk) }).
		Gauge("snapshot_seq", "Position of the newest snapshot.", func(h *persist.Health) float64 { return float64(h.SnapshotSeq) }).
		Gauge("snapshot_behind_commands", "Commands of the journal not applied by the snapshot engine.", func(h *persist.Health) float64 { return float64(h.SnapshotBehind) }).
		Gauge("snapshot_failed", "1 if the last snapshot failed: the journal grows.", func(h *persist.Health) float64 { return admin.BoolValue(h.SnapshotFailed != nil) })
}

// Sizes returns the metric of the space that the journal and the stores take.
func Sizes(read func() map[string]uint64) prometheus.Collector {
	return admin.NewFamily("blockdesk_store_bytes", "Space of the journal with its snapshots, or of a store, on the disk. A group's stores are one.", "store",
		prometheus.GaugeValue, func(send func(string, float64)) {
			for name, bytes := range read() {
				send(name, float64(bytes))
			}
		})
}

// JournalWrites returns the metrics of writes to the journal.
func JournalWrites(read func() persist.Stats) prometheus.Collector {
	return admin.NewMetrics("blockdesk_journal_", read).
		Counter("frames_total", "Frames written to the journal.", func(s *persist.Stats) float64 { return float64(s.Frames) }).
		Counter("bytes_total", "Bytes of frames written to the journal, before compression.", func(s *persist.Stats) float64 { return float64(s.Bytes) })
}

// JournalSyncs returns the histogram of sync times that the journal keeps.
func JournalSyncs(read func() persist.Stats) prometheus.Collector { return syncTimes{read} }

type syncTimes struct{ read func() persist.Stats }

func (syncTimes) desc() *prometheus.Desc {
	return prometheus.NewDesc("blockdesk_journal_sync_seconds",
		"Time until a write to the journal is on disk. In mode sync every order waits for it.", nil, nil)
}

// Describe implements prometheus.Collector.
func (s syncTimes) Describe(out chan<- *prometheus.Desc) { out <- s.desc() }

// Collect implements prometheus.Collector.
func (s syncTimes) Collect(out chan<- prometheus.Metric) {
	now := s.read().Syncs
	buckets := make(map[float64]uint64, len(now.Within))
	for bound, n := range now.Within {
		buckets[bound.Seconds()] = n
	}
	out <- prometheus.MustNewConstHistogram(s.desc(), now.Count, now.Sum.Seconds(), buckets)
}

// Feed returns the metrics of the market data feed.
func Feed(read func() feed.Stats) prometheus.Collector {
	return admin.NewMetrics("blockdesk_", read).
		Gauge("market_data_seq", "Last command shown by market data.", func(s *feed.Stats) float64 { return float64(s.EngineSeq) }).
		Gauge("feed_lag_seconds", "Time from the engine's stamp on the last batch to its publication; 0 on a quiet market.", func(s *feed.Stats) float64 { return s.Lag.Seconds() }).
		Gauge("ws_connections", "Open WebSocket connections.", func(s *feed.Stats) float64 { return float64(s.WebSockets()) }).
		Gauge("ws_compressed_connections", "Compressed WebSocket connections.", func(s *feed.Stats) float64 { return float64(s.Compressed) }).
		Gauge("stream_connections", "Open event-stream connections.", func(s *feed.Stats) float64 { return float64(s.Streams) }).
		Gauge("feed_subscriptions", "Subscriptions: one for each connection, channel and symbol.", func(s *feed.Stats) float64 { return float64(s.Subscriptions) }).
		Counter("feed_messages_total", "Messages written to WebSockets and streams.", func(s *feed.Stats) float64 { return float64(s.MessagesOut) }).
		Counter("feed_bytes_total", "Bytes written to WebSockets and streams.", func(s *feed.Stats) float64 { return float64(s.BytesOut) }).
		Counter("feed_updates_total", "Encoded updates, each once for all subscribers.", func(s *feed.Stats) float64 { return float64(s.Encoded) }).
		Counter("feed_conflated_total", "Ticker updates skipped by a blocked connection.", func(s *feed.Stats) float64 { return float64(s.Conflated) }).
		Counter("feed_collapsed_total", "Snapshots sent to slow connections in place of pending updates.", func(s *feed.Stats) float64 { return float64(s.Collapsed) }).
		Counter("feed_overruns_total", "Times a shard of the feed was too far behind and continued with snapshots: too little CPU.", func(s *feed.Stats) float64 { return float64(s.Overruns) }).
		Counter("feed_connections_refused_total", "WebSockets and streams refused by a limit (feed.connections_per_ip, feed.max_connections).", func(s *feed.Stats) float64 { return float64(s.Refused) }).
		Counter("ws_slow_consumers_total", "WebSockets and event streams closed as too slow.", func(s *feed.Stats) float64 { return float64(s.SlowConsumers) })
}

// History returns the metrics of the archive of trades and candles.
func History(read func() archive.Stats) prometheus.Collector {
	return admin.NewMetrics("blockdesk_history_", read).
		Counter("trades_total", "Archived trades.", func(s *archive.Stats) float64 { return float64(s.Trades) }).
		Gauge("cursor_seq", "Last command in the archive of trades and candles.", func(s *archive.Stats) float64 { return float64(s.Cursor) })
}

// FIX returns the metrics of the FIX gateway.
func FIX(read func() fixgw.Stats) prometheus.Collector {
	return admin.NewMetrics("blockdesk_fix_", read).
		Gauge("sessions", "FIX sessions logged on.", func(s *fixgw.Stats) float64 { return float64(s.Sessions) }).
		Gauge("connections", "Open FIX connections, before logon too.", func(s *fixgw.Stats) float64 { return float64(s.Connections) }).
		Gauge("live_orders", "Orders of FIX sessions resting in a book.", func(s *fixgw.Stats) float64 { return float64(s.LiveOrders) }).
		Gauge("subscriptions", "Market data subscriptions over FIX.", func(s *fixgw.Stats) float64 { return float64(s.Subscriptions) }).
		Gauge("cursor_seq", "Last command reported by the FIX gateway.", func(s *fixgw.Stats) float64 { return float64(s.Cursor) }).
		Counter("messages_received_total", "Messages received by sessions.", func(s *fixgw.Stats) float64 { return float64(s.MessagesIn) }).
		Counter("messages_sent_total", "Application messages sent.", func(s *fixgw.Stats) float64 { return float64(s.MessagesOut) }).
		Counter("rejects_total", "Rejected messages of clients.", func(s *fixgw.Stats) float64 { return float64(s.Rejects) }).
		Counter("duplicates_total", "Orders with a repeated ClOrdID, answered by the first report.", func(s *fixgw.Stats) float64 { return float64(s.Duplicates) }).
		Counter("rate_limited_total", "Messages refused above fix.messages_per_second.", func(s *fixgw.Stats) float64 { return float64(s.RateLimited) }).
		Counter("overloaded_total", "Messages refused: the engine's ring was full.", func(s *fixgw.Stats) float64 { return float64(s.Overloaded) }).
		Counter("logouts_total", "Sessions logged out by the service.", func(s *fixgw.Stats) float64 { return float64(s.Kicked) }).
		Counter("logons_refused_total", "Refused logons; `blockdesk fix sessions` has the reasons.", func(s *fixgw.Stats) float64 { return float64(s.RefusedLogons) }).
		Counter("connections_refused_total", "FIX connections refused as too many.", func(s *fixgw.Stats) float64 { return float64(s.RefusedConns) }).
		Counter("lost_events_total", "Reports for sessions no longer configured.", func(s *fixgw.Stats) float64 { return float64(s.LostEvents) }).
		Counter("market_data_conflated_total", "FIX market data updates replaced by a snapshot for slow clients.", func(s *fixgw.Stats) float64 { return float64(s.ConflatedUpdates) }).
		Counter("market_data_trades_dropped_total", "Trades dropped from FIX market data for slow clients.", func(s *fixgw.Stats) float64 { return float64(s.DroppedTrades) }).
		Counter("unlogged_messages_total", "Messages missing in the FIX message log: full queue.", func(s *fixgw.Stats) float64 { return float64(s.UnloggedMessages) })
}

// Broadcast returns the metrics of the transactions that the desk sends.
func Broadcast(read func() broadcast.Stats) prometheus.Collector {
	return admin.NewMetrics("blockdesk_settlement_", read).
		Counter("sends_total", "Sends of a signed transaction, repetitions included.", func(s *broadcast.Stats) float64 { return float64(s.Sends) }).
		Counter("send_errors_total", "Sends refused by a node.", func(s *broadcast.Stats) float64 { return float64(s.SendErrors) }).
		Counter("finalized_total", "Signed transactions final on the chain.", func(s *broadcast.Stats) float64 { return float64(s.Finalized) }).
		Counter("failed_total", "Signed transactions failed on the chain.", func(s *broadcast.Stats) float64 { return float64(s.Failed) }).
		Counter("expired_total", "Signed transactions not landed before their last block.", func(s *broadcast.Stats) float64 { return float64(s.Expired) }).
		Counter("given_up_total", "Signed transactions given up by an operator.", func(s *broadcast.Stats) float64 { return float64(s.GivenUp) })
}

// Fanout returns the metrics of the fan-out, which names them without the prefix of the
// service. read may return nil before the fan-out runs.
func Fanout(read func() []fanout.Metric) prometheus.Collector { return fanoutMetrics{read} }

type fanoutMetrics struct{ read func() []fanout.Metric }

// Describe sends nothing, because the metrics are known only once the fan-out runs.
func (fanoutMetrics) Describe(chan<- *prometheus.Desc) {}

// Collect sends the current values.
func (f fanoutMetrics) Collect(out chan<- prometheus.Metric) {
	for _, m := range f.read() {
		kind := prometheus.CounterValue
		if m.Gauge {
			kind = prometheus.GaugeValue
		}
		out <- prometheus.MustNewConstMetric(prometheus.NewDesc("blockdesk_"+m.Name, m.Help, nil, nil), kind, m.Value)
	}
}
