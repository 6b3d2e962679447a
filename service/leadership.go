package service

import (
	"context"
	"time"

	"blockdesk/engine"
	"blockdesk/persist/leadership"
	"blockdesk/service/config"
)

const (
	// readTimeout bounds a linearizable read.
	readTimeout = time.Second
	// deposedGrace bounds how long requests may take to end after a term. The engine
	// has answered by then, and a slow client must not delay the node's next term.
	deposedGrace = 250 * time.Millisecond
)

// Leading is the term in which a node leads its group. Safe for concurrent use.
type Leading struct {
	// Leader returns the current leader; Over reports whether this node is not it any
	// more.
	Leader  func() leadership.Leader
	Deposed func() bool
	// Confirm returns nil once a majority has confirmed, after the call, that this
	// node leads: quorum.Term.VerifyLeader.
	Confirm func(ctx context.Context) error
}

// LeaderOf returns the addresses of a peer for clients; only its ID if the configuration
// does not have it.
func LeaderOf(c *config.Config, id string) leadership.Leader {
	p := c.Peer(id)
	if p == nil {
		return leadership.Leader{ID: id}
	}
	return leadership.Leader{ID: p.ID, Base: p.Base, API: p.API, WS: p.WS, FIX: p.FIX}
}

// barrier returns the Barrier of a gateway whose state follows a consumer of the engine's
// events. The barrier returns nil once a majority has confirmed the leader, the consumer
// has passed every event that any gateway had published before the call, and viewed has
// returned nil after that; nil viewed: the consumer's position is enough.
func barrier(eng *engine.Engine, confirm func(context.Context) error, behind *engine.Consumer, viewed func(context.Context) error) func() error {
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
		defer cancel()
		position := eng.Position()
		if err := confirm(ctx); err != nil {
			return err
		}
		if err := behind.Await(ctx, position); err != nil || viewed == nil {
			return err
		}
		return viewed(ctx)
	}
}
