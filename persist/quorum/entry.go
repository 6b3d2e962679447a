package quorum

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"blockdesk/persist"
)

// Limits of a replicated store, the same on all nodes, so that every node can write
// what any of them proposes.
const (
	// MaxStores is the largest number of replicated stores.
	MaxStores = 16
	// MaxStoreName bounds a store's name, of letters a to z.
	MaxStoreName = 16
	// MaxKeyBytes and MaxValueBytes bound one entry of a store, MaxCommitBytes one
	// commit, in which each set and each deletion counts opBytes more.
	MaxKeyBytes    = persist.MaxKeyBytes - MaxStoreName - 1
	MaxValueBytes  = persist.MaxValueBytes
	MaxCommitBytes = persist.MaxCommitBytes / 2
	opBytes        = 64
)

// errEntry marks an entry that this program did not write.
var errEntry = errors.New("invalid log entry")

// errState marks a value beside the log (a register) that this program did not write.
var errState = errors.New("damaged state of the node")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// kind is the kind of an entry's data. On disk and on the wire: frozen.
type kind uint8

const (
	// termStartKind starts a Term: the entries that the Term proposes contain the index
	// of this one.
	termStartKind kind = 1
	// frameKind is one frame of the journal.
	frameKind kind = 2
	// storeKind is one commit of a replicated store.
	storeKind kind = 3
	// formatKind raises the log's format (format.go).
	formatKind kind = 4
)

// A tag is in the extensions of each raft entry, so that the data of a frame's entry are
// the frame and nothing else. Little-endian.
//
//	 0         1      2     8
//	┌─────────┬──────┬─────┬────────────────┐
//	│ version │ kind │  0  │ index of the   │
//	│    1    │      │     │ term's start   │
//	└─────────┴──────┴─────┴────────────────┘
const (
	tagVersion = 1
	tagSize    = 16
)

type tag struct {
	kind      kind
	termStart uint64 // index of the Term's first entry; 0 in that entry
}

func (t tag) encode() []byte {
	p := make([]byte, tagSize)
	p[0], p[1] = tagVersion, byte(t.kind)
	binary.LittleEndian.PutUint64(p[8:], t.termStart)
	return p
}

func decodeTag(p []byte) (tag, error) {
	if len(p) != tagSize || p[0] != tagVersion {
		return tag{}, fmt.Errorf("%w: tag of %d bytes, version %d: this program reads %d bytes, version %d",
			errEntry, len(p), firstByte(p), tagSize, tagVersion)
	}
	t := tag{kind: kind(p[1]), termStart: binary.LittleEndian.Uint64(p[8:])}
	if t.kind < termStartKind || t.kind > formatKind {
		return tag{}, fmt.Errorf("%w: unknown kind %d", errEntry, t.kind)
	}
	return t, nil
}

func firstByte(p []byte) byte {
	if len(p) == 0 {
		return 0
	}
	return p[0]
}

// A commit of a store, version 1. Little-endian; CRC32C covers all before it.
//
//	 0        4         5          6       8
//	┌────────┬─────────┬──────────┬───────┬────────┬──────────────┬────────┐
//	│ "BDQC" │ version │ name len │   0   │ name … │ operations … │ CRC32C │
//	└────────┴─────────┴──────────┴───────┴────────┴──────────────┴────────┘
//
// An operation: 1, key bytes u16, value bytes u32, key, value sets; 2, bytes u16,
// bytes u32, lo, hi deletes [lo, hi).
const (
	commitMagic   = "BDQC"
	commitVersion = 1
	commitHeader  = 8
	opHeader      = 7
	opSet         = 1
	opDelete      = 2
)

// commit encodes the changes of a store's Commit.
type commit struct {
	buf     []byte
	weight  int
	refused error
}

func newCommit(store string) *commit {
	buf := append([]byte(commitMagic), commitVersion, byte(len(store)), 0, 0)
	return &commit{buf: append(buf, store...)}
}

func (c *commit) set(key, value []byte) {
	if c.admits(key, len(value)) {
		c.put(opSet, key, value)
	}
}

