package persist

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"blockdesk/engine"
)

const (
	snapshotMagic      = 0x53464442 // "BDFS" in little-endian bytes
	snapshotVersion    = 1
	snapshotHeaderSize = 96
	snapshotChunk      = 256 << 10
	snapshotSuffix     = ".snap"
	damagedSuffix      = ".damaged"
	tempSuffix         = ".tmp"

	// MaxSnapshotBytes is the longest replica encoding that a snapshot holds.
	MaxSnapshotBytes = 4 << 30
)

// errSnapshot marks a damaged snapshot. A snapshot that cannot be opened, or that has
// another version (engine.ErrVersion), is not damaged and is never set aside.
var errSnapshot = errors.New("damaged snapshot")

// snapshot is the header of a snapshot file.
type snapshot struct {
	seq    uint64 // of the last command applied; the end of a frame
	epoch  uint64
	hash   uint64 // HashFrame of that frame
	digest uint64 // of all events so far
	state  [32]byte
	length uint64 // of the replica's encoding
	sum    uint64 // XXH64 of the replica's encoding
}

func snapshotName(seq uint64) string { return fmt.Sprintf("%020d%s", seq, snapshotSuffix) }

// position returns the journal's position after the last command in the snapshot.
func (s *snapshot) position() position {
	return position{Position: Position{Next: s.seq + 1, Hash: s.hash, Epoch: s.epoch}}
}

func (s *snapshot) encode() []byte {
	p := make([]byte, snapshotHeaderSize)
	binary.LittleEndian.PutUint32(p[0:], snapshotMagic)
	binary.LittleEndian.PutUint16(p[4:], snapshotVersion)
	binary.LittleEndian.PutUint64(p[8:], s.seq)
	binary.LittleEndian.PutUint64(p[16:], s.epoch)
	binary.LittleEndian.PutUint64(p[24:], s.hash)
	binary.LittleEndian.PutUint64(p[32:], s.digest)
	copy(p[40:72], s.state[:])
	binary.LittleEndian.PutUint64(p[72:], s.length)
	binary.LittleEndian.PutUint64(p[80:], s.sum)
	binary.LittleEndian.PutUint32(p[92:], crc32.Checksum(p[:92], castagnoli))
	return p
}

func decodeSnapshotHeader(p []byte) (snapshot, error) {
	switch {
	case len(p) < snapshotHeaderSize:
		return snapshot{}, fmt.Errorf("%w: %d bytes: shorter than a header", errSnapshot, len(p))
	case binary.LittleEndian.Uint32(p) != snapshotMagic:
		return snapshot{}, fmt.Errorf("%w: not a snapshot file", errSnapshot)
	case binary.LittleEndian.Uint32(p[92:]) != crc32.Checksum(p[:92], castagnoli):
		return snapshot{}, fmt.Errorf("%w: wrong checksum of the header", errSnapshot)
	case binary.LittleEndian.Uint16(p[4:]) != snapshotVersion:
		return snapshot{}, fmt.Errorf("snapshot version %d, this program reads %d: %w",
			binary.LittleEndian.Uint16(p[4:]), snapshotVersion, engine.ErrVersion)
	}
	s := snapshot{
		seq:    binary.LittleEndian.Uint64(p[8:]),
		epoch:  binary.LittleEndian.Uint64(p[16:]),
		hash:   binary.LittleEndian.Uint64(p[24:]),
		digest: binary.LittleEndian.Uint64(p[32:]),
		length: binary.LittleEndian.Uint64(p[72:]),
		sum:    binary.LittleEndian.Uint64(p[80:]),
	}
	copy(s.state[:], p[40:72])
	if s.length > MaxSnapshotBytes {
		return snapshot{}, fmt.Errorf("%w: %d bytes: at most %d", errSnapshot, s.length, uint64(MaxSnapshotBytes))
	}
	return s, nil
}

// writeSnapshot writes data, the replica's encoding, and fills in length and sum. The
// file gets its name once it is complete and synced. A failure leaves nothing behind,
// because the disk may be full.
func writeSnapshot(fs vfs.FS, dir string, s *snapshot, data []byte) error {
	if uint64(len(data)) > MaxSnapshotBytes {
		return fmt.Errorf("%w: %d bytes: at most %d", errSnapshot, len(data), uint64(MaxSnapshotBytes))
	}
	s.length, s.sum = uint64(len(data)), xxhash.Sum64(data)
	path := fs.PathJoin(dir, snapshotName(s.seq))
	f, err := fs.Create(path+tempSuffix, "blockdesk-snapshot")
	if err != nil {
		return fmt.Errorf("creating snapshot: %w", err)
	}
	// Written back as it goes, so that the sync at the end does not delay the journal's
	// own syncs.
	f = vfs.NewSyncingFile(f, vfs.SyncingFileOptions{BytesPerSync: snapshotChunk})
	if err = s.write(f, data); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = fs.Rename(path+tempSuffix, path)
	}
	if err == nil {
		err = syncDir(fs, dir)
	}
	if err != nil {
		_ = fs.Remove(path + tempSuffix) // Open removes what is left
		return fmt.Errorf("writing snapshot %s: %w", path, err)
	}
	return nil
}

