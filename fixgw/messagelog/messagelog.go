// Package messagelog keeps the messages of FIX sessions in files, both ways, without
// passwords and signatures. It is for people who look for the cause of a problem; the
// message store of package session is what resends are made of.
//
// A session copies a message into a bounded queue and never waits. One goroutine writes
// the queue to the present file, one line a message. A message that does not fit the queue
// is lost and counted, and a line of the log says how many are missing. Nothing is synced.
// A failed write is logged and tried again after logRetry.
//
// Limits: [Options]: FileBytes, KeepFiles, QueueBytes. A file also ends with the UTC day.
package messagelog

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"blockdesk/fixgw/wire"
)

// Options say where messages are kept and how many of them. The zero value of every field
// but Dir means its default.
type Options struct {
	// Dir is the folder. It is created, readable for its owner only.
	Dir string
	// FileBytes is the size at which a file ends and the next one begins, 64 KiB to 4
	// GiB; default 64 MiB. A message is never split.
	FileBytes int64
	// KeepFiles is the number of files kept, the present one included, 1 to 10,000;
	// default 16.
	KeepFiles int
	// QueueBytes bounds the messages that wait for the disk, 4 KiB to 1 GiB; default 8
	// MiB. A message that does not fit is lost and counted.
	QueueBytes int

	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	o.FileBytes = cmp.Or(o.FileBytes, 64<<20)
	o.KeepFiles = cmp.Or(o.KeepFiles, 16)
	o.QueueBytes = cmp.Or(o.QueueBytes, 8<<20)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return o
}

// Validate reports the first rule that the options break, defaults filled in.
func (o Options) Validate() error {
	o = o.withDefaults()
	switch {
	case o.Dir == "":
		return errors.New("fix: message log: folder is missing")
	case o.FileBytes < 64<<10 || o.FileBytes > 4<<30:
		return fmt.Errorf("fix: message log: %d bytes a file: must be 64 KiB to 4 GiB", o.FileBytes)
	case o.KeepFiles < 1 || o.KeepFiles > 10_000:
		return fmt.Errorf("fix: message log: %d files: must be 1 to 10000", o.KeepFiles)
	case o.QueueBytes < 4<<10 || o.QueueBytes > 1<<30:
		return fmt.Errorf("fix: message log: queue of %d bytes: must be 4 KiB to 1 GiB", o.QueueBytes)
	}
	return nil
}

// Log keeps the messages of all sessions in files, both ways, from a session's proven
// Logon on. Messages before it belong to no session: a client without credentials could
// fill the files with them.
//
// A session copies its message into a buffer, which takes some 100 ns, and goes on; Run
// takes the secrets out (wire.AppendLogText) and writes. A message that does not fit into
// the buffer is lost: the files say how many are missing, and where. Nothing is synced:
// the log is for reading, reports come from the message store.
//
// Files are named fix-<UTC day>-<number>.log; the number only grows. A file ends at
// FileBytes or with the UTC day, and each start begins another one.
type Log struct {
	options Options
	wake    chan struct{} // capacity 1: buf or missed has changed
	lost    atomic.Uint64
	paused  atomic.Bool

	mu     sync.Mutex
	buf    []byte    // entries that wait, one after the other
	missed uint64    // messages lost since Run took buf last
	since  time.Time // when the first of them was lost

	// Only Run's goroutine:
	file    *os.File // nil = none is open
	day     string
	size    int64
	number  uint64 // of the newest file
	lines   []byte // not written yet
	waiting uint64 // messages in lines
	broken  bool   // the last write failed; logged once
	retryAt time.Time
}

// entryHead is the size of what precedes an entry's CompID and message: time, length of
// the message, direction and length of the CompID.
const entryHead = 8 + 4 + 1 + 1

// logRetry is the pause after a failed write.
const logRetry = time.Second

// Open creates the folder and finds its newest file.
func Open(o Options) (*Log, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	l := &Log{options: o.withDefaults(), wake: make(chan struct{}, 1)}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("fix: message log: %w", err)
	}
	files, err := Files(o.Dir)
	if err != nil {
		return nil, err
	}
	if len(files) > 0 {
		l.number = fileNumber(files[len(files)-1])
	}
	return l, nil
}

