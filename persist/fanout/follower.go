package fanout

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"blockdesk/engine"
	"blockdesk/persist"
)

// Errors of Follower.Run after which the follower must start over: Join, a new engine,
// new views.
var (
	// ErrBehind: the next frame is neither live nor in the stream, or the follower has
	// been out of sync for longer than MaxBehind.
	ErrBehind = errors.New("the follower is too far behind the leader")
	// ErrDiverged: the leader's history differs from what was applied.
	ErrDiverged = errors.New("the applied frames are not in the leader's history")
)

// Applier applies one frame's commands after the other: an engine.Engine in follower
// mode. prior is the digest of all events before them; a replica with another digest
// must refuse them. It must not keep the commands.
type Applier interface {
	Apply(prior uint64, commands []engine.Command) error
}

// divergeMargin bounds the time from a command's timestamp until it is durable. Only a
// leader that lacks an applied command for longer, by its own clock, has diverged from the
// follower.
const divergeMargin = 10 * time.Second

// Follower receives a leader's frames and checks their chain: it passes on each frame
// once, in order, from where Join began.
type Follower struct {
	o     Options
	stats FollowerStats
	lag   lagWatch

	at       persist.Position
	term     uint64
	lastAt   int64 // timestamp of the newest command applied
	to       Applier
	parts    assembly
	commands []engine.Command
	caughtUp func() // called in sync; nil outside of CatchUp
}

// FollowerStats counts since the start. Any goroutine may read it.
type FollowerStats struct {
	// Frames and Commands were applied; Refilled frames came from the stream.
	Frames, Commands, Refilled atomic.Uint64
	// Gaps were detected by a later frame or a heartbeat. Each ends with a refill or
	// with the end of Run.
	Gaps atomic.Uint64
	// Duplicates are frames that had been applied; Damaged messages have a wrong
	// checksum or form; Stale ones are from a leader of an earlier term; Foreign frames
	// of the stream do not follow.
	Duplicates, Damaged, Stale, Foreign atomic.Uint64
	// Snapshots were fetched; SnapshotBytes does not count their first pieces.
	Snapshots, SnapshotBytes atomic.Uint64
	LinkStats
}

// NewFollower returns a follower. Errors: those of Options.Validate.
func NewFollower(o Options) (*Follower, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	f := &Follower{o: o.withDefaults()}
	f.lag.clock = f.o.Clock
	return f, nil
}

// Stats returns the counters.
func (f *Follower) Stats() *FollowerStats { return &f.stats }

// Run passes the leader's frames to to, from where Join's replica ends, until ctx ends.
// It survives changes of servers and leaders. Call Join first; one Run at a time. Errors:
// ErrBehind, ErrDiverged, those of to.
func (f *Follower) Run(ctx context.Context, to Applier) error {
	if f.at.Next == 0 {
		return errors.New("fan-out: Run was called before Join")
	}
	f.to, f.parts = to, assembly{}
	l, err := dial(&f.o, "follower", &f.stats.LinkStats)
	if err != nil {
		return err
	}
	defer l.Close()
	live, err := l.SubscribeSync(f.o.liveSubject())
	if err != nil {
		return fmt.Errorf("fan-out: subscribing: %w", err)
	}
	if err := live.SetPendingLimits(LiveQueueMessages, LiveQueueBytes); err != nil {
		return fmt.Errorf("fan-out: limiting a queue: %w", err)
	}
	f.lag.begin(f.at.Last())
	err = f.follow(ctx, l, live)
	if ended(ctx) && !errors.Is(err, ErrDiverged) {
		return nil
	}
	return err
}

// follow handles live messages until ctx ends.
func (f *Follower) follow(ctx context.Context, l *link, live *nats.Subscription) error {
	quiet := min(f.o.Heartbeat, 100*time.Millisecond) // notices the end of ctx soon
	drained := true                                   // the queue was empty after the last heartbeat
	for !ended(ctx) {
		m, err := live.NextMsg(quiet)
		if err := f.checkBehind(); err != nil {
			return err
		}
		switch {
		case errors.Is(err, nats.ErrTimeout), errors.Is(err, nats.ErrSlowConsumer):
			continue // a dropped message shows as a gap
		case err != nil:
			return fmt.Errorf("fan-out: receiving: %w", err)
		}
		inSync, err := f.handle(ctx, l, m.Data)
		if err != nil {
			return err
		}
		drained = drained && !inSync
		if !drained {
			if n, _, err := live.Pending(); err == nil && n == 0 {
				drained = true
				f.lag.setInSync()
				if f.caughtUp != nil {
					f.caughtUp()
				}
			}
		}
	}
	return nil
}

