package quorum

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"blockdesk/engine"
	"blockdesk/engine/event"
	"blockdesk/persist"
)

// Results of an entry, the same on every node.
var (
	// errStale refuses an entry whose term is over.
	errStale = errors.New("the term that proposed the entry is over")
	// errNotNext refuses a frame that does not follow the last one.
	errNotNext = errors.New("the frame does not follow the one before it")
	// errMissing: this node's log and snapshots have a gap between them.
	errMissing = errors.New("this node lacks committed frames")
)

// machine applies the log's committed entries: raft's FSM. It accepts or refuses each
// entry by the log before it alone, so all nodes decide alike. The standby replica
// applies accepted frames in its own goroutine. Raft's goroutine alone calls it.
type machine struct {
	log            *persist.EntryLog
	local          *localStores
	standby        *standby
	snapshotStatus *snapshotStatus
	frames         frameIndex
	counts         applyCounts
	format         logFormat
	fail           func(error) error // latches the node's failure and returns err

	at        persist.Position // after the last accepted frame
	termStart uint64           // index of the entry that started the current term
	lastIndex uint64
}

// applyCounts counts since the start.
type applyCounts struct{ frames, bytes, refused, restores atomic.Uint64 }

var _ raft.FSM = (*machine)(nil)

// termStarted is the result of the entry that starts a term.
type termStarted struct {
	index uint64
	at    persist.Position
}

// Apply implements raft.FSM. It returns an error, a termStarted, or nil.
func (m *machine) Apply(log *raft.Log) any {
	t, err := decodeTag(log.Extensions)
	if err != nil {
		return m.fail(fmt.Errorf("entry %d: %w", log.Index, err))
	}
	m.lastIndex = log.Index
	if t.kind == termStartKind {
		m.termStart = log.Index
		return termStarted{index: m.termStart, at: m.at}
	}
	if t.termStart != m.termStart {
		m.counts.refused.Add(1)
		return fmt.Errorf("entry %d of the term that entry %d started: %w", log.Index, t.termStart, errStale)
	}
	switch t.kind {
	case frameKind:
		err = m.applyFrame(log.Index, log.Data)
	case storeKind:
		err = m.applyCommit(log.Index, log.Data)
	default:
		err = m.applyFormat(log.Data)
	}
	if err == nil {
		return nil
	}
	err = fmt.Errorf("entry %d: %w", log.Index, err)
	if !errors.Is(err, errNotNext) {
		return m.fail(err)
	}
	m.counts.refused.Add(1)
	return err
}

func (m *machine) applyFrame(index uint64, encoded []byte) error {
	f, err := persist.ParseFrame(encoded)
	if err != nil {
		return err
	}
	if f.First > m.at.Next {
		return fmt.Errorf("%w: they end at seq %d, the next one begins at seq %d", errMissing, m.at.Last(), f.First)
	}
	if err := m.at.Advance(&f, persist.HashFrame(encoded)); err != nil {
		return fmt.Errorf("seq %d: %w: %w", f.First, errNotNext, err)
	}
	firstEntry, _ := m.log.Bounds()
	m.frames.add(f.First, index, m.at, firstEntry)
	m.counts.frames.Add(1)
	m.counts.bytes.Add(uint64(len(encoded)))
	return m.standby.enqueue(job{frame: f})
}

func (m *machine) applyCommit(index uint64, data []byte) error {
	name, ops, err := parseCommit(data)
	if err != nil {
		return err
	}
	return m.local.apply(index, name, ops)
}

// Snapshot implements raft.FSM: it fixes the moment; Persist does the work.
func (m *machine) Snapshot() (raft.FSMSnapshot, error) {
	s := &fsmSnapshot{
		head: header{index: m.lastIndex, termStart: m.termStart, at: m.at, format: m.format.load()}, stores: m.local.kv.View(), standby: make(chan standbyImage, 1), status: m.snapshotStatus,
	}
	if err := m.standby.enqueue(job{call: func(w *standby) error { s.standby <- w.snapshotPart(); return nil }}); err != nil {
		return nil, errors.Join(err, s.stores.Close())
	}
	s.stopped = m.standby.stopped
	return s, nil
}

