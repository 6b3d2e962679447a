// Package leadership is what gateways ask about the group of nodes that their node
// belongs to: which node leads, and whether this one may still answer for the group.
package leadership

// Leader is the node that serves writes. The zero value: none is known.
type Leader struct {
	ID string // in the group's configuration
	// Addresses as clients reach them, without a slash at the end: URLs of http,
	// https, ws or wss, and host:port of FIX. An empty one is not known.
	Base, API, WS, FIX string
}

// String returns "<id> at <host>:<port>" with the address of FIX, the ID alone where
// that is not known, and "" where no leader is known.
func (l Leader) String() string {
	if l.ID == "" || l.FIX == "" {
		return l.ID
	}
	return l.ID + " at " + l.FIX
}

// Leadership is the place of a node in its group, as one gateway sees it; nil: the
// node belongs to no group and answers everything. Its functions may be called from
// any number of goroutines at once.
type Leadership struct {
	// Leader returns the leader that this node knows of. It does not block.
	Leader func() Leader
	// ReadOnly: the node is a follower. The gateway sends clients to the leader for
	// what only the leader can answer, and does not call the functions below.
	ReadOnly bool
	// Deposed reports whether this node, which was the leader, leads no more. What was
	// under way then, and what comes until the gateway's Run ends, is answered with the
	// leader's address. It does not block.
	Deposed func() bool
	// Barrier returns nil once a majority has confirmed, after the call, that this node
	// leads, and the gateway has followed all that any gateway had published before the
	// call. A gateway shows the state of a claim or an order after that, so that no
	// client sees an older state than another client before. It ends.
	Barrier func() error
}

// Follower reports whether the node only reads.
func (l *Leadership) Follower() bool { return l != nil && l.ReadOnly }

// Over reports whether the node led and leads no more.
func (l *Leadership) LostLeadership() bool { return l != nil && !l.ReadOnly && l.Deposed() }

// Confirm is Barrier, and nil at once where no other node can lead or where the node
// is a follower.
func (l *Leadership) Confirm() error {
	if l == nil || l.ReadOnly {
		return nil
	}
	return l.Barrier()
}
