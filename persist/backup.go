package persist

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// ErrNotEmpty says that the target folder of a copy is not empty.
var ErrNotEmpty = errors.New("the target folder is not empty: name a new one")

// Backup copies a running store, as of a moment during the call, into an empty or
// missing folder and verifies the copy by reading all of it. The engine goes on;
// pruning waits. On one disk Pebble links its tables instead of copying them, so a
// backup that must survive the disk has to be moved to another one. progress, if set,
// gets the bytes of snapshots copied.
func (s *Store) Backup(target string, progress func(done, total uint64)) error {
	s.pruneMu.Lock()
	defer s.pruneMu.Unlock()
	if err := s.fault.err(); err != nil {
		return err
	}
	to := layout{fs: s.o.FS, dir: target}
	m, err := to.beginCopy()
	if err != nil {
		return err
	}
	// List the snapshots before the checkpoint, so that none is ahead of its frames.
	// The copy must reach at least what is durable at this moment.
	snaps, at := s.snapshots.get(), s.durablePosition()
	err = s.checkpoint(to)
	if err == nil {
		err = to.sortLogs()
	}
	if err == nil {
		err = s.copySnapshots(to, snaps, progress)
	}
	if err != nil {
		// After a failure of the store, some of its files are only in memory.
		return errors.Join(err, s.fault.err(), m.close())
	}
	return to.finishCopy(m, at.highWaterMark(closed), s.o.Logger)
}

// checkpoint copies the frames. Pebble panics if it cannot sync the target folder; it
// holds no lock then, and the journal is unharmed.
func (s *Store) checkpoint(to layout) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("making a checkpoint: pebble panicked: %v", r)
		}
	}()
	if err := s.db.Checkpoint(to.frames(), pebble.WithFlushedWAL()); err != nil {
		return fmt.Errorf("making a checkpoint: %w", err)
	}
	return nil
}

// sortLogs moves the logs where Open looks for them: a checkpoint puts them beside the
// tables.
func (l layout) sortLogs() error {
	logs := l.logs()
	if err := l.fs.MkdirAll(logs, dirMode); err != nil {
		return fmt.Errorf("creating %s: %w", logs, err)
	}
	names, err := l.fs.List(l.frames())
	if err != nil {
		return fmt.Errorf("listing the checkpoint: %w", err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, ".log") {
			if err := l.fs.Rename(l.fs.PathJoin(l.frames(), name), l.fs.PathJoin(logs, name)); err != nil {
				return fmt.Errorf("moving a log of the checkpoint: %w", err)
			}
		}
	}
	return errors.Join(syncDir(l.fs, logs), syncDir(l.fs, l.frames()))
}

func (s *Store) copySnapshots(to layout, snaps []snapshot, progress func(done, total uint64)) error {
	var done, total uint64
	for i := range snaps {
		total += snaps[i].length
	}
	for i := range snaps {
		if err := copyFile(s.o.FS, s.layout.snapshot(snaps[i].seq), to.snapshot(snaps[i].seq)); err != nil {
			return err
		}
		done += snaps[i].length
		if progress != nil {
			progress(done, total)
		}
	}
	return syncDir(s.o.FS, to.snapshots())
}

// beginCopy creates an empty target. It is not a valid store until finishCopy returns nil.
func (l layout) beginCopy() (*highWaterMark, error) {
	if used, err := hasFiles(l.fs, l.dir); err != nil {
		return nil, err
	} else if used {
		return nil, fmt.Errorf("%w: %s", ErrNotEmpty, l.dir)
	}
	if err := MakeDir(l.fs, l.dir, dirMode); err != nil {
		return nil, err
	}
	m, err := openHighWaterMark(l.fs, l.highWaterMark(), highWaterMarkRecord{phase: copying})
	if err != nil {
		return nil, err
	}
	if err := MakeDir(l.fs, l.snapshots(), dirMode); err != nil {
		return nil, errors.Join(err, m.close())
	}
	return m, nil
}