func (c *commit) deleteRange(lo, hi []byte) {
	if c.admits(lo, len(hi)) && c.admits(hi, 0) {
		c.put(opDelete, lo, hi)
	}
}

func (c *commit) admits(key []byte, value int) bool {
	c.weight += opBytes + len(key) + value
	switch {
	case c.refused != nil:
	case len(key) == 0 || len(key) > MaxKeyBytes:
		c.refused = fmt.Errorf("%w: key of %d bytes: must be 1 to %d", persist.ErrLimit, len(key), MaxKeyBytes)
	case value > MaxValueBytes:
		c.refused = fmt.Errorf("%w: value of %d bytes: must be at most %d", persist.ErrLimit, value, MaxValueBytes)
	case c.weight > MaxCommitBytes:
		c.refused = fmt.Errorf("%w: commit of more than %d bytes", persist.ErrLimit, MaxCommitBytes)
	}
	return c.refused == nil
}

func (c *commit) put(op byte, a, b []byte) {
	c.buf = append(c.buf, op)
	c.buf = binary.LittleEndian.AppendUint16(c.buf, uint16(len(a)))
	c.buf = binary.LittleEndian.AppendUint32(c.buf, uint32(len(b)))
	c.buf = append(append(c.buf, a...), b...)
}

// seal appends the checksum and returns the bytes.
func (c *commit) seal() ([]byte, error) {
	if c.refused != nil {
		return nil, c.refused
	}
	return binary.LittleEndian.AppendUint32(c.buf, crc32.Checksum(c.buf, castagnoli)), nil
}

// parseCommit checks a commit and returns its store's name and its operations, both
// within data.
func parseCommit(data []byte) (store string, ops []byte, err error) {
	body := len(data) - 4
	switch {
	case body < commitHeader || string(data[:4]) != commitMagic:
		return "", nil, fmt.Errorf("%w: not a commit", errEntry)
	case crc32.Checksum(data[:body], castagnoli) != binary.LittleEndian.Uint32(data[body:]):
		return "", nil, fmt.Errorf("%w: wrong checksum of a commit", errEntry)
	case data[4] != commitVersion:
		return "", nil, fmt.Errorf("%w: commit of version %d, this program reads %d", errEntry, data[4], commitVersion)
	}
	end := commitHeader + int(data[5])
	if end > body || !validStoreName(string(data[commitHeader:end])) {
		return "", nil, fmt.Errorf("%w: the store's name in a commit is invalid", errEntry)
	}
	ops = data[end:body]
	for rest := ops; len(rest) > 0; {
		_, a, b, next, ok := nextOp(rest)
		if !ok || len(a) == 0 || len(a) > MaxKeyBytes || len(b) > MaxValueBytes {
			return "", nil, fmt.Errorf("%w: an operation of a commit is invalid", errEntry)
		}
		rest = next
	}
	return string(data[commitHeader:end]), ops, nil
}

// nextOp decodes the first operation and returns the rest.
func nextOp(p []byte) (op byte, a, b, rest []byte, ok bool) {
	if len(p) < opHeader || p[0] != opSet && p[0] != opDelete {
		return 0, nil, nil, nil, false
	}
	n := opHeader + int(binary.LittleEndian.Uint16(p[1:]))
	if n > len(p) || uint64(binary.LittleEndian.Uint32(p[3:])) > uint64(len(p)-n) {
		return 0, nil, nil, nil, false
	}
	end := n + int(binary.LittleEndian.Uint32(p[3:]))
	return p[0], p[opHeader:n], p[n:end], p[end:], true
}

// validStoreName reports whether name may be that of a replicated store.
func validStoreName(name string) bool {
	if len(name) == 0 || len(name) > MaxStoreName {
		return false
	}
	for _, c := range []byte(name) {
		if c < 'a' || c > 'z' {
			return false
		}
	}
	return true
}

func unknownFormat(format uint32) error {
	return fmt.Errorf("%w %d: this program reads up to %d: start this node with the program of the other nodes", ErrFormat, format, MaxFormat)
}
