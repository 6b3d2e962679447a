package fanout

import "sync/atomic"

// Metric is one figure for monitoring.
type Metric struct {
	Name string // without the service's prefix
	Help string
	// Gauge: it may fall. Else it counts up from the start.
	Gauge bool
	Value float64
}

func counter(name, help string, v *atomic.Uint64) Metric {
	return Metric{Name: name, Help: help, Value: float64(v.Load())}
}

func gauge(name, help string, v float64) Metric {
	return Metric{Name: name, Help: help, Gauge: true, Value: v}
}

// Metrics returns the publisher's figures. Any goroutine.
func (p *Publisher) Metrics() []Metric {
	s := &p.stats
	return []Metric{
		counter("fanout_frames_total", "Durable frames published to followers.", &s.Frames),
		counter("fanout_messages_total", "Messages that these frames went in.", &s.Messages),
		counter("fanout_bytes_total", "Bytes of these frames.", &s.Bytes),
		counter("fanout_unsent_frames_total", "Frames not published for want of a server; followers find them in the stream.", &s.Unsent),
		gauge("fanout_live_seq", "Last command that was published or passed over.", float64(s.LiveSeq.Load())),
		gauge("fanout_cached_seq", "Last command that the stream has acknowledged.", float64(s.CachedSeq.Load())),
		counter("fanout_stream_acks_total", "Messages that the stream has acknowledged.", &s.Acked),
		counter("fanout_stream_refused_total", "Messages that the stream has not acknowledged.", &s.Refused),
		counter("fanout_stream_fills_total", "Times that an empty stream was filled from the journal.", &s.Fills),
		counter("fanout_snapshot_pieces_total", "Pieces of snapshots given to followers.", &s.Pieces),
		counter("fanout_snapshot_unanswered_total", "Requests for such a piece that were not answered.", &s.Unanswered),
		counter("fanout_queue_overflows_total", "Times that the queue of such requests was full.", &s.Overflows),
		counter("fanout_reconnects_total", "Times that the leader was connected to a NATS server again.", &s.Reconnects),
	}
}

// Metrics returns the follower's figures. Any goroutine.
func (f *Follower) Metrics() []Metric {
	s, lag := &f.stats, f.Lag()
	ready := 0.0
	if f.Ready() == nil {
		ready = 1
	}
	return []Metric{
		gauge("follower_ready", "1 where the follower is level with its leader.", ready),
		gauge("follower_term", "Term of the leader that is followed; 0 where none was heard.", float64(lag.Term)),
		gauge("follower_seq", "Last command applied.", float64(lag.Seq)),
		gauge("follower_leader_seq", "Last command durable at the leader, as it said last.", float64(lag.Leader)),
		gauge("follower_behind_commands", "Commands that the follower is behind the leader, as it said last.", float64(lag.Commands)),
		gauge("follower_delay_seconds", "From the newest applied command's stamp at the leader to its application here, by two clocks.", lag.Delay.Seconds()),
		gauge("follower_stale_seconds", "Since the follower last had all that the leader had said.", lag.Stale.Seconds()),
		gauge("follower_silent_seconds", "Since the leader was last heard.", lag.Silent.Seconds()),
		counter("follower_frames_total", "Frames applied.", &s.Frames),
		counter("follower_commands_total", "Commands applied.", &s.Commands),
		counter("follower_gaps_total", "Gaps seen in what came live.", &s.Gaps),
		counter("follower_refilled_frames_total", "Frames applied from the stream.", &s.Refilled),
		counter("follower_duplicate_frames_total", "Frames that had been applied before.", &s.Duplicates),
		counter("follower_damaged_messages_total", "Messages with a wrong form or checksum.", &s.Damaged),
		counter("follower_stale_messages_total", "Messages of a leader of an earlier term.", &s.Stale),
		counter("follower_foreign_frames_total", "Frames of the stream that belong to another history.", &s.Foreign),
		counter("follower_queue_overflows_total", "Times that the queue of live messages was full.", &s.Overflows),
		counter("follower_snapshots_total", "Snapshots fetched from the leader.", &s.Snapshots),
		counter("follower_snapshot_bytes_total", "Bytes of snapshots fetched.", &s.SnapshotBytes),
		counter("follower_reconnects_total", "Times that the follower was connected to a NATS server again.", &s.Reconnects),
	}
}
