package service

import (
	"context"
	"time"

	"blockdesk/engine"
	"blockdesk/persist/leadership"
	"blockdesk/service/config"
)

const (
	// readTimeout bounds how long a read waits until it is sure to be the newest.
	readTimeout = time.Second
	// deposedGrace is how long requests have to end when a term is over. The engine
	// has answered by then, and a slow client must not keep the node from its next
	// term.
	deposedGrace = 250 * time.Millisecond
)

// Leading is the term in which a node leads its group. Any goroutine.
type Leading struct {
	// Leader returns the current leader; Over reports whether this node is not it any
	// more.
	Leader  func() leadership.Leader
	Deposed func() bool
	// Confirm returns nil once a majority has confirmed, after the call, that this
	// node leads: quorum.Term.VerifyLeader.
	Confirm func(ctx context.Context) error
}

// leadershipFor returns the place of this node in its group for a gateway that reads
// what it keeps behind a consumer, as barrier does; nil: the node belongs to none.
func (s *Service) leadershipFor(behind *engine.Consumer, shown func(context.Context) error) *leadership.Leadership {
	switch t := s.storage.Leading; {
	case s.upstream != nil:
		return &leadership.Leadership{Leader: s.upstream.Leader, ReadOnly: true}
	case t != nil:
		return &leadership.Leadership{Leader: t.Leader, Deposed: t.Deposed, Barrier: s.barrier(behind, shown)}
	}
	return nil
}

// LeaderOf returns where clients find a peer; only its ID if the configuration does
// not name it.
func LeaderOf(c *config.Config, id string) leadership.Leader {
	p := c.Peer(id)
	if p == nil {
		return leadership.Leader{ID: id}
	}
	return leadership.Leader{ID: p.ID, Base: p.Base, API: p.API, WS: p.WS, FIX: p.FIX}
}

// barrier is the Barrier of a gateway that reads what it keeps behind a consumer of
// the engine's events. It returns nil once no other node leads, the consumer has seen
// everything that any gateway had published before the call, and shown has returned
// nil after that; nil shown: the gateway shows what the consumer has seen.
func (s *Service) barrier(behind *engine.Consumer, shown func(context.Context) error) func() error {
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
		defer cancel()
		mark := s.eng.Position()
		if err := s.storage.Leading.Confirm(ctx); err != nil {
			return err
		}
		if err := behind.Await(ctx, mark); err != nil || shown == nil {
			return err
		}
		return shown(ctx)
	}
}