// handle handles one live message and reports whether it was a heartbeat that found
// this follower in sync.
func (f *Follower) handle(ctx context.Context, l *link, data []byte) (inSync bool, err error) {
	h, body, ok := f.parse(data)
	switch {
	case !ok:
		return false, nil
	case h.term < f.term:
		f.stats.Stale.Add(1)
		return false, nil
	case h.term > f.term:
		f.o.Logger.Info("following a new leader", "term", h.term, "last_term", f.term)
		f.term, f.parts = h.term, assembly{}
		f.lag.setTerm(h.term)
	}
	if h.kind == kindHeartbeat {
		return f.onHeartbeat(ctx, l, parseHeartbeat(&h, body))
	}
	encoded, _ := f.parts.add(&h, body) // a lost piece shows as a gap
	frame, ok := f.frame(encoded)
	if !ok {
		return false, nil
	}
	return false, f.handleFrame(ctx, l, &frame, encoded)
}

// parse parses a message of the live subject or the stream, and counts one that is
// neither a piece of a frame nor a heartbeat as damaged.
func (f *Follower) parse(data []byte) (h head, body []byte, ok bool) {
	h, body, err := parseMessage(data)
	if err != nil || h.kind != kindFramePiece && h.kind != kindHeartbeat {
		f.stats.Damaged.Add(1)
		return head{}, nil, false
	}
	return h, body, true
}

// frame parses an assembled frame, if there is one, and counts a damaged one.
func (f *Follower) frame(encoded []byte) (persist.Frame, bool) {
	if encoded == nil {
		return persist.Frame{}, false
	}
	frame, err := persist.ParseFrame(encoded)
	if err != nil {
		f.stats.Damaged.Add(1)
	}
	return frame, err == nil
}

// handleFrame handles a live frame. A frame that contradicts what was
// applied means that the histories have diverged.
func (f *Follower) handleFrame(ctx context.Context, l *link, frame *persist.Frame, encoded []byte) error {
	if frame.First > f.at.Next {
		f.stats.Gaps.Add(1)
		if err := f.refill(ctx, l, frame.First); err != nil || ended(ctx) {
			return err
		}
	}
	err := f.applyNext(frame, encoded)
	if errors.Is(err, errFrameDiverged) {
		return fmt.Errorf("%w: %w", ErrDiverged, err)
	}
	return err
}

// errFrameDiverged: the frame contradicts what was applied.
var errFrameDiverged = errors.New("the frame contradicts the applied ones")

// applyNext applies the frame if it is the next one, and skips it if it was applied.
// Errors: errFrameDiverged, those of the applier.
func (f *Follower) applyNext(frame *persist.Frame, encoded []byte) error {
	hash := persist.HashFrame(encoded)
	if last := frame.Last(); last < f.at.Next {
		if last == f.at.Next-1 && hash != f.at.Hash {
			return fmt.Errorf("%w: the frame that ends with seq %d differs from the one applied", errFrameDiverged, last)
		}
		f.stats.Duplicates.Add(1)
		return nil
	}
	after := f.at
	if err := after.Advance(frame, hash); err != nil {
		return fmt.Errorf("%w: %w", errFrameDiverged, err)
	}
	commands, err := frame.AppendCommands(f.commands[:0])
	if err != nil {
		return fmt.Errorf("%w: %w", errFrameDiverged, err)
	}
	f.commands = commands
	if err := f.checkBehind(); err != nil {
		return err
	}
	if err := f.to.Apply(frame.EventHash, commands); err != nil {
		return fmt.Errorf("applying the frame of seq %d: %w", frame.First, err)
	}
	f.at, f.lastAt = after, commands[len(commands)-1].At
	f.stats.Frames.Add(1)
	f.stats.Commands.Add(uint64(len(commands)))
	f.lag.applied(f.at.Last(), f.lastAt)
	if cap(f.commands) > maxReused {
		f.commands = nil
	}
	return nil
}

// maxReused bounds the buffer that is reused from frame to frame.
const maxReused = 1 << 14

// onHeartbeat compares a heartbeat with what was applied, and reports whether
// everything that the leader has sent was applied.
func (f *Follower) onHeartbeat(ctx context.Context, l *link, b heartbeat) (inSync bool, err error) {
	f.lag.recordHeartbeat(b.durable)
	if b.position.Next > f.at.Next {
		f.stats.Gaps.Add(1)
		if err := f.refill(ctx, l, b.position.Next); err != nil || ended(ctx) {
			return false, err
		}
	}
	last := f.at.Last()
	switch {
	case b.position.Next == f.at.Next && b.position.Hash != f.at.Hash:
		return false, fmt.Errorf("%w: at seq %d its frames have hash %016x, the applied ones %016x", ErrDiverged, last, b.position.Hash, f.at.Hash)
	case b.durable < last && b.at-f.lastAt > int64(divergeMargin):
		return false, fmt.Errorf("%w: it ends with seq %d, seq %d was applied", ErrDiverged, b.durable, last)
	}
	return true, nil
}
