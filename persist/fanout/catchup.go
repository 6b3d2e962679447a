package fanout

import (
	"context"
	"errors"
	"fmt"

	"blockdesk/engine"
)

// CatchUp applies the leader's frames to the replica of Join until a heartbeat finds
// everything applied that the leader has sent. What is older than that moment is history:
// views that begin with the replica neither show a past state nor repeat a trade. Errors:
// as Run's, and ctx's.
func (f *Follower) CatchUp(ctx context.Context, r *engine.Replica) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	f.caughtUp = stop
	err := f.Run(running, replicaApplier{r})
	f.caughtUp = nil
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	}
	f.o.Logger.Info("follower caught up", "seq", f.at.Last(), "epoch", f.at.Epoch)
	return nil
}

// replicaApplier applies frames to a replica that nobody reads yet.
type replicaApplier struct{ replica *engine.Replica }

// errReplicaDiverged: the replica's events are not the leader's.
var errReplicaDiverged = errors.New("the replica's events differ from the leader's")

// Apply implements Applier.
func (a replicaApplier) Apply(prior uint64, commands []engine.Command) error {
	if a.replica.Digest != prior {
		return fmt.Errorf("%w: %w: digest %016x, the leader's %016x", ErrDiverged, errReplicaDiverged, a.replica.Digest, prior)
	}
	for i := range commands {
		a.replica.Apply(&commands[i], nil)
	}
	return nil
}
