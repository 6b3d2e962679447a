package quorum

import (
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"
)

// memberTimeout bounds how long a change of the members waits to be taken up.
const memberTimeout = 5 * time.Second

// ErrMember refuses a change of the members that names nobody, or an address that
// the transport must not use.
var ErrMember = errors.New("quorum: member")

// Leader is who leads, with the configuration's word on where its clients find
// it. Without an ID none is known. It may be out of date by Options.Timeout.
func (n *Node) Leader() Peer {
	r, err := n.running()
	if err != nil {
		return Peer{}
	}
	address, id := r.LeaderWithID()
	if id == "" {
		return Peer{}
	}
	return n.o.peer(string(id), string(address))
}

// AddVoter makes a node a voter, or a non-voter one. It is to run, with
// Options.Join, at that address. Only the leader can; errors wrap ErrDeposed
// elsewhere.
func (n *Node) AddVoter(id, address string) error {
	return n.change(id, address, func(r *raft.Raft) raft.Future {
		return r.AddVoter(raft.ServerID(id), raft.ServerAddress(address), 0, memberTimeout)
	})
}

// AddNonvoter makes a node a member that gets the log and has no voice: what a
// new node is until it has caught up.
func (n *Node) AddNonvoter(id, address string) error {
	return n.change(id, address, func(r *raft.Raft) raft.Future {
		return r.AddNonvoter(raft.ServerID(id), raft.ServerAddress(address), 0, memberTimeout)
	})
}

// Remove takes a node out of the group, for good: its ID must not come back with
// an empty folder.
func (n *Node) Remove(id string) error {
	return n.change(id, n.o.Bind, func(r *raft.Raft) raft.Future { return r.RemoveServer(raft.ServerID(id), 0, memberTimeout) })
}

// Transfer hands the leadership to a voter that has the log whole: what to do
// before a leader is stopped. It returns when another node leads, or did not get
// to. What is under way meanwhile ends with the term.
func (n *Node) Transfer() error {
	return n.change(n.o.ID, n.o.Bind, func(r *raft.Raft) raft.Future { return r.LeadershipTransfer() })
}

func (n *Node) change(id, address string, do func(*raft.Raft) raft.Future) error {
	if id == "" || len(id) > MaxNameBytes {
		return fmt.Errorf("%w: an id of %d bytes: must be 1 to %d", ErrMember, len(id), MaxNameBytes)
	}
	if err := n.o.validateAddress("member "+id, address); err != nil {
		return fmt.Errorf("%w: %w", ErrMember, err)
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

// Role is what a node is in its group.
type Role uint8

const (
	Follower  Role = 1
	Candidate Role = 2
	Leader    Role = 3
	Stopped   Role = 4
)

// String returns a word for people.
func (r Role) String() string {
	switch r {
	case Follower:
		return "follower"
	case Candidate:
		return "candidate"
	case Leader:
		return "leader"
	case Stopped:
		return "stopped"
	default:
		return "role?"
	}
}

// Member is a node as the group's log has it.
type Member struct {
	Peer
	Voter bool
}

// Status is what a node says of itself.
type Status struct {
	ID     string
	Role   Role
	Term   uint64
	Leader Peer
	// LastIndex, Committed and Applied are entries: in this node's log, known to
	// be on a majority, judged here. Committed minus Applied is its lag.
	LastIndex, Committed, Applied uint64
	// Contact is how long ago this node heard from the leader; 0 on the leader, and
	// negative where it never did.
	Contact time.Duration
	// Waiting is how many jobs the warm replica has before it.
	Waiting int
	Members []Member
	Failed  error
}

// Status may be called at any time; it waits for no disk and no other node.
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
