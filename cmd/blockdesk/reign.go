package main

import (
	"context"
	"time"

	"blockdesk/engine"
	"blockdesk/httpgw"
)

// readTimeout bounds how long a read waits until it is sure to be the newest.
const readTimeout = time.Second

// reign is what gateways ask of the term that they serve in.
type reign struct {
	// leader is who leads now; over: this node does not any more.
	leader func() httpgw.Leader
	over   func() bool
	// confirmed returns nil once a majority has confirmed, after the call, that this
	// node leads: quorum.Term.Verify.
	confirmed func(ctx context.Context) error
}

// deposed is httpgw.Options.Deposed.
func (r *reign) deposed() (httpgw.Leader, bool) { return r.leader(), r.over() }

// barrier is the Barrier of a gateway that reads what it keeps behind a consumer of
// the engine's events: it returns nil once nobody else leads and that consumer has
// seen all that any surface had told before the call, and shown has returned nil
// after that; nil: what is seen is shown.
func (s *service) barrier(behind **engine.Consumer, shown func(context.Context) error) func() error {
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
		defer cancel()
		mark := s.eng.Mark()
		if err := s.reign.confirmed(ctx); err != nil {
			return err
		}
		if err := (*behind).Await(ctx, mark); err != nil || shown == nil {
			return err
		}
		return shown(ctx)
	}
}
