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

// Errors that an entry is answered with, the same on every node.
var (
	// errStale refuses what was proposed in a reign that is over.
	errStale = errors.New("its reign is over")
	// errChain refuses a frame that does not follow the last one.
	errChain = errors.New("the frame does not follow")
	// errMissing is this node's own: the log and the snapshots that it has do not
	// join.
	errMissing = errors.New("this node lacks committed frames")
)

// machine is what the log's committed entries make: raft's FSM. It judges each
// entry by what came before it in the log, so all nodes judge alike, and leaves
// the frames to the warm replica's goroutine. Raft's goroutine alone calls it.
type machine struct {
	log            *persist.EntryLog
	local          *localStores
	standby        *standby
	snapshotStatus *snapshotStatus
	frames         frameIndex
	counts         applyCounts
	fail           func(error) error // latches the node's failure and returns the first

	at        persist.Position // where the committed frames end
	termStart uint64           // index of the entry that began the one in force
	lastIndex uint64           // index of the last entry
}

// judged counts since the start.
type applyCounts struct{ frames, bytes, refused, restores atomic.Uint64 }

var _ raft.FSM = (*machine)(nil)

// begun answers the entry that begins a reign.
type termStarted struct {
	index uint64
	at    persist.Position
}

// Apply implements raft.FSM. What it returns is an error, a begun, or nil.
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
		return fmt.Errorf("entry %d of the reign that entry %d began: %w", log.Index, t.termStart, errStale)
	}
	if t.kind == frameKind {
		err = m.applyFrame(log.Index, log.Data)
	} else {
		err = m.applyCommit(log.Index, log.Data)
	}
	if err != nil {
		err = fmt.Errorf("entry %d: %w", log.Index, err)
	}
	if errors.Is(err, errChain) {
		m.counts.refused.Add(1)
	} else if err != nil {
		return m.fail(err)
	}
	return asResponse(err)
}

// asResponse keeps a nil error from becoming a response that is not nil.
func asResponse(err error) any {
	if err == nil {
		return nil
	}
	return err
}

func (m *machine) applyFrame(index uint64, encoded []byte) error {
	f, err := persist.ParseFrame(encoded)
	if err != nil {
		return err
	}
	if f.First > m.at.Next {
		return fmt.Errorf("%w: they end at seq %d, the next one begins at seq %d", errMissing, m.at.Next-1, f.First)
	}
	if err := m.at.Advance(&f, persist.HashFrame(encoded)); err != nil {
		return fmt.Errorf("seq %d: %w: %w", f.First, errChain, err)
	}
	kept, _ := m.log.Bounds()
	m.frames.add(f.First, index, m.at, kept)
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

// Snapshot implements raft.FSM: it takes the moment; Persist does the work.
func (m *machine) Snapshot() (raft.FSMSnapshot, error) {
	s := &fsmSnapshot{
		head: header{index: m.lastIndex, termStart: m.termStart, at: m.at}, stores: m.local.kv.View(), standby: make(chan standbyImage, 1), status: m.snapshotStatus,
	}
	if err := m.standby.enqueue(job{call: func(w *standby) error { s.standby <- w.snapshotPart(); return nil }}); err != nil {
		return nil, errors.Join(err, s.stores.Close())
	}
	s.stopped = m.standby.stopped
	return s, nil
}

// Restore implements raft.FSM. The copy of the stores is kept where it is as far
// as the snapshot or further, as after a restart.
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
	m.at, m.termStart, m.lastIndex = head.at, head.termStart, head.index
	return m.standby.enqueue(job{call: func(w *standby) error {
		w.replica, w.next = r, head.at.Next
		w.seq.Store(w.next - 1)
		w.tail = tail{limit: w.tail.limit, events: events, floor: head.floor}
		return nil
	}})
}

// Limits of the warm replica.
const (
	// maxJobs is how many committed frames may wait for the warm replica; then
	// commits wait for it.
	maxJobs = 64
)

// warm is this node's replica of everything committed, and the events of the last
// of it: what a new leader begins with. Its own goroutine applies the frames, so
// that no commit waits for the engine's work.
type standby struct {
	state   engine.StateOptions
	jobs    chan job
	stopped chan struct{} // closed when nobody takes jobs any more

	// The goroutine's own.
	replica  *engine.Replica
	next     uint64 // Seq
	tail     tail
	commands []engine.Command

	seq atomic.Uint64 // next - 1, for others to read
}

// job is a committed frame, or a call to be made between frames.
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

// give leaves a job to the goroutine; it waits while maxJobs others do. The error
// says that the node has stopped.
func (w *standby) enqueue(j job) error {
	select {
	case w.jobs <- j:
		return nil
	case <-w.stopped:
		return errStopped
	}
}

// run does jobs until end is closed or one fails, which is the node's failure:
// a committed frame that cannot be applied, here or on any other node.
func (w *standby) run(end <-chan struct{}) error {
	defer close(w.stopped)
	for {
		select {
		case <-end:
			return nil
		case j := <-w.jobs:
			if err := w.apply(&j); err != nil {
				return err
			}
		}
	}
}

func (w *standby) apply(j *job) (err error) {
	if j.call != nil {
		return j.call(w)
	}
	f := &j.frame
	if w.replica.Digest != f.EventHash {
		return fmt.Errorf("seq %d: %w: this node's events before it have digest %016x, the leader's %016x",
			f.First, errDiverged, w.replica.Digest, f.EventHash)
	}
	if w.commands, err = f.AppendCommands(w.commands[:0]); err != nil {
		return err
	}
	for i := range w.commands {
		w.replica.Apply(&w.commands[i], w.tail.add)
	}
	w.next = f.Last() + 1
	w.seq.Store(f.Last())
	return nil
}

// errDiverged: this node's engine made other events of the same commands.
var errDiverged = errors.New("this node's engine and the leader's differ")

// hand gives out the replica itself, after the events above floor to visit, and
// goes on with a copy. What the caller waits for is the encoding, not the copy.
// Where the tail does not reach down to floor the caller is told, and all stays.
func (w *standby) handOver(floor uint64, visit func([]event.Event), give chan<- handover) error {
	got := w.read(floor, visit)
	if got.replica == nil {
		give <- got
		return nil
	}
	encoded := w.replica.AppendSnapshot(nil)
	give <- got
	copied, err := engine.RestoreReplica(encoded, w.state)
	if err != nil {
		return fmt.Errorf("copying the replica of seq %d: %w", w.next-1, err)
	}
	w.replica = copied
	return nil
}

// read gives visit the events above floor and returns the replica that they led
// to.
func (w *standby) read(floor uint64, visit func([]event.Event)) handover {
	if err := w.tail.replay(floor, visit); err != nil {
		return handover{err: err}
	}
	return handover{replica: w.replica, next: w.next}
}

// handed is a replica whose next command has Seq next, or why there is none.
type handover struct {
	replica *engine.Replica
	next    uint64
	err     error
}