// finishCopy verifies that the copy reaches the high-water mark want, and makes the copy a
// valid store. It closes m.
func (l layout) finishCopy(m *highWaterMark, want highWaterMarkRecord, logger *slog.Logger) error {
	end, err := l.verifyCopy(want, logger)
	if err == nil {
		err = m.write(end.highWaterMark(closed))
	}
	if err == nil {
		err = m.sync()
	}
	if err = errors.Join(err, m.close()); err != nil {
		return fmt.Errorf("the copy in %s is not usable: %w", l.dir, err)
	}
	return nil
}

func (l layout) verifyCopy(want highWaterMarkRecord, logger *slog.Logger) (end position, err error) {
	src := &source{folder: folder{layout: l, fault: fault{log: logger}}, highWaterMark: want}
	if src.snaps, _, err = listSnapshots(l.fs, l.snapshots()); err != nil {
		return end, err
	}
	for i := range src.snaps {
		if _, _, err := readSnapshot(l.fs, l.snapshot(src.snaps[i].seq), true); err != nil {
			return end, err
		}
	}
	if err = src.readFrames(); err != nil {
		return end, err
	}
	_, end, err = src.verifyFrames()
	return end, errors.Join(err, src.release())
}

// BackupStopped copies a store that no process has open into an empty or missing folder
// and verifies the copy. It reports the bytes copied to o.Progress.
func BackupStopped(o ToolOptions, target string) error { return copyStore(o, target) }

// Restore copies a backup into an empty or missing folder, which becomes a store, and
// verifies the copy. It reports the bytes copied to o.Progress. Errors: ErrNotEmpty if
// the target has files.
func Restore(o ToolOptions, target string) error { return copyStore(o, target) }

func copyStore(o ToolOptions, target string) (err error) {
	if used, err := hasFiles(cmp.Or(o.FS, vfs.Default), target); err != nil {
		return err
	} else if used {
		return fmt.Errorf("%w: %s", ErrNotEmpty, target)
	}
	src, err := openSource(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.release()) }()
	if _, _, err := src.verifyFrames(); err != nil {
		return err
	}
	from, to := src.layout, layout{fs: src.layout.fs, dir: target}
	m, err := to.beginCopy()
	if err != nil {
		return err
	}
	if err := from.copyAll(to, o.Progress); err != nil {
		return errors.Join(err, m.close())
	}
	return to.finishCopy(m, src.highWaterMark, src.fault.log)
}

// copyAll copies frames and snapshots, file by file.
func (l layout) copyAll(to layout, report func(done, total uint64) error) error {
	type job struct {
		from, to string
		size     uint64
	}
	var jobs []job
	var done, total uint64
	folders := [][2]string{{l.frames(), to.frames()}, {l.logs(), to.logs()}, {l.snapshots(), to.snapshots()}}
	for _, dir := range folders {
		if err := MakeDir(l.fs, dir[1], dirMode); err != nil {
			return err
		}
		names, err := l.fs.List(dir[0])
		if err != nil {
			return fmt.Errorf("listing %s: %w", dir[0], err)
		}
		for _, name := range names {
			if name == "LOCK" || name == logFolder {
				continue
			}
			path := l.fs.PathJoin(dir[0], name)
			info, err := l.fs.Stat(path)
			if err != nil {
				return fmt.Errorf("reading the state of %s: %w", path, err)
			}
			jobs = append(jobs, job{path, l.fs.PathJoin(dir[1], name), uint64(info.Size())})
			total += uint64(info.Size())
		}
	}
	for _, j := range jobs {
		if err := copyFile(l.fs, j.from, j.to); err != nil {
			return err
		}
		done += j.size
		if report == nil {
			continue
		}
		if err := report(done, total); err != nil {
			return err
		}
	}
	var errs []error
	for _, dir := range folders {
		errs = append(errs, syncDir(l.fs, dir[1]))
	}
	return errors.Join(errs...)
}

// copyFile copies and syncs one file. It never links: Pebble overwrites recycled logs
// in place, and a copy should not share a bad block.
func copyFile(fs vfs.FS, from, to string) error {
	if err := vfs.Copy(fs, from, to); err != nil {
		return fmt.Errorf("copying %s: %w", from, err)
	}
	return nil
}