// Record takes one or more whole messages, which it copies. Any goroutine.
func (l *Log) Record(d wire.Direction, compID string, at time.Time, messages []byte) {
	l.mu.Lock()
	if l.paused.Load() || len(l.buf)+entryHead+len(compID)+len(messages) > l.options.QueueBytes {
		if l.missed == 0 {
			l.since = at
		}
		l.missed++
		l.mu.Unlock()
		l.lost.Add(1)
		return
	}
	l.buf = binary.LittleEndian.AppendUint64(l.buf, uint64(at.UnixNano()))
	l.buf = binary.LittleEndian.AppendUint32(l.buf, uint32(len(messages)))
	l.buf = append(l.buf, byte(d), byte(len(compID)))
	l.buf = append(append(l.buf, compID...), messages...)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Pause begins (true) or ends a time in which messages are lost, and counted, because the
// disk is nearly full. A nil log does nothing. Any goroutine.
func (l *Log) Pause(on bool) {
	if l != nil {
		l.paused.Store(on)
	}
}

// Lost returns the number of messages that the log has lost. Any goroutine.
func (l *Log) Lost() uint64 { return l.lost.Load() }

// Run writes until ctx ends, and then what still waits. It returns nil after a failed
// write too: a failed disk costs messages, not the service.
func (l *Log) Run(ctx context.Context) error {
	var batch []byte
	for {
		select {
		case <-l.wake:
		case <-ctx.Done():
		}
		last := ctx.Err() != nil
		l.mu.Lock()
		batch, l.buf = l.buf, batch[:0]
		missed, since := l.missed, l.since
		l.missed = 0
		l.mu.Unlock()
		l.write(batch)
		if missed > 0 {
			l.writeLost(since, missed)
		}
		l.flush()
		if last {
			return l.close()
		}
	}
}

// Start starts Run; the returned function ends it and waits. A nil log does nothing.
func (l *Log) Start(ctx context.Context) (end func() error) {
	if l == nil {
		return func() error { return nil }
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	var err error
	running.Go(func() { err = l.Run(ctx) })
	return func() error {
		cancel()
		running.Wait()
		return err
	}
}

// write turns entries into lines.
func (l *Log) write(entries []byte) {
	for len(entries) > 0 {
		at := time.Unix(0, int64(binary.LittleEndian.Uint64(entries))).UTC()
		size := int(binary.LittleEndian.Uint32(entries[8:]))
		d, named := wire.Direction(entries[12]), int(entries[13])
		compID := entries[entryHead : entryHead+named]
		messages := entries[entryHead+named : entryHead+named+size]
		entries = entries[entryHead+named+size:]
		for len(messages) > 0 {
			skip, n, err := wire.ScanFrame(messages, len(messages))
			if n == 0 { // no whole message: not FIX, and not for the files
				n = max(skip, 1)
				if err != nil || skip == 0 {
					n = len(messages)
				}
				messages = messages[n:]
				continue
			}
			l.begin(at, int64(len(l.lines)))
			l.lines = wire.AppendLogLine(l.lines, at, d, compID, messages[:n])
			l.waiting++
			messages = messages[n:]
		}
	}
}

// writeLost writes that n messages are missing, from since on.
func (l *Log) writeLost(since time.Time, n uint64) {
	l.begin(since.UTC(), int64(len(l.lines)))
	l.lines = append(wire.AppendLogTime(l.lines, since.UTC()), " lost "...)
	l.lines = append(strconv.AppendUint(l.lines, n, 10), '\n')
}

// begin makes sure that the next line, with ahead bytes before it, goes to the right
// file.
func (l *Log) begin(at time.Time, ahead int64) {
	day := at.Format("20060102")
	// Sessions read the clock for themselves: around midnight the days alternate.
	if l.day >= day && l.size+ahead < l.options.FileBytes {
		return
	}
	l.flush()
	if err := l.close(); err != nil {
		l.options.Logger.Error("cannot close FIX message log file", "error", err)
	}
	l.day, l.size = max(l.day, day), 0
}

// flush writes the lines, into a new file where none is open.
func (l *Log) flush() {
	if len(l.lines) == 0 {
		return
	}
	err := l.writeLines()
	if err != nil {
		l.lost.Add(l.waiting)
		if !l.broken {
			l.options.Logger.Error("cannot write FIX message log", "error", err)
		}
		l.retryAt = time.Now().Add(logRetry)
	}
	l.broken = err != nil
	l.lines, l.waiting = l.lines[:0], 0
	if cap(l.lines) > 64<<10 {
		l.lines = nil
	}
}

// errLogWaits is the error of a log within logRetry of a failed write.
var errLogWaits = errors.New("the message log waits after a failed write")

func (l *Log) writeLines() error {
	if l.broken && time.Now().Before(l.retryAt) {
		return errLogWaits
	}
	if l.file == nil {
		name := fmt.Sprintf("fix-%s-%08d.log", l.day, l.number+1)
		f, err := os.OpenFile(filepath.Join(l.options.Dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		l.file = f
		l.number++
		if err := l.prune(); err != nil {
			return err
		}
	}
	n, err := l.file.Write(l.lines)
	l.size += int64(n)
	if err != nil {
		// The next line must not be joined to half a one.
		return errors.Join(err, l.close())
	}
	return nil
}

// prune removes the oldest files beyond KeepFiles.
func (l *Log) prune() error {
	files, err := Files(l.options.Dir)
	if err != nil {
		return err
	}
	var all error
	for _, old := range files[:max(0, len(files)-l.options.KeepFiles)] {
		all = errors.Join(all, os.Remove(old))
	}
	return all
}

func (l *Log) close() error {
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	if err != nil {
		return fmt.Errorf("fix: message log: %w", err)
	}
	return nil
}

// Files returns the paths of a folder's log files, oldest first.
func Files(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("fix: message log: %w", err)
	}
	var files []string
	for _, e := range entries {
		if e.Type().IsRegular() && fileNumber(e.Name()) > 0 {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	slices.SortFunc(files, func(a, b string) int { return cmp.Compare(fileNumber(a), fileNumber(b)) })
	return files, nil
}

// fileNumber returns the number in a log file's name, or 0 where it is none.
func fileNumber(path string) uint64 {
	name, is := strings.CutSuffix(filepath.Base(path), ".log")
	parts := strings.Split(name, "-")
	if !is || len(parts) != 3 || parts[0] != "fix" || len(parts[1]) != len("20060102") {
		return 0
	}
	n, err := strconv.ParseUint(parts[2], 10, 64)
	if err != nil {
		return 0
	}
	return n
}
