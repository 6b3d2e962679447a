package fanout

import (
	"context"
	"errors"
	"fmt"

	"blockdesk/engine"
	"blockdesk/persist"
)

// ErrSnapshot says that Join gave up: MaxSnapshotTries snapshots were pruned or damaged
// before they were complete here.
var ErrSnapshot = errors.New("no complete snapshot came from the leader")

// errUnusable: the snapshot was pruned or is damaged.
var errUnusable = errors.New("the snapshot is unusable")

// Join fetches the leader's newest snapshot and returns its replica, from which Run
// continues. It waits for a leader until ctx ends. Call it before Run, and again after
// a Run that returned ErrBehind or ErrDiverged. Errors: ErrSnapshot; engine.ErrVersion
// if the leader runs a newer program; ctx's.
func (f *Follower) Join(ctx context.Context) (*engine.Replica, error) {
	l, err := dial(&f.o, "follower", &f.stats.LinkStats)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	unusable := 0
	for try := 0; ; try++ {
		r, at, err := f.fetch(ctx, l)
		switch {
		case err == nil:
			f.at, f.lastAt = at, 0
			f.o.Logger.Info("follower joined", "seq", at.Last(), "epoch", at.Epoch)
			return r, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, engine.ErrVersion):
			return nil, err
		case errors.Is(err, errUnusable):
			if unusable++; unusable == MaxSnapshotTries {
				return nil, fmt.Errorf("%w: %w", ErrSnapshot, err)
			}
		}
		if try == 0 || unusable > 0 {
			f.o.Logger.Info("waiting for a snapshot from the leader", "error", err)
		}
		if !sleep(ctx, pause(try)) {
			return nil, ctx.Err()
		}
	}
}

// CatchUp applies the leader's frames to the replica of Join until a heartbeat finds
// everything applied that the leader has sent. Views that begin with the replica then neither
// show a past state nor repeat a trade. Errors: as Run's, and ctx's.
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

// fetch fetches one snapshot, piece by piece, and restores it.
func (f *Follower) fetch(ctx context.Context, l *link) (*engine.Replica, persist.Position, error) {
	none := persist.Position{}
	first, err := f.request(ctx, l, 0, 0)
	if err != nil {
		return nil, none, err
	}
	if first.size == 0 {
		if first.position != persist.Genesis() {
			return nil, none, fmt.Errorf("%w: the one of seq %d is empty", errUnusable, first.position.Last())
		}
		return engine.NewReplica(f.o.State), first.position, nil
	}
	if first.size > persist.MaxSnapshotFile {
		return nil, none, fmt.Errorf("%w: %d bytes: at most %d", errUnusable, first.size, uint64(persist.MaxSnapshotFile))
	}
	file := append([]byte(nil), first.bytes...)
	for uint64(len(file)) < first.size {
		p, err := f.requestWithRetry(ctx, l, first.position.Next, uint64(len(file)))
		switch {
		case err != nil:
			return nil, none, err
		case p.position.Next != first.position.Next || p.size != first.size || len(p.bytes) == 0 ||
			uint64(len(file)+len(p.bytes)) > first.size:
			return nil, none, fmt.Errorf("%w: the one of seq %d was pruned", errUnusable, first.position.Last())
		}
		file = append(file, p.bytes...)
		f.stats.SnapshotBytes.Add(uint64(len(p.bytes)))
	}
	r, at, err := persist.RestoreSnapshot(file, f.o.State)
	if errors.Is(err, engine.ErrVersion) {
		return nil, none, err
	} else if err != nil {
		return nil, none, fmt.Errorf("%w: %w", errUnusable, err)
	}
	if at != first.position {
		return nil, none, fmt.Errorf("%w: the snapshot is at %+v, the leader announced %+v", errUnusable, at, first.position)
	}
	f.stats.Snapshots.Add(1)
	return r, at, nil
}

// requestWithRetry requests a piece up to MaxSnapshotTries times.
func (f *Follower) requestWithRetry(ctx context.Context, l *link, next, offset uint64) (p piece, err error) {
	for try := range MaxSnapshotTries {
		if p, err = f.request(ctx, l, next, offset); err == nil || errors.Is(err, errUnusable) {
			return p, err
		}
		if !sleep(ctx, pause(try)) {
			return p, ctx.Err()
		}
	}
	return p, err
}

// request requests a piece of the snapshot before next from the leader; 0 means the
// newest.
func (f *Follower) request(ctx context.Context, l *link, next, offset uint64) (piece, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	h := head{kind: kindSnapshotRequest, seq: next}
	h.setSnapshotOffset(offset)
	m, err := l.RequestWithContext(ctx, f.o.snapshotSubject(), appendMessage(nil, &h))
	if err != nil {
		return piece{}, fmt.Errorf("requesting a snapshot: %w", err)
	}
	got, body, err := parseMessage(m.Data)
	switch {
	case err != nil:
		return piece{}, fmt.Errorf("%w: %w", errUnusable, err)
	case got.kind != kindSnapshotPiece || got.snapshotOffset() != offset:
		return piece{}, fmt.Errorf("%w: the answer is for another request", errUnusable)
	case got.term < f.term:
		return piece{}, fmt.Errorf("the answer is from term %d, older than the current term %d", got.term, f.term)
	}
	return parsePiece(&got, body), nil
}