// Restore implements raft.FSM. It keeps this node's copy of the stores if that is as new
// as the snapshot or newer, which is the case after a restart.
func (m *machine) Restore(from io.ReadCloser) error {
	head, r, events, err := readSnapshot(from, m.local, m.standby.state)
	if err := errors.Join(err, from.Close()); err != nil {
		return m.fail(fmt.Errorf("restoring a snapshot: %w", err))
	}
	before, err := framesBefore(m.log, head.index, head.at)
	if err != nil {
		return m.fail(fmt.Errorf("the frames before a snapshot: %w", err))
	}
	m.frames.set(before, head.at)
	m.snapshotStatus.restored(head.at)
	m.counts.restores.Add(1)
	m.format.store(head.format)
	m.at, m.termStart, m.lastIndex = head.at, head.termStart, head.index
	return m.standby.enqueue(job{call: func(w *standby) error {
		w.replica, w.next = r, head.at.Next
		w.seq.Store(w.next - 1)
		w.tail = tail{limit: w.tail.limit, events: events, floor: head.floor}
		return nil
	}})
}

// maxJobs is how many committed frames may wait for the standby replica; then commits
// wait for it.
const maxJobs = 64

// standby is this node's replica of everything committed, with the newest events: what a
// new leader starts with. Its own goroutine applies the frames, so that commits do not
// wait for it.
type standby struct {
	state   engine.StateOptions
	jobs    chan job
	stopped chan struct{} // closed when jobs are no longer taken

	// Used by run alone.
	replica  *engine.Replica
	next     uint64 // Seq
	tail     tail
	commands []engine.Command

	seq atomic.Uint64 // next - 1, for other goroutines
}

// job is a committed frame, or a call to make between frames.
type job struct {
	frame persist.Frame
	call  func(*standby) error
}

var errStopped = errors.New("the node has stopped")

func newStandby(state engine.StateOptions, tailEvents int) *standby {
	return &standby{
		state: state, jobs: make(chan job, maxJobs), stopped: make(chan struct{}),
		replica: engine.NewReplica(state), next: 1, tail: tail{limit: tailEvents},
	}
}

// enqueue passes a job to run; it waits while maxJobs others do. It fails if the node
// has stopped.
func (s *standby) enqueue(j job) error {
	select {
	case s.jobs <- j:
		return nil
	case <-s.stopped:
		return errStopped
	}
}

// run does jobs until end is closed or one fails. A committed frame that cannot be
// applied is a failure of the node.
func (s *standby) run(end <-chan struct{}) error {
	defer close(s.stopped)
	for {
		select {
		case <-end:
			return nil
		case j := <-s.jobs:
			if err := s.apply(&j); err != nil {
				return err
			}
		}
	}
}

func (s *standby) apply(j *job) (err error) {
	if j.call != nil {
		return j.call(s)
	}
	f := &j.frame
	if s.replica.Digest != f.EventHash {
		return fmt.Errorf("seq %d: %w: this node's events before it have digest %016x, the leader's %016x",
			f.First, errDiverged, s.replica.Digest, f.EventHash)
	}
	if s.commands, err = f.AppendCommands(s.commands[:0]); err != nil {
		return err
	}
	for i := range s.commands {
		s.replica.Apply(&s.commands[i], s.tail.add)
	}
	s.next = f.Last() + 1
	s.seq.Store(f.Last())
	return nil
}

// errDiverged: this node's engine produced other events than the leader's for the same
// commands.
var errDiverged = errors.New("this node's engine has other events than the leader's")

// handOver calls visit with the events above floor, sends the replica itself and
// continues with a copy of it. So the caller waits for the encoding, not for the copy.
// If the tail lacks events above floor, handOver sends the error and keeps the replica.
func (s *standby) handOver(floor uint64, visit func([]event.Event), give chan<- handover) error {
	got := s.read(floor, visit)
	if got.replica == nil {
		give <- got
		return nil
	}
	encoded := s.replica.AppendSnapshot(nil)
	give <- got
	copied, err := engine.RestoreReplica(encoded, s.state)
	if err != nil {
		return fmt.Errorf("copying the replica of seq %d: %w", s.next-1, err)
	}
	s.replica = copied
	return nil
}

// read calls visit with the events above floor and returns the replica after them.
func (s *standby) read(floor uint64, visit func([]event.Event)) handover {
	if err := s.tail.replay(floor, visit); err != nil {
		return handover{err: err}
	}
	return handover{replica: s.replica, next: s.next}
}

// handover is a replica whose next command has Seq next, or an error.
type handover struct {
	replica *engine.Replica
	next    uint64
	err     error
}
