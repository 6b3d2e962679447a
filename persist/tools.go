package persist

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"

	"github.com/cockroachdb/pebble/v2/vfs"

	"blockdesk/engine"
)

// ToolOptions are the options of the tools that read a stopped store. They change
// nothing in it and fail while a process has it open.
type ToolOptions struct {
	Dir string
	// FS is the disk if nil.
	FS vfs.FS
	// State configures replicas; with Naive set a replay checks the fast book against
	// the naive one.
	State engine.StateOptions
	// Progress, if set, is called about every 65,536 commands, and at the end. Its
	// error ends the work, which then returns it.
	Progress func(done, total uint64) error
	// Logger is slog's default if nil.
	Logger *slog.Logger
}

// source is a store opened read-only.
type source struct {
	folder
	highWaterMark highWaterMarkRecord
	snaps         []snapshot
	damaged       []string // snapshots whose header is damaged
}

// toolAdvice does not send the reader to the tool that has just run.
const toolAdvice = "keep a copy of this folder, then `blockdesk restore` the newest backup into an empty folder"

func openSource(o ToolOptions) (*source, error) {
	o.FS, o.Logger = cmp.Or(o.FS, vfs.Default), cmp.Or(o.Logger, slog.Default())
	src := &source{folder: folder{layout: layout{fs: o.FS, dir: o.Dir, advice: toolAdvice}, fault: fault{log: o.Logger}}}
	if err := src.open(); err != nil {
		return nil, errors.Join(err, src.release())
	}
	return src, nil
}

func (src *source) open() (err error) {
	if src.highWaterMark, err = src.openToRead(); err != nil {
		return err
	}
	src.snaps, src.damaged, err = listSnapshots(src.layout.fs, src.layout.snapshots())
	return err
}

// verifyFrames checks the frames against the high-water mark and the snapshots. An
// error is a *DamageError.
func (src *source) verifyFrames() (begin, end position, err error) {
	begin, end, err = verifyFrames(src.db, src.snaps, src.highWaterMark)
	if err == nil {
		err = src.fault.err()
	}
	if err != nil {
		err = src.layout.damage(src.layout.frames(), err)
	}
	return begin, end, err
}

// oldest returns the replica that the longest possible replay begins with, and its
// position.
func (src *source) oldest(begin position, o engine.StateOptions) (*engine.Replica, position, error) {
	if begin.Next == 1 {
		return engine.NewReplica(o), position{Position: Genesis()}, nil
	}
	var errs []error
	for i := range src.snaps {
		if src.snaps[i].seq+1 < begin.Next {
			continue
		}
		snap, r, err := src.layout.loadSnapshot(src.snaps[i].seq, o)
		if err == nil {
			return r, snap.position(), nil
		}
		errs = append(errs, src.layout.damage(src.layout.snapshot(src.snaps[i].seq), err))
	}
	return nil, position{}, errors.Join(append(errs, src.layout.damage(src.layout.snapshots(),
		fmt.Errorf("no valid snapshot to replay from, and the journal begins at seq %d", begin.Next)))...)
}

// replay applies the frames after at to r, up to the one that contains Seq to.
func (src *source) replay(r *engine.Replica, at position, to uint64, p *progress, each func(position)) (position, error) {
	run := replay{db: src.db, at: at, to: to, floor: NewestSnapshot, each: func(at position, count int) error {
		each(at)
		return p.add(uint64(count))
	}}
	at, err := run.run(r)
	if err != nil && p.stopped == nil {
		err = src.layout.damage(src.layout.frames(), err)
	}
	return at, err
}

// progress reports to a callback every progressStep commands.
type progress struct {
	report      func(done, total uint64) error
	done, total uint64
	next        uint64
	stopped     error // of report
}

const progressStep = 1 << 16

func (p *progress) add(n uint64) error {
	p.done += n
	if p.report != nil && p.done >= p.next {
		p.next = p.done + progressStep
		p.stopped = p.report(p.done, p.total)
	}
	return p.stopped
}

// finish reports the last commands. The work is done, so the callback's error does not
// matter.
func (p *progress) finish() {
	if p.report != nil && p.stopped == nil {
		_ = p.report(p.done, p.total)
	}
}

