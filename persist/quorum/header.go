package quorum

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"blockdesk/engine"
	"blockdesk/persist"
)

// A raft snapshot's content, version 1, or 2 with the log's format (0 in version 1, which
// is of format 1). Little-endian. The header is followed by the
// replica (engine.Replica.AppendSnapshot), the last events, the entries of the stores,
// and the XXH64 of all before it.
//
//	 0        4         6   8       16      24     32     40      48       56      88        96      104      112   116
//	┌────────┬─────────┬───┬───────┬───────┬──────┬──────┬───────┬────────┬───────┬─────────┬───────┬────────┬─────┬────────┐
//	│ "BDQS" │ version │ 0 │ index │ term  │ next │ hash │ epoch │ digest │ state │ replica │ floor │ events │ fmt │ CRC32C │
//	│        │ 1 or 2  │   │       │ start │ seq  │      │       │        │ hash  │ bytes   │       │        │     │        │
//	└────────┴─────────┴───┴───────┴───────┴──────┴──────┴───────┴────────┴───────┴─────────┴───────┴────────┴─────┴────────┘
//
// An entry of the stores: key bytes u16, value bytes u32, key (with its store's name),
// value. An entry without a key ends them.
const (
	snapshotMagic    = "BDQS"
	snapshotVersion  = 1
	snapshotVersion2 = 2
	headerSize       = 116 + 4
	entryHeader      = 6
	// fillBytes is how much of the stores a restore writes in one commit.
	fillBytes = 1 << 20
	// maxTailEvents bounds the events in a snapshot.
	maxTailEvents = 1 << 24
)

// errSnapshot marks a damaged snapshot.
var errSnapshot = errors.New("damaged raft snapshot")

// header is the header of a snapshot.
type header struct {
	index     uint64 // of the last entry in it
	termStart uint64
	at        persist.Position
	digest    uint64
	state     [32]byte
	bytes     uint64 // of the replica's encoding
	floor     uint64 // of the events
	events    uint64
	format    uint16 // of the log
}

func (h *header) encode() []byte {
	le := binary.LittleEndian
	p := append(make([]byte, 0, headerSize), snapshotMagic...)
	version, format := uint16(snapshotVersion), uint32(0)
	if h.format > firstFormat {
		version, format = snapshotVersion2, uint32(h.format)
	}
	p = le.AppendUint16(p, version)
	p = le.AppendUint16(p, 0)
	for _, v := range []uint64{h.index, h.termStart, h.at.Next, h.at.Hash, h.at.Epoch, h.digest} {
		p = le.AppendUint64(p, v)
	}
	p = append(p, h.state[:]...)
	for _, v := range []uint64{h.bytes, h.floor, h.events} {
		p = le.AppendUint64(p, v)
	}
	p = le.AppendUint32(p, format)
	return le.AppendUint32(p, crc32.Checksum(p, castagnoli))
}

func decodeHeader(p []byte) (h header, err error) {
	le := binary.LittleEndian
	switch {
	case len(p) != headerSize || string(p[:4]) != snapshotMagic:
		return h, fmt.Errorf("%w: not a snapshot of a raft group", errSnapshot)
	case le.Uint32(p[headerSize-4:]) != crc32.Checksum(p[:headerSize-4], castagnoli):
		return h, fmt.Errorf("%w: wrong checksum of the header", errSnapshot)
	case le.Uint16(p[4:]) != snapshotVersion && le.Uint16(p[4:]) != snapshotVersion2:
		return h, fmt.Errorf("snapshot version %d, this program reads %d and %d: %w", le.Uint16(p[4:]), snapshotVersion, snapshotVersion2, engine.ErrVersion)
	}
	h.format = firstFormat
	if le.Uint16(p[4:]) == snapshotVersion2 {
		if format := le.Uint32(p[headerSize-8:]); format > MaxFormat {
			return h, unknownFormat(format)
		}
		h.format = max(firstFormat, le.Uint16(p[headerSize-8:]))
	}
	for i, v := range []*uint64{&h.index, &h.termStart, &h.at.Next, &h.at.Hash, &h.at.Epoch, &h.digest} {
		*v = le.Uint64(p[8+8*i:])
	}
	copy(h.state[:], p[56:88])
	h.bytes, h.floor, h.events = le.Uint64(p[88:]), le.Uint64(p[96:]), le.Uint64(p[104:])
	if h.bytes > persist.MaxSnapshotBytes || h.events > maxTailEvents {
		return h, fmt.Errorf("%w: %d bytes and %d events: at most %d and %d",
			errSnapshot, h.bytes, h.events, uint64(persist.MaxSnapshotBytes), uint64(maxTailEvents))
	}
	return h, nil
}
