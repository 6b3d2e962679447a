// Package leadership defines how a gateway learns which node of the raft group leads, and
// whether its own node may still answer for the group. It has the types alone, so that
// gateways need not import package quorum. A process without a group has none: a nil
// *Leadership answers everything.
//
// Two rules depend on it: a node that has lost the leadership answers no request that it
// had accepted before, and no gateway shows an older state of a claim or an order than
// another one has shown (Barrier). No function blocks without a bound.
package leadership

// Leader is the node that serves writes. The zero value: none is known.
type Leader struct {
	ID string // in the group's configuration
	// Client addresses without a trailing slash: URLs of http, https, ws or wss, and
	// host:port of FIX. Empty: unknown.
	Base, API, WS, FIX string
}

// String returns "<id> at <host>:<port>" with the FIX address, the ID alone if that is
// unknown, and "" if no leader is known.
func (l Leader) String() string {
	if l.ID == "" || l.FIX == "" {
		return l.ID
	}
	return l.ID + " at " + l.FIX
}

// Leadership is a node's role in its group, as one gateway sees it. A nil Leadership
// means that the node has no group and answers everything. Any goroutine may call its
// functions.
type Leadership struct {
	// Leader returns the known leader. It does not block.
	Leader func() Leader
	// ReadOnly: the node is a follower. The gateway sends clients to the leader for
	// what only the leader can answer, and does not call the functions below.
	ReadOnly bool
	// Deposed reports whether this node was the leader and leads no more. Requests
	// under way then, and those until the gateway's Run ends, are answered with the
	// leader's address. It does not block.
	Deposed func() bool
	// Barrier returns nil when a majority has confirmed, after the call, that this node
	// leads, and the gateway has applied everything that any gateway had published
	// before the call. A gateway calls it before it shows the state of a claim or an
	// order, so that no client sees an older state than another client before. It
	// returns in bounded time.
	Barrier func() error
}

// Follower reports whether the node only reads.
func (l *Leadership) Follower() bool { return l != nil && l.ReadOnly }

// LostLeadership reports whether the node led and leads no more.
func (l *Leadership) LostLeadership() bool { return l != nil && !l.ReadOnly && l.Deposed() }

// Confirm calls Barrier; it returns nil at once if the node has no group or is a
// follower.
func (l *Leadership) Confirm() error {
	if l == nil || l.ReadOnly {
		return nil
	}
	return l.Barrier()
}
