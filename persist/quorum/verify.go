package quorum

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math"

	"github.com/hashicorp/raft"

	"blockdesk/engine"
	"blockdesk/persist"
)

// errEntries is what is wrong with a log whose entries each are whole.
var errEntries = errors.New("the log does not lead to its snapshots")

// VerifyOptions say which stopped node's folder is proven: Dir is Options.Dir.
type VerifyOptions struct {
	persist.ToolOptions
	// Frame, if set, sees the commands of each frame that the log has accepted, with
	// the entry's index and the term of the leader that proposed it. They are valid
	// during the call. An error of it ends the work, which returns it.
	Frame func(index, term uint64, commands []engine.Command) error
	// To, if set, ends the work after the frame that holds this Seq: the state there is
	// what two nodes of which one has more can be held to each other by.
	To uint64
}

// Verify proves what a stopped node holds as its leader would have judged it: every
// checksum, the chain of frames, the events of every command by their digest, and
// the state at each snapshot, beginning with the oldest one that the log goes on
// from. The error joins all that is wrong; each part is a *persist.DamageError. It
// changes nothing, but for a file that raft makes and removes among its snapshots.
//
// The last entries may be ones that no majority has: a follower keeps what it was
// sent until a leader says otherwise. They are judged as if they were committed.
func Verify(o VerifyOptions) (rep persist.Report, err error) {
	o.Logger = cmp.Or(o.Logger, slog.Default())
	path := (&Options{Dir: o.Dir, FS: o.FS}).path(logFolder)
	log, err := persist.OpenEntryLog(persist.EntryLogOptions{
		Dir: path, FS: o.FS, Logger: o.Logger, Advice: damageAdvice, ReadOnly: true,
	})
	if err != nil {
		return rep, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	v := &verifier{o: &o, log: logStore{log}, path: path}
	v.standby = newStandby(o.State, MinTailEvents)
	v.machine = &machine{
		// A copy of the stores that is ahead of every entry takes none.
		local: &localStores{index: math.MaxUint64}, log: log, standby: v.standby,
		fail: func(err error) error { v.failure = err; return err }, at: persist.Genesis(),
	}
	err = v.run()
	if o.Progress != nil && v.stopped == nil {
		_ = o.Progress(v.rep.Commands, v.rep.Commands) // the work is done
	}
	r := v.standby.replica
	v.rep.Epoch, v.rep.Seq, v.rep.Digest = v.machine.at.Epoch, r.State.Seq(), r.Digest
	v.rep.Last, v.rep.StateHash, v.rep.BookHash = r.State.Seq(), r.State.Hash(), r.State.BookHash()
	return v.rep, errors.Join(append(v.problems, err)...)
}

// verifier replays a node's log as the node's own machine would.
type verifier struct {
	o       *VerifyOptions
	log     logStore
	path    string
	standby *standby
	machine *machine
	rep     persist.Report

	headers  []header // of the snapshots that are whole, newest first
	problems []error
	failure  error // of the machine
	stopped  error // of a callback
}

func (v *verifier) damage(err error) error {
	return &persist.DamageError{Dir: v.o.Dir, Where: v.path, Err: err, Advice: damageAdvice}
}

func (v *verifier) run() error {
	first, last := v.log.Bounds()
	if err := v.begin(first); err != nil {
		return err
	}
	v.rep.Base, v.rep.First = v.machine.at.Next-1, v.machine.at.Next
	for index := max(first, v.machine.lastIndex+1); index <= last && last > 0; index++ {
		if err := v.verifyEntry(index); err != nil {
			return err
		}
		if v.o.To > 0 && v.machine.at.Next > v.o.To {
			return nil
		}
	}
	for _, h := range v.headers {
		if h.index > v.machine.lastIndex {
			v.problems = append(v.problems, v.damage(fmt.Errorf("%w: one is of entry %d, the log ends at %d", errEntries, h.index, v.machine.lastIndex)))
		}
	}
	return nil
}

// begin reads the snapshots, and takes the oldest one that the log goes on from.
func (v *verifier) begin(first uint64) error {
	store, err := raft.NewFileSnapshotStoreWithLogger(v.path, math.MaxInt, newRaftLog(v.o.Logger))
	if err != nil {
		return err
	}
	list, err := store.List()
	if err != nil {
		return err
	}
	var base *handover
	for _, meta := range list {
		head, r, err := v.snapshot(store, meta.ID)
		if err != nil {
			v.problems = append(v.problems, v.damage(fmt.Errorf("snapshot %s: %w", meta.ID, err)))
			continue
		}
		v.headers = append(v.headers, head)
		if first == 0 && base == nil || first > 1 && meta.Index+1 >= first {
			base = &handover{replica: r, next: head.at.Next}
			v.machine.at, v.machine.termStart, v.machine.lastIndex = head.at, head.termStart, head.index
		}
	}
	switch {
	case base != nil:
		v.standby.replica, v.standby.next = base.replica, base.next
		v.rep.Snapshots = append(v.rep.Snapshots, base.next-1)
	case first > 1:
		return v.damage(fmt.Errorf("%w: the log begins at entry %d, and no whole snapshot stands for those before", errMissing, first))
	}
	return nil
}

func (v *verifier) snapshot(store *raft.FileSnapshotStore, id string) (header, *engine.Replica, error) {
	_, content, err := store.Open(id)
	if err != nil {
		return header{}, nil, err
	}
	head, r, _, err := readSnapshot(content, v.machine.local, v.o.State)
	return head, r, errors.Join(err, content.Close())
}

// entry judges one entry, and holds the snapshots of that moment to it.
func (v *verifier) verifyEntry(index uint64) error {
	var log raft.Log
	if err := v.log.GetLog(index, &log); err != nil {
		return v.damage(fmt.Errorf("entry %d: %w", index, err))
	}
	if log.Type != raft.LogCommand {
		return nil
	}
	v.machine.Apply(&log) // what it answers is the proposer's
	if v.failure == nil && len(v.standby.jobs) > 0 {
		j := <-v.standby.jobs
		if err := v.standby.apply(&j); err != nil {
			return v.damage(fmt.Errorf("entry %d: %w", index, err))
		}
		if err := v.frame(&log); err != nil {
			return err
		}
	}
	if v.failure != nil {
		return v.damage(v.failure)
	}
	for _, h := range v.headers {
		if h.index != index {
			continue
		}
		if r := v.standby.replica; h.at != v.machine.at || h.digest != r.Digest || h.state != r.State.Hash() {
			v.problems = append(v.problems, v.damage(fmt.Errorf("%w: entry %d: the snapshot has another state", errEntries, index)))
			continue
		}
		v.rep.Snapshots = append(v.rep.Snapshots, h.at.Next-1)
	}
	return nil
}

// verifyStep is after how many commands a tool tells how far it is.
const verifyStep = 1 << 16

// frame counts the frame that was applied, and shows it.
func (v *verifier) frame(log *raft.Log) error {
	before := v.rep.Commands
	v.rep.Frames++
	v.rep.Commands += uint64(len(v.standby.commands))
	if v.o.Frame != nil {
		v.stopped = v.o.Frame(log.Index, log.Term, v.standby.commands)
	}
	if v.o.Progress != nil && v.stopped == nil && before/verifyStep != v.rep.Commands/verifyStep {
		v.stopped = v.o.Progress(v.rep.Commands, 0)
	}
	return v.stopped
}
