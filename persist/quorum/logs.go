package quorum

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"blockdesk/persist"
)

// logStore is raft's LogStore and StableStore on an EntryLog. An entry, version 1,
// little-endian:
//
//	 0         1      2      4      12         20
//	┌─────────┬──────┬──────┬──────┬──────────┬───────┬────────┐
//	│ version │ type │ tag  │ term │ appended │ tag … │ data … │
//	│    1    │      │ len  │      │ Unix ns  │       │        │
//	└─────────┴──────┴──────┴──────┴──────────┴───────┴────────┘
type logStore struct{ *persist.EntryLog }

const (
	logVersion = 1
	logHeader  = 20
)

var (
	_ raft.LogStore          = logStore{}
	_ raft.StableStore       = logStore{}
	_ raft.MonotonicLogStore = logStore{}
)

// IsMonotonic implements raft.MonotonicLogStore: indexes have no gaps.
func (logStore) IsMonotonic() bool { return true }

// FirstIndex implements raft.LogStore.
func (l logStore) FirstIndex() (uint64, error) {
	first, _ := l.Bounds()
	return first, nil
}

// LastIndex implements raft.LogStore.
func (l logStore) LastIndex() (uint64, error) {
	_, last := l.Bounds()
	return last, nil
}

// GetLog implements raft.LogStore.
func (l logStore) GetLog(index uint64, log *raft.Log) error {
	ok, err := l.Entry(index, func(value []byte) error { return decodeLog(value, index, log) })
	if err == nil && !ok {
		return raft.ErrLogNotFound
	}
	return err
}

// StoreLog implements raft.LogStore.
func (l logStore) StoreLog(log *raft.Log) error { return l.StoreLogs([]*raft.Log{log}) }

// StoreLogs implements raft.LogStore with one synced write.
func (l logStore) StoreLogs(entries []*raft.Log) error {
	if len(entries) == 0 {
		return nil
	}
	first := entries[0].Index
	for i, e := range entries {
		if e.Index != first+uint64(i) || len(e.Extensions) > 1<<16-1 {
			return fmt.Errorf("%w: entry %d with a tag of %d bytes after entry %d",
				persist.ErrEntryLimit, e.Index, len(e.Extensions), first+uint64(i)-1)
		}
	}
	return l.Append(first, len(entries), func(dst []byte, i int) []byte { return appendLog(dst, entries[i]) })
}

func appendLog(dst []byte, log *raft.Log) []byte {
	dst = append(dst, logVersion, byte(log.Type))
	dst = binary.LittleEndian.AppendUint16(dst, uint16(len(log.Extensions)))
	dst = binary.LittleEndian.AppendUint64(dst, log.Term)
	appended := int64(0)
	if !log.AppendedAt.IsZero() {
		appended = log.AppendedAt.UnixNano()
	}
	dst = binary.LittleEndian.AppendUint64(dst, uint64(appended))
	return append(append(dst, log.Extensions...), log.Data...)
}

// decodeLog decodes an entry into log, which does not alias p.
func decodeLog(p []byte, index uint64, log *raft.Log) error {
	if len(p) < logHeader || p[0] != logVersion {
		return fmt.Errorf("%w %d: %d bytes, version %d: this program reads version %d", errEntry, index, len(p), firstByte(p), logVersion)
	}
	end := logHeader + int(binary.LittleEndian.Uint16(p[2:]))
	if end > len(p) {
		return fmt.Errorf("%w %d: it is shorter than its tag", errEntry, index)
	}
	p = append([]byte(nil), p...)
	*log = raft.Log{Index: index, Term: binary.LittleEndian.Uint64(p[4:]), Type: raft.LogType(p[1]), Data: p[end:]}
	if end > logHeader {
		log.Extensions = p[logHeader:end:end]
	}
	if ns := int64(binary.LittleEndian.Uint64(p[12:])); ns != 0 {
		log.AppendedAt = time.Unix(0, ns)
	}
	return nil
}

// entryFrame returns the frame of an entry that appendLog wrote; ok is false if the
// entry is of another kind. It aliases p.
func entryFrame(p []byte) (frame []byte, ok bool) {
	if len(p) < logHeader+tagSize || p[0] != logVersion || p[1] != byte(raft.LogCommand) {
		return nil, false
	}
	end := logHeader + int(binary.LittleEndian.Uint16(p[2:]))
	if end != logHeader+tagSize {
		return nil, false
	}
	t, err := decodeTag(p[logHeader:end])
	return p[end:], err == nil && t.kind == frameKind
}

// Set implements raft.StableStore.
func (l logStore) Set(key, value []byte) error { return l.SetRegister(key, value) }

// Get implements raft.StableStore: nil if key was never set.
func (l logStore) Get(key []byte) ([]byte, error) {
	value, _, err := l.Register(key)
	return value, err
}

// SetUint64 implements raft.StableStore for a log that does not serve raft yet.
func (l logStore) SetUint64(key []byte, value uint64) error {
	return l.SetRegister(key, binary.LittleEndian.AppendUint64(nil, value))
}

// GetUint64 implements raft.StableStore: 0 if key was never set.
func (l logStore) GetUint64(key []byte) (uint64, error) {
	value, ok, err := l.Register(key)
	if err != nil || !ok {
		return 0, err
	}
	if len(value) != 8 {
		return 0, fmt.Errorf("%w: key %q has %d bytes", errState, key, len(value))
	}
	return binary.LittleEndian.Uint64(value), nil
}

// raftStore is the logStore of a node that takes part. Raft panics if a term cannot be
// written, which would end the whole program. So raftStore reports the failure to the
// node, which leaves the group, and lets raft go on in the new term until then. That is
// safe: a log that has failed accepts no later write, so the node neither votes in that
// term nor stores an entry of it, and no majority counts on it.
type raftStore struct {
	logStore
	fail func(error) error // latches the node's failure
}

// SetUint64 implements raft.StableStore.
func (s raftStore) SetUint64(key []byte, value uint64) error {
	err := s.logStore.SetUint64(key, value)
	if err != nil && s.Failed() != nil {
		_ = s.fail(err) // the node ends with it
		return nil      //nolint:nilerr // an error would end the program
	}
	return err
}