func (s *snapshot) write(to io.Writer, data []byte) error {
	_, err := to.Write(s.encode())
	var head [8]byte
	for chunk := range slices.Chunk(data, snapshotChunk) {
		if err != nil {
			return err
		}
		binary.LittleEndian.PutUint32(head[0:], uint32(len(chunk)))
		binary.LittleEndian.PutUint32(head[4:], crc32.Checksum(chunk, castagnoli))
		if _, err = to.Write(head[:]); err == nil {
			_, err = to.Write(chunk)
		}
	}
	return err
}

// EncodeSnapshot returns the whole file of a snapshot, as RestoreSnapshot takes it.
// data is the replica's encoding (engine.Replica.AppendSnapshot); at, digest and state
// are the position, event digest and state hash of the replica. The only error is a
// replica of more than MaxSnapshotBytes.
func EncodeSnapshot(at Position, digest uint64, state [32]byte, data []byte) ([]byte, error) {
	if uint64(len(data)) > MaxSnapshotBytes {
		return nil, fmt.Errorf("%w: %d bytes: at most %d", errSnapshot, len(data), uint64(MaxSnapshotBytes))
	}
	s := snapshot{
		seq: at.Next - 1, epoch: at.Epoch, hash: at.Hash, digest: digest, state: state,
		length: uint64(len(data)), sum: xxhash.Sum64(data),
	}
	chunks := (len(data) + snapshotChunk - 1) / snapshotChunk
	var file bytes.Buffer
	file.Grow(snapshotHeaderSize + len(data) + 8*chunks)
	if err := s.write(&file, data); err != nil {
		return nil, err
	}
	return file.Bytes(), nil
}

// readSnapshot returns a snapshot's header and, if body is set, the replica's encoding,
// verified. Memory is bounded by the size of the file.
func readSnapshot(fs vfs.FS, path string, body bool) (s snapshot, data []byte, err error) {
	f, err := fs.Open(path)
	if err != nil {
		return snapshot{}, nil, fmt.Errorf("opening a snapshot: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return snapshot{}, nil, fmt.Errorf("%w: %w", errSnapshot, err)
	}
	return decodeSnapshot(f, uint64(info.Size()), body)
}

// decodeSnapshot is readSnapshot for the content of a file of size bytes.
func decodeSnapshot(file io.Reader, size uint64, body bool) (s snapshot, data []byte, err error) {
	head := make([]byte, snapshotHeaderSize)
	if _, err := io.ReadFull(file, head); err != nil {
		return snapshot{}, nil, fmt.Errorf("%w: reading the header: %w", errSnapshot, err)
	}
	if s, err = decodeSnapshotHeader(head); err != nil {
		return snapshot{}, nil, err
	}
	chunks := (s.length + snapshotChunk - 1) / snapshotChunk
	if want := snapshotHeaderSize + s.length + 8*chunks; size != want {
		return snapshot{}, nil, fmt.Errorf("%w: file of %d bytes, want %d", errSnapshot, size, want)
	}
	if !body {
		return s, nil, nil
	}
	data = make([]byte, s.length)
	for n := 0; n < len(data); n += snapshotChunk {
		chunk := data[n:min(len(data), n+snapshotChunk)]
		if _, err := io.ReadFull(file, head[:8]); err != nil {
			return snapshot{}, nil, fmt.Errorf("%w: offset %d: %w", errSnapshot, n, err)
		}
		if _, err := io.ReadFull(file, chunk); err != nil {
			return snapshot{}, nil, fmt.Errorf("%w: offset %d: %w", errSnapshot, n, err)
		}
		if binary.LittleEndian.Uint32(head) != uint32(len(chunk)) ||
			binary.LittleEndian.Uint32(head[4:]) != crc32.Checksum(chunk, castagnoli) {
			return snapshot{}, nil, fmt.Errorf("%w: wrong checksum of the chunk at offset %d", errSnapshot, n)
		}
	}
	if xxhash.Sum64(data) != s.sum {
		return snapshot{}, nil, fmt.Errorf("%w: wrong checksum of the file", errSnapshot)
	}
	return s, data, nil
}

// sweepSnapshots removes the half-written snapshots that crashes have left.
func sweepSnapshots(fs vfs.FS, dir string) error {
	names, err := fs.List(dir)
	if err != nil {
		return fmt.Errorf("listing snapshots: %w", err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, snapshotSuffix+tempSuffix) {
			if err := fs.Remove(fs.PathJoin(dir, name)); err != nil {
				return fmt.Errorf("removing an incomplete snapshot: %w", err)
			}
		}
	}
	return nil
}

// listSnapshots returns the headers of all snapshots whose header is valid, oldest
// first, and the names of the others. Errors: engine.ErrVersion, those of opening.
func listSnapshots(fs vfs.FS, dir string) (valid []snapshot, damaged []string, err error) {
	names, err := fs.List(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("listing snapshots: %w", err)
	}
	for _, name := range names {
		number, ok := strings.CutSuffix(name, snapshotSuffix)
		if !ok {
			continue
		}
		seq, err := strconv.ParseUint(number, 10, 64)
		if err != nil {
			continue
		}
		s, _, err := readSnapshot(fs, fs.PathJoin(dir, name), false)
		switch {
		case err == nil && s.seq == seq:
		case err == nil || errors.Is(err, errSnapshot):
			damaged = append(damaged, name)
			continue
		default:
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
		valid = append(valid, s)
	}
	slices.SortFunc(valid, func(a, b snapshot) int { return cmp.Compare(a.seq, b.seq) })
	return valid, damaged, nil
}
