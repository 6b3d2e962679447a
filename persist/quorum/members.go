package quorum

import (
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"
)

// memberTimeout bounds the wait for a membership change to be accepted.
const memberTimeout = 5 * time.Second

// ErrMember refuses a membership change with an invalid id or address.
var ErrMember = errors.New("quorum: invalid member")

// AddVoter adds a node as a voter, or promotes a non-voter. The node runs at that
// address, with Options.Join. Only the leader can do this; on any other node the error
// wraps ErrDeposed.
func (n *Node) AddVoter(id, address string) error {
	return n.join(id, address, func(r *raft.Raft) raft.Future {
		return r.AddVoter(raft.ServerID(id), raft.ServerAddress(address), 0, memberTimeout)
	})
}

// AddNonvoter adds a node that gets the log and does not vote: a new node before it has
// caught up.
func (n *Node) AddNonvoter(id, address string) error {
	return n.join(id, address, func(r *raft.Raft) raft.Future {
		return r.AddNonvoter(raft.ServerID(id), raft.ServerAddress(address), 0, memberTimeout)
	})
}

// Remove removes a node from the group for good: its ID must not come back with an
// empty folder.
func (n *Node) Remove(id string) error {
	return n.change(id, n.o.Bind, func(r *raft.Raft) raft.Future { return r.RemoveServer(raft.ServerID(id), 0, memberTimeout) })
}

// Transfer hands the leadership to a voter that has the whole log. Call it before a
// leader is stopped. It returns when another node leads or the transfer has failed.
// Commands under way end with the term.
func (n *Node) Transfer() error {
	return n.change(n.o.ID, n.o.Bind, func(r *raft.Raft) raft.Future { return r.LeadershipTransfer() })
}

// join is change for a node that must read the log.
func (n *Node) join(id, address string, do func(*raft.Raft) raft.Future) error {
	if err := n.o.validateMember(id, address); err != nil {
		return err
	}
	if err := n.checkReads(Peer{ID: id, Address: address}); err != nil {
		return err
	}
	return n.change(id, address, do)
}

func (o *Options) validateMember(id, address string) error {
	if id == "" || len(id) > MaxNameBytes {
		return fmt.Errorf("%w: an id of %d bytes: must be 1 to %d", ErrMember, len(id), MaxNameBytes)
	}
	if err := o.validateAddress("member "+id, address); err != nil {
		return fmt.Errorf("%w: %w", ErrMember, err)
	}
	return nil
}

func (n *Node) change(id, address string, do func(*raft.Raft) raft.Future) error {
	if err := n.o.validateMember(id, address); err != nil {
		return err
	}
	r, err := n.running()
	if err != nil {
		return err
	}
	err = do(r).Error()
	if deposed(err) {
		return &DeposedError{Leader: n.Leader(), Err: err}
	}
	return err
}

// Role is a node's role in its group.
type Role uint8

const (
	Follower  Role = 1
	Candidate Role = 2
	Leader    Role = 3
	Stopped   Role = 4
)

// String returns the name of the role.
func (r Role) String() string {
	if r < Follower || r > Stopped {
		return "role?"
	}
	return [...]string{Follower: "follower", Candidate: "candidate", Leader: "leader", Stopped: "stopped"}[r]
}

// Member is a node of the group's current configuration.
type Member struct {
	Peer
	Voter bool
}

// Status describes a node.
type Status struct {
	ID     string
	Role   Role
	Term   uint64
	Leader Peer
	// LastIndex, Committed and Applied are the last entries in this node's log, known
	// to be on a majority, and applied here. Committed minus Applied is its lag.
	LastIndex, Committed, Applied uint64
	// Contact is the time since the leader's last message; 0 on the leader,
	// negative if there was none.
	Contact time.Duration
	// Waiting is the number of jobs in the standby replica's queue.
	Waiting int
	Members []Member
	Failed  error
}

// Status waits for no disk and no other node. Any goroutine.
func (n *Node) Status() Status {
	s := Status{ID: n.o.ID, Role: Stopped, Failed: n.Failed(), Waiting: len(n.standby.jobs)}
	r, err := n.running()
	if err != nil {
		return s
	}
	switch r.State() {
	case raft.Follower:
		s.Role = Follower
	case raft.Candidate:
		s.Role = Candidate
	case raft.Leader:
		s.Role = Leader
	}
	s.Term, s.Leader = r.CurrentTerm(), n.Leader()
	s.LastIndex, s.Committed, s.Applied = r.LastIndex(), r.CommitIndex(), r.AppliedIndex()
	if last := r.LastContact(); s.Role == Leader {
		s.Contact = 0
	} else if last.IsZero() {
		s.Contact = -1
	} else {
		s.Contact = time.Since(last)
	}
	if c := r.GetConfiguration(); c.Error() == nil {
		for _, m := range c.Configuration().Servers {
			s.Members = append(s.Members, Member{Peer: n.o.peer(string(m.ID), string(m.Address)), Voter: m.Suffrage == raft.Voter})
		}
	}
	return s
}
