package fanout

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"blockdesk/persist"
)

// ErrMessage is wrapped by every decoding error of a message.
var ErrMessage = errors.New("invalid fan-out message")

// kind is the kind of a message. On the wire: frozen.
type kind uint8

const (
	kindFramePiece      kind = 1
	kindHeartbeat       kind = 2
	kindSnapshotRequest kind = 3
	kindSnapshotPiece   kind = 4
	kindUnknown         kind = 5 // and above
)

const (
	messageMagic   = 0x4e464442 // "BDFN" in little-endian bytes
	messageVersion = 1
	headSize       = 32
	tailSize       = 4
	heartbeatSize  = 32
	pieceHeadSize  = 24
	// overhead bounds the bytes of a message beside its piece, including what NATS and
	// JetStream add.
	overhead = headSize + pieceHeadSize + tailSize + 512

	// MaxPieceBytes is the largest piece of a frame or a snapshot in one message.
	MaxPieceBytes = 256 << 10
	// MaxMessageBytes is the longest message. A server with a lower limit gets smaller
	// pieces, down to MinPieceBytes.
	MaxMessageBytes = MaxPieceBytes + overhead
	// MinPieceBytes is the smallest piece; a server must take at least
	// MinPieceBytes and 1 KiB in one message.
	MinPieceBytes = 1 << 10
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// head begins every message.
type head struct {
	kind kind
	// term is the leader's; 0 in a follower's request.
	term uint64
	// seq is the first Seq of a frame, the next one of a heartbeat, or the one after a
	// snapshot (0 in a request: the newest).
	seq uint64
	// total and offset are the length of the frame and where the piece begins. In a
	// snapshot request and piece they are one 64-bit offset.
	total, offset uint32
}

// snapshotOffset returns where a snapshot's piece begins in its file.
func (h *head) snapshotOffset() uint64 { return uint64(h.total) | uint64(h.offset)<<32 }

func (h *head) setSnapshotOffset(n uint64) { h.total, h.offset = uint32(n), uint32(n>>32) }

// appendMessage appends a message with the parts of a body.
func appendMessage(dst []byte, h *head, body ...[]byte) []byte {
	start := len(dst)
	le := binary.LittleEndian
	dst = le.AppendUint32(dst, messageMagic)
	dst = append(dst, messageVersion, uint8(h.kind), 0, 0)
	dst = le.AppendUint64(dst, h.term)
	dst = le.AppendUint64(dst, h.seq)
	dst = le.AppendUint32(dst, h.total)
	dst = le.AppendUint32(dst, h.offset)
	for _, b := range body {
		dst = append(dst, b...)
	}
	return le.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

// parseMessage checks a message and returns its body, which aliases data. Every
// error wraps ErrMessage.
func parseMessage(data []byte) (head, []byte, error) {
	if len(data) < headSize+tailSize || len(data) > MaxMessageBytes {
		return head{}, nil, fmt.Errorf("%w: %d bytes: must be %d to %d", ErrMessage, len(data), headSize+tailSize, MaxMessageBytes)
	}
	le := binary.LittleEndian
	end := len(data) - tailSize
	switch {
	case le.Uint32(data) != messageMagic:
		return head{}, nil, fmt.Errorf("%w: it begins with %#x", ErrMessage, le.Uint32(data))
	case le.Uint32(data[end:]) != crc32.Checksum(data[:end], castagnoli):
		return head{}, nil, fmt.Errorf("%w: wrong checksum", ErrMessage)
	case data[4] != messageVersion:
		return head{}, nil, fmt.Errorf("%w: version %d: this program reads %d", ErrMessage, data[4], messageVersion)
	case data[5] == 0 || kind(data[5]) >= kindUnknown || data[6] != 0 || data[7] != 0:
		return head{}, nil, fmt.Errorf("%w: unknown kind %d", ErrMessage, data[5])
	}
	h := head{
		kind: kind(data[5]), term: le.Uint64(data[8:]), seq: le.Uint64(data[16:]),
		total: le.Uint32(data[24:]), offset: le.Uint32(data[28:]),
	}
	body := data[headSize:end]
	switch {
	case h.kind == kindFramePiece && (h.seq == 0 || len(body) == 0 || h.total > persist.MaxFrameBytes ||
		uint64(h.offset)+uint64(len(body)) > uint64(h.total)):
		return head{}, nil, fmt.Errorf("%w: a piece of %d bytes at byte %d of a frame of %d bytes, seq %d", ErrMessage, len(body), h.offset, h.total, h.seq)
	case h.kind == kindHeartbeat && (len(body) != heartbeatSize || h.seq == 0):
		return head{}, nil, fmt.Errorf("%w: a heartbeat of %d bytes at seq %d", ErrMessage, len(body), h.seq)
	case h.kind == kindSnapshotRequest && len(body) != 0:
		return head{}, nil, fmt.Errorf("%w: a snapshot request with %d bytes", ErrMessage, len(body))
	case h.kind == kindSnapshotPiece && (len(body) < pieceHeadSize || h.seq == 0):
		return head{}, nil, fmt.Errorf("%w: a piece of a snapshot with %d bytes, seq %d", ErrMessage, len(body), h.seq)
	}
	return h, body, nil
}

// heartbeat is a leader's heartbeat. Its head's seq is the position's Next.
type heartbeat struct {
	position persist.Position // everything before it was sent
	durable  uint64           // last durable Seq, read at at or later
	at       int64            // the leader's clock, Unix ns
}

func appendHeartbeat(dst []byte, term uint64, b *heartbeat) []byte {
	var p [heartbeatSize]byte
	le := binary.LittleEndian
	le.PutUint64(p[0:], b.position.Hash)
	le.PutUint64(p[8:], b.position.Epoch)
	le.PutUint64(p[16:], b.durable)
	le.PutUint64(p[24:], uint64(b.at))
	return appendMessage(dst, &head{kind: kindHeartbeat, term: term, seq: b.position.Next}, p[:])
}

// parseHeartbeat decodes the body of a heartbeat that parseMessage has accepted.
func parseHeartbeat(h *head, body []byte) heartbeat {
	le := binary.LittleEndian
	return heartbeat{
		position: persist.Position{Next: h.seq, Hash: le.Uint64(body[0:]), Epoch: le.Uint64(body[8:])},
		durable:  le.Uint64(body[16:]),
		at:       int64(le.Uint64(body[24:])),
	}
}

// piece is a piece of a snapshot's file. Its head's seq is the position's Next. An
// empty file means the empty replica of persist.Genesis.
type piece struct {
	position persist.Position
	size     uint64 // of the file
	bytes    []byte
}

func appendPiece(dst []byte, term, offset uint64, p *piece) []byte {
	var b [pieceHeadSize]byte
	le := binary.LittleEndian
	le.PutUint64(b[0:], p.position.Hash)
	le.PutUint64(b[8:], p.position.Epoch)
	le.PutUint64(b[16:], p.size)
	h := head{kind: kindSnapshotPiece, term: term, seq: p.position.Next}
	h.setSnapshotOffset(offset)
	return appendMessage(dst, &h, b[:], p.bytes)
}

// parsePiece decodes the body of a piece that parseMessage has accepted. The bytes
// alias body.
func parsePiece(h *head, body []byte) piece {
	le := binary.LittleEndian
	return piece{
		position: persist.Position{Next: h.seq, Hash: le.Uint64(body[0:]), Epoch: le.Uint64(body[8:])},
		size:     le.Uint64(body[16:]),
		bytes:    body[pieceHeadSize:],
	}
}

// assembly assembles a frame from consecutive messages.
type assembly struct {
	seq   uint64
	total uint32
	buf   []byte
}

// add adds the next piece and returns the frame once it is complete, valid until the
// next call. A piece that does not continue the frame drops it; dropped says that bytes
// were lost.
func (a *assembly) add(h *head, body []byte) (frame []byte, dropped bool) {
	if h.offset == 0 && int(h.total) == len(body) {
		dropped = len(a.buf) > 0
		a.buf = a.buf[:0]
		return body, dropped
	}
	if h.offset == 0 {
		dropped = len(a.buf) > 0
		a.seq, a.total, a.buf = h.seq, h.total, append(a.buf[:0], body...)
		return nil, dropped
	}
	if len(a.buf) == 0 || h.seq != a.seq || h.total != a.total || int(h.offset) != len(a.buf) {
		a.buf = a.buf[:0]
		return nil, true
	}
	a.buf = append(a.buf, body...)
	if len(a.buf) < int(a.total) {
		return nil, false
	}
	frame = a.buf
	a.buf = a.buf[:0]
	return frame, false
}
