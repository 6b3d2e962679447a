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

// Errors of Follower.Run after which a follower starts over: a new replica by
// Join, and new views on it.
var (
	// ErrBehind: what comes next is neither live nor in the stream.
	ErrBehind = errors.New("too far behind the leader")
	// ErrDiverged: the leader's history is not the one that was followed.
	ErrDiverged = errors.New("the leader has another history")
)

// Applier takes the commands of one frame after the other: engine.Engine made by
// Follow. prior is the digest of all events before them; a replica that had others
// must refuse. The commands must not be kept.
type Applier interface {
	Apply(prior uint64, commands []engine.Command) error
}

// divergeMargin is how much later than a command the leader must have said that it
// does not have it, by its own clock, to be believed. Commands become durable
// within it.
const divergeMargin = 10 * time.Second

// Follower receives a leader's frames and holds their chain: what it hands on is
// each frame once, in order, from where Join began.
type Follower struct {
	o     Options
	stats FollowerStats
	lag   lagWatch

	// Run's own; Join's before.
	at       persist.Position
	term     uint64
	lastAt   int64 // of the newest command applied
	to       Applier
	parts    assembly
	commands []engine.Command
}

// FollowerStats count since the start. Safe to read at any time.
type FollowerStats struct {
	// Frames and Commands were applied; Refilled of the frames came from the
	// stream.
	Frames, Commands, Refilled atomic.Uint64
	// Gaps were seen, by a later frame or a beat. Each ends with a refill or with
	// the end of Run.
	Gaps atomic.Uint64
	// Duplicates were frames that had been applied; Damaged messages had a wrong
	// checksum or form; Stale ones came of a leader of an earlier term; Foreign
	// frames of the stream do not follow.
	Duplicates, Damaged, Stale, Foreign atomic.Uint64
	// Snapshots were fetched, SnapshotBytes beside their first pieces.
	Snapshots, SnapshotBytes atomic.Uint64
	LinkStats
}

// NewFollower prepares a follower. Errors: those of Options.Validate.
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

