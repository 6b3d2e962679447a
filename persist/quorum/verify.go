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

// errEntries marks a log whose entries are valid but do not lead to its snapshots.
var errEntries = errors.New("the log does not lead to its snapshots")

// VerifyOptions are the options of Verify. Dir is Options.Dir of a stopped node.
type VerifyOptions struct {
	persist.ToolOptions
	// Frame, if set, is called with the commands of each accepted frame, valid during
	// the call, the entry's index and the term of the leader that proposed it. Its
	// error ends the work, which returns it.
	Frame func(index, term uint64, commands []engine.Command) error
	// To, if set, ends the work after the frame that contains this Seq, to compare the
	// state there with that of another node.
	To uint64
}

// Verify checks what a stopped node has, applying its log as a leader's machine would:
// every checksum, the chain of frames, the digest of every command's events, and the
// state at each snapshot, from the oldest snapshot that the log continues. The error
// joins all that is wrong; each part is a *persist.DamageError. It changes nothing,
// except for a temporary file of raft's among its snapshots.
//
// The last entries may not be on a majority: a follower keeps them until a leader
// overwrites them. Verify applies them as if they were committed.
func Verify(o VerifyOptions) (rep persist.Report, err error) {
	o.Logger = cmp.Or(o.Logger, slog.Default())
	path := (&Options{Dir: o.Dir, FS: o.FS}).path(logFolder)
	log, err := persist.OpenEntryLog(persist.EntryLogOptions{
		Dir: path, FS: o.FS, Logger: o.Logger, Advice: DamageAdvice, ReadOnly: true,
	})
	if err != nil {
		return rep, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	v := &verifier{o: &o, log: logStore{log}, path: path}
	v.standby = newStandby(o.State, MinTailEvents)
	v.machine = &machine{
		// With a copy that is ahead of every entry, no commit is written.
		local: &localStores{index: math.MaxUint64}, log: log, standby: v.standby,
		fail: func(err error) error { v.failure = err; return err }, at: persist.Genesis(),
	}
	err = v.run()
	if o.Progress != nil && v.stopped == nil {
		_ = o.Progress(v.rep.Commands, v.rep.Commands) // the last call cannot stop the work
	}
	r := v.standby.replica
	v.rep.Epoch, v.rep.Seq, v.rep.Digest = v.machine.at.Epoch, r.State.Seq(), r.Digest
	v.rep.Last, v.rep.StateHash, v.rep.BookHash = r.State.Seq(), r.State.Hash(), r.State.BookHash()
	return v.rep, errors.Join(append(v.problems, err)...)
}

// verifier applies a node's log as the node's own machine would.
type verifier struct {
	o       *VerifyOptions
	log     logStore
	path    string
	standby *standby
	machine *machine
	rep     persist.Report

	headers  []header // of the valid snapshots, newest first
	problems []error
	failure  error // of the machine
	stopped  error // of a callback
}

func (v *verifier) damage(err error) error {
	return &persist.DamageError{Dir: v.o.Dir, Where: v.path, Err: err, Advice: DamageAdvice}
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
			v.problems = append(v.problems, v.damage(fmt.Errorf("%w: a snapshot is of entry %d, the log ends at %d", errEntries, h.index, v.machine.lastIndex)))
		}
	}
	return nil
}

// begin reads the snapshots and starts from the oldest one that the log continues.
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
		return v.damage(fmt.Errorf("%w: the log begins at entry %d, and no valid snapshot contains those before", errMissing, first))
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

// verifyEntry applies one entry and compares the state with the snapshots taken there.
func (v *verifier) verifyEntry(index uint64) error {
	var log raft.Log
	if err := v.log.GetLog(index, &log); err != nil {
		return v.damage(fmt.Errorf("entry %d: %w", index, err))
	}
	if log.Type != raft.LogCommand {
		return nil
	}
	v.machine.Apply(&log) // the result is for the proposer
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

// verifyStep is the number of commands between calls of Progress.
const verifyStep = 1 << 16

// frame counts the frame that was applied and calls the callbacks.
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
