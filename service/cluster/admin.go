package cluster

import (
	"errors"
	"fmt"
	"time"

	"blockdesk/httpgw/admin"
	"blockdesk/persist/quorum"
	"blockdesk/service/program"
)

// groupAdmin implements admin.Cluster.
type groupAdmin struct{ node *Node }

// Status implements admin.Cluster.
func (d groupAdmin) Status() admin.ClusterStatus {
	m := d.node
	s, health, config := m.node.Status(), m.node.Health(), m.config.fingerprint()
	out := admin.ClusterStatus{
		OK: true, ID: s.ID, Version: program.Version, UptimeS: int64(time.Since(m.started).Seconds()),
		Role: roleWord(s.Role), Serves: m.service.Load() != nil, Failed: s.Failed != nil,
		Term: s.Term, LogIndex: s.LastIndex, CommittedIndex: s.Committed, AppliedIndex: s.Applied,
		ContactMS: max(-1, s.Contact.Milliseconds()), DiskFreePercent: health.FreePercent, DiskLow: health.Disk >= quorum.DiskLow,
		ConfigFingerprint: config.Whole, ConfigParts: config.Parts, ConfigDiffers: m.config.differing(),
		Members: []admin.ClusterMember{},
	}
	if s.Leader.ID != "" {
		out.Leader = m.member(quorum.Member{Peer: s.Leader, Voter: true})
	}
	out.LogFormat, out.NewestFormat = int(m.node.Format()), quorum.MaxFormat
	out.NoMemory = errors.Is(m.node.Admission(), quorum.ErrEmptyFolder)
	if err := m.node.Ready(); err != nil {
		out.Problem = err.Error()
	} else {
		out.InSync = true
	}
	for i := range s.Members {
		out.Members = append(out.Members, m.member(s.Members[i]))
	}
	return out
}

// roleWord returns the word for a role. A raft follower is a standby here: a follower is
// a process that reads from NATS.
func roleWord(r quorum.Role) string {
	if r == quorum.Follower {
		return "standby"
	}
	return r.String()
}

// member returns a member with its admin address, if the configuration has it.
func (m *Node) member(of quorum.Member) admin.ClusterMember {
	out := admin.ClusterMember{ID: of.ID, Address: of.Address, Voter: of.Voter}
	if p := m.cfg.Peer(of.ID); p != nil {
		out.AdminURL = p.Admin
	}
	return out
}

// Add implements admin.Cluster. A member must be removed before it is added at another
// address. A voter stays a voter.
func (d groupAdmin) Add(id, address string, voter bool) error {
	n := d.node.node
	for _, m := range n.Status().Members {
		switch {
		case (m.ID == id) != (m.Address == address):
			return fmt.Errorf("%w: %s at %s", admin.ErrClusterTaken, m.ID, m.Address)
		case m.ID == id && (m.Voter || !voter):
			return d.leads()
		}
	}
	if voter {
		return clusterError(n.AddVoter(id, address))
	}
	return clusterError(n.AddNonvoter(id, address))
}

// Remove implements admin.Cluster.
func (d groupAdmin) Remove(id string) error {
	n := d.node.node
	if err := d.leads(); err != nil {
		return err
	}
	if id == n.Status().ID {
		return admin.ErrClusterSelf
	}
	for _, m := range n.Status().Members {
		if m.ID == id {
			return clusterError(n.Remove(id))
		}
	}
	return fmt.Errorf("%w: %s", admin.ErrClusterUnknown, id)
}

// Transfer implements admin.Cluster.
func (d groupAdmin) Transfer() error {
	if err := d.leads(); err != nil {
		return err
	}
	return clusterError(d.node.node.Transfer())
}

// Finalize implements admin.Cluster. The service starts again in a new term, because a term
// keeps the format that it began with.
func (d groupAdmin) Finalize() error {
	n := d.node.node
	if err := d.leads(); err != nil {
		return err
	}
	if n.Format() == quorum.MaxFormat {
		return nil
	}
	if err := n.Finalize(); err != nil {
		return clusterError(err)
	}
	d.node.log.Info("upgrade of the group finalized", "log_format", n.Format())
	return clusterError(n.Restart())
}

// leads returns an error unless this node leads.
func (d groupAdmin) leads() error {
	if s := d.node.node.Status(); s.Role != quorum.Leader {
		return fmt.Errorf("%w: %s is the leader", admin.ErrClusterLeader, s.Leader.ID)
	}
	return nil
}

// clusterError translates errors of the quorum into those of the admin address.
func clusterError(err error) error {
	switch {
	case errors.Is(err, quorum.ErrDeposed), errors.Is(err, quorum.ErrStopped):
		return errors.Join(admin.ErrClusterLeader, err)
	case errors.Is(err, quorum.ErrOldMember):
		return errors.Join(admin.ErrClusterOld, err)
	case errors.Is(err, quorum.ErrMember):
		return errors.Join(admin.ErrClusterAddress, err)
	}
	return err
}