// Run hands the leader's frames on to to, from where Join's replica ends, until ctx
// ends. Servers and leaders may come and go. After Join; one at a time. Errors:
// ErrBehind, ErrDiverged, those of to.
func (f *Follower) Run(ctx context.Context, to Applier) error {
	if f.at.Next == 0 {
		return errors.New("fan-out: Join must come before Run")
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
	f.lag.begin(f.at.Next - 1)
	err = f.follow(ctx, l, live)
	if ended(ctx) && !errors.Is(err, ErrDiverged) {
		return nil
	}
	return err
}

// follow takes live messages until ctx ends.
func (f *Follower) follow(ctx context.Context, l *link, live *nats.Subscription) error {
	quiet := min(f.o.Heartbeat, 100*time.Millisecond) // so the end of ctx is seen soon
	settled := true                                   // nothing waited since the last beat
	for !ended(ctx) {
		m, err := live.NextMsg(quiet)
		switch {
		case errors.Is(err, nats.ErrTimeout), errors.Is(err, nats.ErrSlowConsumer):
			continue // what was dropped shows as a gap
		case err != nil:
			return fmt.Errorf("fan-out: receiving: %w", err)
		}
		beat, err := f.handle(ctx, l, m.Data)
		if err != nil {
			return err
		}
		settled = settled && !beat
		if !settled {
			if n, _, err := live.Pending(); err == nil && n == 0 {
				settled = true
				f.lag.setInSync()
			}
		}
	}
	return nil
}

// take takes one live message and reports whether it was a beat with which this
// follower is level.
func (f *Follower) handle(ctx context.Context, l *link, data []byte) (level bool, err error) {
	h, body, ok := f.parse(data)
	switch {
	case !ok:
		return false, nil
	case h.term < f.term:
		f.stats.Stale.Add(1)
		return false, nil
	case h.term > f.term:
		f.o.Logger.Info("following a leader", "term", h.term, "last_term", f.term)
		f.term, f.parts = h.term, assembly{}
		f.lag.setTerm(h.term)
	}
	if h.kind == kindHeartbeat {
		return f.onHeartbeat(ctx, l, parseHeartbeat(&h, body))
	}
	encoded, _ := f.parts.add(&h, body) // what is lost shows as a gap
	frame, ok := f.frame(encoded)
	if !ok {
		return false, nil
	}
	return false, f.handleFrame(ctx, l, &frame, encoded)
}

// whole checks a message of the live subject or the stream, and counts one that is
// neither a frame's piece nor a beat.
func (f *Follower) parse(data []byte) (h head, body []byte, ok bool) {
	h, body, err := parseMessage(data)
	if err != nil || h.kind != kindFramePiece && h.kind != kindHeartbeat {
		f.stats.Damaged.Add(1)
		return head{}, nil, false
	}
	return h, body, true
}

// frame checks what was put together, if anything was, and counts it where it is
// none.
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

// handleFrame takes a frame of the leader's own voice: one that does not fit to what
// was followed says that the histories differ.
func (f *Follower) handleFrame(ctx context.Context, l *link, frame *persist.Frame, encoded []byte) error {
	if frame.First > f.at.Next {
		f.stats.Gaps.Add(1)
		if err := f.refill(ctx, l, frame.First); err != nil || ended(ctx) {
			return err
		}
	}
	err := f.applyNext(frame, encoded)
	if errors.Is(err, errOtherHistory) {
		return fmt.Errorf("%w: %w", ErrDiverged, err)
	}
	return err
}

// errOtherHistory is a frame that contradicts what was applied.
var errOtherHistory = errors.New("frame of another history")

// next applies the frame if it comes next. One that was applied before is passed
// over. Errors: errOtherHistory, those of the applier.
func (f *Follower) applyNext(frame *persist.Frame, encoded []byte) error {
	hash := persist.HashFrame(encoded)
	if last := frame.Last(); last < f.at.Next {
		if last == f.at.Next-1 && hash != f.at.Hash {
			return fmt.Errorf("%w: it ends with seq %d and is not the one that was applied", errOtherHistory, last)
		}
		f.stats.Duplicates.Add(1)
		return nil
	}
	after := f.at
	if err := after.Advance(frame, hash); err != nil {
		return fmt.Errorf("%w: %w", errOtherHistory, err)
	}
	commands, err := frame.AppendCommands(f.commands[:0])
	if err != nil {
		return fmt.Errorf("%w: %w", errOtherHistory, err)
	}
	f.commands = commands
	if err := f.to.Apply(frame.EventHash, commands); err != nil {
		return fmt.Errorf("applying the frame of seq %d: %w", frame.First, err)
	}
	f.at, f.lastAt = after, commands[len(commands)-1].At
	f.stats.Frames.Add(1)
	f.stats.Commands.Add(uint64(len(commands)))
	f.lag.applied(f.at.Next-1, f.lastAt)
	if cap(f.commands) > keptCommands {
		f.commands = nil
	}
	return nil
}

// keptCommands bounds the memory that is kept from frame to frame.
const keptCommands = 1 << 14

// beat compares what the leader says with what was applied, and reports whether
// nothing that it has sent is missing.
func (f *Follower) onHeartbeat(ctx context.Context, l *link, b heartbeat) (level bool, err error) {
	f.lag.heard(b.durable)
	if b.position.Next > f.at.Next {
		f.stats.Gaps.Add(1)
		if err := f.refill(ctx, l, b.position.Next); err != nil || ended(ctx) {
			return false, err
		}
	}
	last := f.at.Next - 1
	switch {
	case b.position.Next == f.at.Next && b.position.Hash != f.at.Hash:
		return false, fmt.Errorf("%w: at seq %d its frames have hash %016x, those followed %016x", ErrDiverged, last, b.position.Hash, f.at.Hash)
	case b.durable < last && b.at-f.lastAt > int64(divergeMargin):
		return false, fmt.Errorf("%w: it ends with seq %d, seq %d was followed", ErrDiverged, b.durable, last)
	}
	return true, nil
}
