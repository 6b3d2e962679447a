package httpgw

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Sources are the functions that /metrics asks about other rooms, at each
// scrape. They must not block. A nil one leaves its metric out.
type Sources struct {
	Version     string // of the program, for blockdesk_build_info
	JournalMode string // sync, interval or quorum

	EngineSeq     func() uint64        // last command applied
	DurableSeq    func() uint64        // last command on disk
	IngressFill   func() int           // commands waiting in the ingress ring
	EgressFill    func() int           // events waiting in the egress ring
	Refused       func() uint64        // commands refused: ring full, read-only, stopped
	JournalFrames func() uint64        // frames written since the start
	JournalBytes  func() uint64        // bytes written since the start
	SnapshotAge   func() time.Duration // since the newest snapshot
	ReadOnly      func() bool          // no order is taken
	FIXSessions   func() int           // logged on
	FIXReloads    func() uint64        // of the participants file, that are in force
	FIXRefused    func() bool          // the participants file as it is now is not in force
	WSConnections func() int           // open
	Streams       func() int           // of server-sent events, open
	WSSlow        func() uint64        // consumers cut off as too slow
	MarketDataSeq func() uint64        // last command whose events readers see
}

// collectors returns the metrics that have a source.
func (s *Sources) collectors() []prometheus.Collector {
	var all []prometheus.Collector
	gauge := func(name, help string, value func() float64) {
		all = append(all, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
	}
	counter := func(name, help string, value func() uint64) {
		if value != nil {
			all = append(all, prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help},
				func() float64 { return float64(value()) }))
		}
	}
	number := func(name, help string, value func() int) {
		if value != nil {
			gauge(name, help, func() float64 { return float64(value()) })
		}
	}
	seq := func(name, help string, value func() uint64) {
		if value != nil {
			gauge(name, help, func() float64 { return float64(value()) })
		}
	}
	label := func(name, help, key, value string) {
		if value != "" {
			one := prometheus.NewGauge(prometheus.GaugeOpts{
				Name: name, Help: help, ConstLabels: prometheus.Labels{key: value},
			})
			one.Set(1)
			all = append(all, one)
		}
	}
	label("blockdesk_build_info", "Always 1; the label is the program's version.", "version", s.Version)
	label("blockdesk_journal_mode", "Always 1; the label says what acknowledged means: sync = on disk, "+
		"interval = soon on disk, quorum = on a majority.", "mode", s.JournalMode)
	seq("blockdesk_engine_seq", "Sequence number of the last command that the engine applied.", s.EngineSeq)
	seq("blockdesk_durable_seq", "Sequence number of the last command that is durable.", s.DurableSeq)
	seq("blockdesk_market_data_seq", "Sequence number of the last command that market data shows.", s.MarketDataSeq)
	number("blockdesk_ingress_ring_commands", "Commands in the ingress ring.", s.IngressFill)
	number("blockdesk_egress_ring_events", "Events in the egress ring that some consumer has not released.", s.EgressFill)
	counter("blockdesk_commands_refused_total", "Commands refused at the door of the engine: "+
		"ring full, read-only, or stopped.", s.Refused)
	counter("blockdesk_journal_frames_total", "Frames written to the journal since the start.", s.JournalFrames)
	counter("blockdesk_journal_bytes_total", "Bytes written to the journal since the start.", s.JournalBytes)
	if s.SnapshotAge != nil {
		gauge("blockdesk_snapshot_age_seconds", "Age of the newest snapshot.",
			func() float64 { return s.SnapshotAge().Seconds() })
	}
	if s.ReadOnly != nil {
		gauge("blockdesk_read_only", "1 while no order is taken, since it could not be made durable.", func() float64 { return oneIf(s.ReadOnly()) })
	}
	number("blockdesk_fix_sessions", "FIX sessions logged on.", s.FIXSessions)
	counter("blockdesk_fix_participants_reloads_total", "Times that a changed participants file came in force.", s.FIXReloads)
	if s.FIXRefused != nil {
		gauge("blockdesk_fix_participants_refused", "1 while the participants file as it is now is refused, and an older state is in force.", func() float64 { return oneIf(s.FIXRefused()) })
	}
	number("blockdesk_ws_connections", "Open WebSocket connections.", s.WSConnections)
	number("blockdesk_stream_connections", "Open connections with server-sent events.", s.Streams)
	counter("blockdesk_ws_slow_consumers_total", "Connections with WebSockets or server-sent events closed because they did "+
		"not keep up.", s.WSSlow)
	return all
}

// oneIf is a condition as a metric.
func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
