package cluster

import (
	"github.com/prometheus/client_golang/prometheus"

	"blockdesk/httpgw/admin"
	"blockdesk/persist/quorum"
	"blockdesk/service/metrics"
)

// collectors are the metrics of a group's node, whether it leads or not.
func (m *Node) collectors() []prometheus.Collector {
	return []prometheus.Collector{
		admin.NewMetrics("blockdesk_cluster_", m.node.Status).
			Gauge("leader", "1 while this node leads its group.", func(s *quorum.Status) float64 { return admin.BoolValue(s.Role == quorum.Leader) }).
			Gauge("leader_known", "1 while this node knows a leader. None for long: no majority of the voters is reached.", func(s *quorum.Status) float64 { return admin.BoolValue(s.Leader.ID != "") }).
			Gauge("term", "The group's term as this node knows it. A step of it is an election.", func(s *quorum.Status) float64 { return float64(s.Term) }).
			Gauge("voters", "Voters of the group, as this node's log has it.", func(s *quorum.Status) float64 { return float64(voters(s.Members)) }).
			Gauge("log_index", "Last entry of this node's log.", func(s *quorum.Status) float64 { return float64(s.LastIndex) }).
			Gauge("committed_index", "Last entry that this node knows to be on a majority.", func(s *quorum.Status) float64 { return float64(s.Committed) }).
			Gauge("applied_index", "Last entry that this node has applied.", func(s *quorum.Status) float64 { return float64(s.Applied) }).
			Gauge("leader_contact_seconds", "How long ago this node heard from the leader: 0 on the leader, -1 where it never did.", func(s *quorum.Status) float64 { return max(-1, s.Contact.Seconds()) }).
			Gauge("warm_jobs_waiting", "What this node's replica, from which it would begin to lead, has yet to apply, in frames.", func(s *quorum.Status) float64 { return float64(s.Waiting) }).
			Gauge("node_failed", "1 once this node has left its group, since its disk failed or its log does not fit: until a restart.", func(s *quorum.Status) float64 { return admin.BoolValue(s.Failed != nil) }),
		admin.NewMetrics("blockdesk_cluster_", m.node.Ready).
			Gauge("node_level", "1 while this node takes part, hears a leader and has judged nearly all that is committed: it can take the lead.", func(err *error) float64 { return admin.BoolValue(*err == nil) }),
		admin.NewMetrics("blockdesk_cluster_", m.config.differing).
			Gauge("config_differs", "Nodes of the group that are configured differently from this one, in what has to be alike, as this one has heard last.", func(d *map[string][]string) float64 { return float64(len(*d)) }),
		admin.NewMetrics("blockdesk_cluster_", m.node.Counts).
			Counter("elections_total", "Leaders that this node has seen come up.", func(c *quorum.Counts) float64 { return float64(c.Elections) }).
			Counter("terms_total", "Times that this node has come to lead.", func(c *quorum.Counts) float64 { return float64(c.Terms) }).
			Counter("commits_total", "Entries that this node has proposed and that a majority has.", func(c *quorum.Counts) float64 { return float64(c.Commits) }).
			Counter("commits_failed_total", "Entries that this node has proposed and that were refused, or of which it does not know.", func(c *quorum.Counts) float64 { return float64(c.Failed) }).
			Counter("frames_total", "Frames of any leader that were committed and judged good here.", func(c *quorum.Counts) float64 { return float64(c.Frames) }).
			Counter("frame_bytes_total", "Bytes of those frames.", func(c *quorum.Counts) float64 { return float64(c.Bytes) }).
			Counter("entries_refused_total", "Committed entries that came too late or did not follow: what a leader of the past has still proposed.", func(c *quorum.Counts) float64 { return float64(c.Refused) }).
			Counter("snapshots_total", "Snapshots that this node has written.", func(c *quorum.Counts) float64 { return float64(c.Snapshots) }).
			Counter("snapshots_failed_total", "Snapshots that it could not write: the log grows.", func(c *quorum.Counts) float64 { return float64(c.SnapshotsFailed) }).
			Counter("restores_total", "Snapshots that this node was made from: at its start, or sent by a leader since it was too far behind.", func(c *quorum.Counts) float64 { return float64(c.Restores) }),
	}
}

// standbyCollectors are all metrics of a node that does not lead. Those of its disk
// and log have the names that they have on a single node.
func (m *Node) standbyCollectors() []prometheus.Collector {
	all := append(metrics.Process(m.cfg.Durability.Mode), m.collectors()...)
	return append(all, metrics.Journal(m.node.Health), metrics.JournalWrites(m.node.Stats), metrics.JournalSyncs(m.node.Stats))
}

// voters counts those that vote.
func voters(members []quorum.Member) (n int) {
	for i := range members {
		if members[i].Voter {
			n++
		}
	}
	return n
}
