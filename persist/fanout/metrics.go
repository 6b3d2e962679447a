package fanout

import "sync/atomic"

// Metric is one figure for monitoring.
type Metric struct {
	Name string // without the service's prefix
	Help string
	// false: a counter from the start
	Gauge bool
	Value float64
}

func counter(name, help string, v *atomic.Uint64) Metric {
	return Metric{Name: name, Help: help, Value: float64(v.Load())}
}

func gauge(name, help string, v float64) Metric {
	return Metric{Name: name, Help: help, Gauge: true, Value: v}
}

// Metrics returns the publisher's metrics. Any goroutine.
func (p *Publisher) Metrics() []Metric {
	s := &p.stats
	return []Metric{
		counter("fanout_frames_total", "Published durable frames.", &s.Frames),
		counter("fanout_messages_total", "Published messages of frames.", &s.Messages),
		counter("fanout_bytes_total", "Bytes of published frames.", &s.Bytes),
		counter("fanout_unsent_frames_total", "Frames not published for lack of a server.", &s.Unsent),
		gauge("fanout_live_seq", "Last command published, or pruned before.", float64(s.LiveSeq.Load())),
		gauge("fanout_cached_seq", "Last command acknowledged by the stream.", float64(s.StreamSeq.Load())),
		counter("fanout_stream_acks_total", "Messages acknowledged by the stream.", &s.Acked),
		counter("fanout_stream_refused_total", "Messages not acknowledged by the stream.", &s.Refused),
		counter("fanout_stream_fills_total", "Times an empty stream was filled from the journal.", &s.Fills),
		counter("fanout_snapshot_pieces_total", "Snapshot pieces sent to followers.", &s.Pieces),
		counter("fanout_snapshot_unanswered_total", "Requests for snapshot pieces left unanswered.", &s.Unanswered),
		counter("fanout_queue_overflows_total", "Overflows of the queue of snapshot requests.", &s.Overflows),
		counter("fanout_reconnects_total", "Reconnections to a NATS server.", &s.Reconnects),
	}
}

// Metrics returns the follower's metrics. Any goroutine.
func (f *Follower) Metrics() []Metric {
	s, lag := &f.stats, f.Lag()
	ready := 0.0
	if f.Ready() == nil {
		ready = 1
	}
	return []Metric{
		gauge("follower_ready", "1 if the follower is in sync.", ready),
		gauge("follower_term", "Term of the leader; 0 if none was heard.", float64(lag.Term)),
		gauge("follower_seq", "Last command applied.", float64(lag.Seq)),
		gauge("follower_leader_seq", "Last durable command of the leader, by its last heartbeat.", float64(lag.Leader)),
		gauge("follower_behind_commands", "Commands behind the leader's last heartbeat.", float64(lag.Commands)),
		gauge("follower_delay_seconds", "Time from the newest command's stamp at the leader to its application, by two clocks.", lag.Delay.Seconds()),
		gauge("follower_stale_seconds", "Time since the follower was last in sync.", lag.Stale.Seconds()),
		gauge("follower_silent_seconds", "Time since the leader was heard.", lag.Silent.Seconds()),
		counter("follower_frames_total", "Frames applied.", &s.Frames),
		counter("follower_commands_total", "Commands applied.", &s.Commands),
		counter("follower_gaps_total", "Gaps detected in the live frames.", &s.Gaps),
		counter("follower_refilled_frames_total", "Frames applied from the stream.", &s.Refilled),
		counter("follower_duplicate_frames_total", "Frames received again.", &s.Duplicates),
		counter("follower_damaged_messages_total", "Messages with a wrong form or checksum.", &s.Damaged),
		counter("follower_stale_messages_total", "Messages from a leader of an earlier term.", &s.Stale),
		counter("follower_foreign_frames_total", "Stream frames that do not follow what was applied.", &s.Foreign),
		counter("follower_queue_overflows_total", "Overflows of the queue of live messages.", &s.Overflows),
		counter("follower_snapshots_total", "Snapshots fetched.", &s.Snapshots),
		counter("follower_snapshot_bytes_total", "Bytes of snapshots fetched.", &s.SnapshotBytes),
		counter("follower_reconnects_total", "Reconnections to a NATS server.", &s.Reconnects),
	}
}
