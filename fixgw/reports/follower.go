package reports

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"sync"
	"time"

	"blockdesk/engine"
	"blockdesk/engine/event"
	"blockdesk/persist/projection"
)

// A commit takes the reports, state, answers and position of some milliseconds together,
// because it costs as much for one report as for ten.
const (
	// saveDelay is how long the reports that have been sent wait for more before they are
	// committed.
	saveDelay = 2 * time.Millisecond
	// batchReports is how many reports are sent before their state is committed.
	batchReports = 512
)

// Part is state that events change and that is committed with the reports about it.
type Part interface {
	// Changed reports whether something has changed since the last commit.
	Changed() bool
	// Fill adds the changes to a commit.
	Fill(set func(key, value []byte), deleteRange func(lo, hi []byte))
	// Committed forgets the changes that the commit has stored.
	Committed()
}

// Follower follows the engine's durable events: it has each processed, sends the reports,
// and commits them with the changed parts and the position. One goroutine at a time: Replay's
// caller before Run, then Run's, or one that runs the engine inline.
type Follower struct {
	reporter  *Reporter
	apply     func(*event.Event) error
	parts     []Part
	syncEvery time.Duration

	mu       sync.Mutex          // held while events are processed or committed
	failed   error               // the first failure: nothing is processed or committed after it
	consumer projection.Consumer // Run's
	wake     chan struct{}       // to Commit's goroutine; capacity 1
	saved    time.Time
	cursor   []byte
}

// NewFollower returns a follower that calls apply for each event, in their order; the parts
// are those that apply changes. It commits at least every syncEvery.
func NewFollower(f *Reporter, syncEvery time.Duration, apply func(*event.Event) error, parts ...Part) *Follower {
	return &Follower{reporter: f, apply: apply, parts: parts, syncEvery: syncEvery, wake: make(chan struct{}, 1)}
}

// Replay processes events that the store lacks after a crash, before Run. Their messages
// are only stored.
func (v *Follower) Replay(events []event.Event) error {
	defer v.replay()()
	if err := v.follow(events); err != nil {
		return err
	}
	return v.reporter.Deliver()
}

func (v *Follower) replay() (end func()) {
	v.reporter.Replaying = true
	return func() { v.reporter.Replaying = false }
}

// Reconcile makes the store agree with the recovered state s, before Run. restate reports
// what the engine has lost; it calls commit after each report. The returned command must be
// executed after all that cancel what the store lacks: the Reconcile is finished when its
// event has been processed. A crash before that leaves it unfinished.
func (v *Follower) Reconcile(s *engine.State, now int64, restate func(commit func() error) error) (engine.Command, error) {
	defer v.replay()()
	f := v.reporter
	f.At = now
	f.next, f.stored, f.unfinished = Position{Seq: s.Seq() + 1}, Position{}, true
	f.epoch, f.storedEpoch = s.Epoch(), s.Epoch()
	last := engine.Command{Kind: engine.Tick}
	last.SetRef([]byte(reconciledClOrdID))
	if err := restate(v.commitIfFull); err != nil {
		return last, err
	}
	return last, v.commit(false)
}

// follow processes events in their order.
func (v *Follower) follow(events []event.Event) error {
	f := v.reporter
	for i := range events {
		e := &events[i]
		f.begin(e)
		switch e.Kind {
		case event.Reference:
			f.beginCommand(e)
		case event.EpochStarted:
			f.beginEpoch(e.Other)
		}
		if err := v.apply(e); err != nil {
			return err
		}
		f.next.Index++
		if err := v.commitIfFull(); err != nil {
			return err
		}
	}
	return nil
}

// Run follows c until it ends or a store fails.
func (v *Follower) Run(ctx context.Context, c projection.Consumer) error {
	v.consumer = c
	for {
		events, err := c.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return v.end(c.CompleteSeq())
		case err != nil:
			return errors.Join(err, v.end(0))
		}
		if err := v.process(events); err != nil {
			return err
		}
	}
}

// RunInline does the work of Run while Run waits: a step of engine.Engine.RunInline.
func (v *Follower) RunInline() error { return v.process(v.consumer.Poll()) }

// process applies events, and those that arrive meanwhile, and sends their reports. Events
// that it fails to process stay with the consumer, and some of their reports have been sent:
// it returns the first failure ever after, since it would send these again under other ExecIDs.
func (v *Follower) process(events []event.Event) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	for ; len(events) > 0 && v.failed == nil; events = v.consumer.Poll() {
		if v.failed = errors.Join(v.follow(events), v.reporter.Deliver()); v.failed == nil {
			v.consumer.Release(len(events))
		}
	}
	if v.failed != nil {
		return v.failed
	}
	if v.commitDue() {
		select {
		case v.wake <- struct{}{}:
		default:
		}
	}
	return nil
}

// end commits the rest. All commands up to whole have been processed, also those without
// events, so a restart begins at the snapshot of a clean stop.
func (v *Follower) end(whole uint64) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if f := v.reporter; whole > 0 && whole >= f.next.Seq {
		f.next = Position{Seq: whole + 1}
	}
	return v.commit(false)
}

// commitDue reports whether a commit is due.
func (v *Follower) commitDue() bool {
	if v.reporter.reports > 0 || time.Since(v.saved) > v.syncEvery {
		return true
	}
	for _, p := range v.parts {
		if p.Changed() {
			return true
		}
	}
	return false
}

// commitIfFull commits if batchReports reports are waiting.
func (v *Follower) commitIfFull() error {
	if v.reporter.reports < batchReports {
		return nil
	}
	return v.commit(false)
}

// RunCommits commits what Run has processed, until ctx ends or the store fails.
func (v *Follower) RunCommits(ctx context.Context) error {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-v.wake:
		case <-ctx.Done():
			return nil
		}
		pause.Reset(saveDelay)
		select {
		case <-pause.C:
		case <-ctx.Done():
			return nil
		}
		if err := v.Commit(false); err != nil {
			return err
		}
	}
}

// Commit commits what has been processed, synced if sync is true.
func (v *Follower) Commit(sync bool) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.commit(sync)
}

// commit writes all changes, the messages about them, and the position in one step.
func (v *Follower) commit(sync bool) error {
	if v.failed == nil {
		v.failed = v.write(sync)
	}
	return v.failed
}

func (v *Follower) write(sync bool) error {
	f := v.reporter
	if err := f.Deliver(); err != nil {
		return err
	}
	if err := f.saveMessages(); err != nil {
		return err
	}
	f.lock()
	at, epoch := f.position()
	v.cursor = binary.BigEndian.AppendUint64(v.cursor[:0], at.Seq)
	v.cursor = binary.BigEndian.AppendUint32(v.cursor, at.Index)
	v.cursor = binary.BigEndian.AppendUint32(v.cursor, uint32(epoch))
	err := f.store.Commit(at.whole(), v.cursor, func(set func(key, value []byte), deleteRange func(lo, hi []byte)) {
		f.fill(set, deleteRange)
		for _, p := range v.parts {
			p.Fill(set, deleteRange)
		}
	}, sync)
	if err = f.unlock(err); err != nil {
		return err
	}
	f.committed()
	for _, p := range v.parts {
		p.Committed()
	}
	v.saved = time.Now()
	return nil
}
