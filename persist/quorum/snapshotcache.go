package quorum

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"blockdesk/persist"
)

const (
	// maxCachedSnapshots is how many snapshot files are in memory. Two, so that a
	// reader of the one before the newest can finish.
	maxCachedSnapshots = 2
	// snapshotRenew is how long the newest cached file is served before it is replaced.
	snapshotRenew = time.Minute
)

// snapshotStatus says which raft snapshots this node has. Safe for concurrent use.
type snapshotStatus struct {
	store raft.SnapshotStore

	newest   atomic.Pointer[persist.Position] // nil: there is none
	failed   atomic.Pointer[error]            // why the last attempt failed
	taken    atomic.Uint64                    // written since the start
	failures atomic.Uint64                    // not written since the start
}

// written records the result of a snapshot that this node took.
func (s *snapshotStatus) written(at persist.Position, err error) {
	switch {
	case err == nil:
		s.taken.Add(1)
		s.failed.Store(nil)
		s.newest.Store(&at)
	case !errors.Is(err, errStopped):
		s.failures.Add(1)
		s.failed.Store(&err)
	}
}

// restored records that the newest snapshot came from another node, or existed at the
// start.
func (s *snapshotStatus) restored(at persist.Position) { s.newest.Store(&at) }

// read returns raft's newest snapshot as a file of persist, if its position is at.
func (s *snapshotStatus) read(at persist.Position) (file []byte, err error) {
	list, err := s.store.List()
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, persist.ErrNoSnapshot
	}
	_, content, err := s.store.Open(list[0].ID) // Open verifies raft's checksum
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	head := make([]byte, headerSize)
	if _, err := io.ReadFull(content, head); err != nil {
		return nil, fmt.Errorf("%w: reading the header: %w", errSnapshot, err)
	}
	h, err := decodeHeader(head)
	if err != nil {
		return nil, err
	}
	if h.at != at {
		return nil, persist.ErrNoSnapshot // raft has a newer one by now
	}
	var replica bytes.Buffer
	if _, err := io.CopyN(&replica, content, int64(h.bytes)); err != nil {
		return nil, fmt.Errorf("%w: reading the replica: %w", errSnapshot, err)
	}
	return persist.EncodeSnapshot(h.at, h.digest, h.state, replica.Bytes())
}

// snapshotCache serves raft's snapshots as files of persist during a term. Raft's files
// contain the replica's encoding, so neither the engine nor the standby replica is
// involved. Safe for concurrent use.
type snapshotCache struct {
	status *snapshotStatus
	frames *frameIndex
	now    func() time.Time

	reading sync.Mutex // one file at a time

	mu     sync.Mutex
	files  []cachedSnapshot // the newest last
	closed bool
}

type cachedSnapshot struct {
	at    persist.Position
	since time.Time
	file  []byte
}

// newest returns the position of the snapshot to serve.
func (s *snapshotCache) newest() (persist.Position, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.files); n > 0 {
		if last := &s.files[n-1]; s.now().Sub(last.since) < snapshotRenew && s.frames.reaches(last.at) {
			return last.at, true
		}
	}
	if at := s.status.newest.Load(); at != nil {
		return *at, true
	}
	return persist.Position{}, false
}

// file returns the whole file of the snapshot before Seq next, which must not be
// modified.
func (s *snapshotCache) file(next uint64) ([]byte, error) {
	s.reading.Lock()
	defer s.reading.Unlock()
	if file := s.cached(next); file != nil {
		return file, nil
	}
	at := s.status.newest.Load()
	if at == nil || at.Next != next {
		return nil, fmt.Errorf("seq %d: %w", next, persist.ErrNoSnapshot)
	}
	file, err := s.status.read(*at)
	if err != nil {
		return nil, fmt.Errorf("snapshot of seq %d: %w", next-1, err)
	}
	s.add(cachedSnapshot{at: *at, since: s.now(), file: file})
	return file, nil
}

func (s *snapshotCache) cached(next uint64) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.files {
		if s.files[i].at.Next == next {
			return s.files[i].file
		}
	}
	return nil
}

func (s *snapshotCache) add(f cachedSnapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	if len(s.files) == maxCachedSnapshots {
		s.files = slices.Delete(s.files, 0, 1)
	}
	s.files = append(s.files, f)
}

// close drops the files. It waits for no disk.
func (s *snapshotCache) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files, s.closed = nil, true
}
