package cluster

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"blockdesk/httpgw/admin"
	"blockdesk/persist/quorum"
	"blockdesk/service/metrics"
)

// collectors returns the metrics of a node, leader or not.
func (m *Node) collectors() []prometheus.Collector {
	return []prometheus.Collector{
		admin.NewMetrics("blockdesk_cluster_", m.node.Status).
			Gauge("leader", "1 while this node leads.", func(s *quorum.Status) float64 { return admin.BoolValue(s.Role == quorum.Leader) }).
			Gauge("leader_known", "1 while this node knows a leader.", func(s *quorum.Status) float64 { return admin.BoolValue(s.Leader.ID != "") }).
			Gauge("term", "The group's term known here. It rises with each election.", func(s *quorum.Status) float64 { return float64(s.Term) }).
			Gauge("voters", "Voters of the group known here.", func(s *quorum.Status) float64 { return float64(voters(s.Members)) }).
			Gauge("log_index", "Last entry of this node's log.", func(s *quorum.Status) float64 { return float64(s.LastIndex) }).
			Gauge("committed_index", "Last committed entry known here.", func(s *quorum.Status) float64 { return float64(s.Committed) }).
			Gauge("applied_index", "Last entry applied here.", func(s *quorum.Status) float64 { return float64(s.Applied) }).
			Gauge("leader_contact_seconds", "Time since the last contact with the leader: 0 on the leader, -1 before the first.", func(s *quorum.Status) float64 { return max(-1, s.Contact.Seconds()) }).
			Gauge("warm_jobs_waiting", "Frames not yet applied by the hot standby replica.", func(s *quorum.Status) float64 { return float64(s.Waiting) }).
			Gauge("node_failed", "1 after this node left its group until a restart: its disk failed or its log diverged.", func(s *quorum.Status) float64 { return admin.BoolValue(s.Failed != nil) }),
		admin.NewMetrics("blockdesk_cluster_", m.node.Admission).
			Gauge("node_no_memory", "1 while this node takes no part: its data folder was empty though the group has a log.", func(err *error) float64 { return admin.BoolValue(errors.Is(*err, quorum.ErrEmptyFolder)) }),
		admin.NewMetrics("blockdesk_cluster_", m.node.Format).
			Gauge("log_format", "Format of the group's log: 1 is 0.1.0's, 2 the newest.", func(v *uint16) float64 { return float64(*v) }),
		admin.NewMetrics("blockdesk_cluster_", m.node.Ready).
			Gauge("node_level", "1 while this node is in sync.", func(err *error) float64 { return admin.BoolValue(*err == nil) }),
		admin.NewMetrics("blockdesk_cluster_", m.config.differing).
			Gauge("config_differs", "Nodes of the group configured differently.", func(d *map[string][]string) float64 { return float64(len(*d)) }),
		admin.NewMetrics("blockdesk_cluster_", m.node.Counts).
			Counter("elections_total", "Elections of a leader seen here.", func(c *quorum.Counts) float64 { return float64(c.Elections) }).
			Counter("terms_total", "Terms led here.", func(c *quorum.Counts) float64 { return float64(c.Terms) }).
			Counter("commits_total", "Entries proposed here and committed.", func(c *quorum.Counts) float64 { return float64(c.Commits) }).
			Counter("commits_failed_total", "Entries proposed here and refused, or of unknown outcome.", func(c *quorum.Counts) float64 { return float64(c.Failed) }).
			Counter("frames_total", "Valid committed frames of any leader.", func(c *quorum.Counts) float64 { return float64(c.Frames) }).
			Counter("frame_bytes_total", "Bytes of the valid committed frames.", func(c *quorum.Counts) float64 { return float64(c.Bytes) }).
			Counter("entries_refused_total", "Committed entries that came late or out of order, of an earlier leader.", func(c *quorum.Counts) float64 { return float64(c.Refused) }).
			Counter("snapshots_total", "Snapshots written.", func(c *quorum.Counts) float64 { return float64(c.Snapshots) }).
			Counter("snapshots_failed_total", "Snapshots not written. The log grows.", func(c *quorum.Counts) float64 { return float64(c.SnapshotsFailed) }).
			Counter("restores_total", "Snapshots that restored this node.", func(c *quorum.Counts) float64 { return float64(c.Restores) }),
	}
}

// standbyCollectors returns all metrics of a node that does not lead. Those of its disk and
// log have the same names as on a single node.
func (m *Node) standbyCollectors() []prometheus.Collector {
	all := append(metrics.Process(m.cfg.Durability.Mode), m.collectors()...)
	return append(all, metrics.Journal(m.node.Health), metrics.JournalWrites(m.node.Stats), metrics.JournalSyncs(m.node.Stats))
}

// voters counts the voters.
func voters(members []quorum.Member) (n int) {
	for i := range members {
		if members[i].Voter {
			n++
		}
	}
	return n
}
