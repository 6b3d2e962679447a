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
	// maxCachedSnapshots is how many snapshots' files are in memory at most: who fetches the
	// one before the newest may end.
	maxCachedSnapshots = 2
	// snapshotRenew is how often the file given out is made anew at most.
	snapshotRenew = time.Minute
)

// images is what this node's disk has of raft's snapshots. Safe for concurrent use.
type snapshotStatus struct {
	store raft.SnapshotStore

	newest   atomic.Pointer[persist.Position] // of the newest; nil = there is none
	failed   atomic.Pointer[error]            // why the last attempt failed
	taken    atomic.Uint64                    // written since the start
	failures atomic.Uint64                    // and not written
}

// wrote says what came of a snapshot of this node's.
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

// restored says that the newest snapshot came of another node, or was there at the
// start.
func (s *snapshotStatus) restored(at persist.Position) { s.newest.Store(&at) }

// read makes the file of raft's newest snapshot, if it is of that place.
func (s *snapshotStatus) read(at persist.Position) (file []byte, err error) {
	list, err := s.store.List()
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, persist.ErrNoSnapshot
	}
	_, content, err := s.store.Open(list[0].ID) // which proves raft's own checksum
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
		return nil, persist.ErrNoSnapshot // another one came meanwhile
	}
	var replica bytes.Buffer
	if _, err := io.CopyN(&replica, content, int64(h.bytes)); err != nil {
		return nil, fmt.Errorf("%w: reading the replica: %w", errSnapshot, err)
	}
	return persist.EncodeSnapshot(h.at, h.digest, h.state, replica.Bytes())
}

// shelf gives out raft's snapshots as files of persist's, while a term lasts. Raft's
// have the replica's encoding already, so the engine and the warm replica take no
// part. Safe for concurrent use.
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

// newest is the place of the snapshot to give out.
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
// changed.
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

// close forgets the files. It waits for no disk.
func (s *snapshotCache) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files, s.closed = nil, true
}