// Report is the result of Verify and Replay.
type Report struct {
	// First and Last are the first and last Seq in the journal; First is Last+1 if it
	// is empty.
	First, Last uint64
	// HighWaterMark is the Seq of the high-water mark.
	HighWaterMark uint64
	Epoch         uint64
	Frames        uint64
	// Commands is the number of commands replayed, from the state after Seq Base (0:
	// the beginning).
	Commands, Base uint64
	// Snapshots are the Seqs of the valid snapshots.
	Snapshots []uint64
	// Seq, Digest, StateHash and BookHash describe the state at the end of the replay.
	Seq       uint64
	Digest    uint64
	StateHash [32]byte
	BookHash  [32]byte
}

// Verify checks a journal: every checksum, the chain of frames, the sequence, the
// high-water mark, the digest of every command's events, and the state at each
// snapshot. The error joins all that is wrong; each part is a *DamageError.
func Verify(o ToolOptions) (rep Report, err error) {
	src, err := openSource(o)
	if err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, src.release()) }()
	begin, end, err := src.verifyFrames()
	rep = Report{First: begin.Next, Last: end.Last(), HighWaterMark: src.highWaterMark.last, Epoch: end.Epoch}
	if err != nil {
		return rep, err
	}
	var problems []error
	for _, name := range src.damaged {
		problems = append(problems, src.layout.damage(src.layout.fs.PathJoin(src.layout.snapshots(), name),
			fmt.Errorf("%w: the header is damaged", errSnapshot)))
	}
	r, at, err := src.oldest(begin, o.State)
	if err != nil {
		return rep, errors.Join(append(problems, err)...)
	}
	rep.Base = at.Last()
	p := &progress{report: o.Progress, total: end.Last() - at.Last()}
	check := func(at position) {
		for i := range src.snaps {
			if src.snaps[i].seq != at.Last() {
				continue
			}
			if err := src.checkSnapshot(&src.snaps[i], r, o.State); err != nil {
				problems = append(problems, src.layout.damage(src.layout.snapshot(at.Last()), err))
			} else {
				rep.Snapshots = append(rep.Snapshots, at.Last())
			}
		}
	}
	check(at)
	at, err = src.replay(r, at, end.Last(), p, func(at position) {
		rep.Frames++
		check(at)
	})
	p.finish()
	rep.Commands, rep.Seq, rep.Digest = p.done, at.Last(), r.Digest
	rep.StateHash, rep.BookHash = r.State.Hash(), r.State.BookHash()
	return rep, errors.Join(append(problems, err)...)
}

// checkSnapshot compares a snapshot's whole content with the replica that the frames
// led to.
func (src *source) checkSnapshot(want *snapshot, r *engine.Replica, o engine.StateOptions) error {
	_, got, err := src.layout.loadSnapshot(want.seq, o)
	if err != nil {
		return err
	}
	hash := r.State.Hash()
	switch {
	case hash != want.state:
		return fmt.Errorf("%w: state hash %x, replay gives %x", errSnapshot, want.state[:8], hash[:8])
	case got.State.Hash() != hash:
		return fmt.Errorf("%w: its content does not have the state hash of its header, %x", errSnapshot, hash[:8])
	case r.Digest != want.digest:
		return fmt.Errorf("%w: event digest %016x, replay gives %016x", errSnapshot, want.digest, r.Digest)
	}
	return nil
}

// Replay replays the journal from as early as possible up to the frame that contains
// command to (NewestSnapshot: all of it) and returns the resulting hashes.
func Replay(o ToolOptions, to uint64) (rep Report, err error) {
	src, err := openSource(o)
	if err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, src.release()) }()
	begin, end, err := src.verifyFrames()
	if err != nil {
		return Report{}, err
	}
	r, at, err := src.oldest(begin, o.State)
	if err != nil {
		return Report{}, err
	}
	rep = Report{First: begin.Next, Last: end.Last(), HighWaterMark: src.highWaterMark.last, Epoch: end.Epoch, Base: at.Last()}
	p := &progress{report: o.Progress, total: min(end.Last(), to) - min(at.Last(), to)}
	at, err = src.replay(r, at, to, p, func(position) { rep.Frames++ })
	p.finish()
	rep.Commands, rep.Seq, rep.Digest = p.done, at.Last(), r.Digest
	rep.StateHash, rep.BookHash = r.State.Hash(), r.State.BookHash()
	return rep, err
}
