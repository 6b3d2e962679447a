package fanout

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"blockdesk/persist"
)

// ErrMessage is what every decoding error of a message wraps.
var ErrMessage = errors.New("message of the fan-out")

// kind is what a message carries. On the wire: frozen.
type kind uint8

const (
	kindFramePiece      kind = 1 // a piece of a frame
	kindHeartbeat       kind = 2 // where the leader is
	kindSnapshotRequest kind = 3 // for a piece of a snapshot
	kindSnapshotPiece   kind = 4 // of a snapshot
	kindUnknown         kind = 5 // the first that this version does not know
)

const (
	messageMagic   = 0x4e464442 // "BDFN" in little-endian bytes
	messageVersion = 1
	headSize       = 32
	tailSize       = 4
	heartbeatSize  = 32
	pieceHeadSize  = 24
	// overhead is what a message has beside the piece that it carries, with room
	// for what NATS and JetStream put before it.
	overhead = headSize + pieceHeadSize + tailSize + 512

	// MaxPieceBytes is the most of a frame or a snapshot in one message.
	MaxPieceBytes = 256 << 10
	// MaxMessageBytes is the longest message, and so the smallest limit that
	// serves. A server with a lower one gets smaller pieces, down to MinPieceBytes.
	MaxMessageBytes = MaxPieceBytes + overhead
	// MinPieceBytes is the smallest piece; a server must take at least
	// MinPieceBytes and 1 KiB in one message.
	MinPieceBytes = 1 << 10
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// head begins every message.
type head struct {
	kind kind
	// term is the leader's; 0 in what a follower asks.
	term uint64
	// seq is the frame's first Seq, the beat's next one, or the one that comes
	// after a snapshot (0 in an ask: the newest).
	seq uint64
	// total and offset are the length of the frame and where the piece begins. In
	// an ask and a snapshot's piece they are one 64-bit offset.
	total, offset uint32
}

// snapshotOffset is where a snapshot's piece begins in its file.
func (h *head) snapshotOffset() uint64 { return uint64(h.total) | uint64(h.offset)<<32 }

func (h *head) setSnapshotOffset(n uint64) { h.total, h.offset = uint32(n), uint32(n>>32) }

// appendMessage appends a message made of body's parts.
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
		return head{}, nil, fmt.Errorf("%w: magic %#x", ErrMessage, le.Uint32(data))
	case le.Uint32(data[end:]) != crc32.Checksum(data[:end], castagnoli):
		return head{}, nil, fmt.Errorf("%w: checksum", ErrMessage)
	case data[4] != messageVersion:
		return head{}, nil, fmt.Errorf("%w: version %d: this program reads %d", ErrMessage, data[4], messageVersion)
	case data[5] == 0 || kind(data[5]) >= kindUnknown || data[6] != 0 || data[7] != 0:
		return head{}, nil, fmt.Errorf("%w: kind %d", ErrMessage, data[5])
	}
	h := head{
		kind: kind(data[5]), term: le.Uint64(data[8:]), seq: le.Uint64(data[16:]),
		total: le.Uint32(data[24:]), offset: le.Uint32(data[28:]),
	}
	body := data[headSize:end]
	switch {
	case h.kind == kindFramePiece && (h.seq == 0 || len(body) == 0 || h.total > persist.MaxFrameBytes ||
		uint64(h.offset)+uint64(len(body)) > uint64(h.total)):
		return head{}, nil, fmt.Errorf("%w: %d bytes at %d of a frame of %d, seq %d", ErrMessage, len(body), h.offset, h.total, h.seq)
	case h.kind == kindHeartbeat && (len(body) != heartbeatSize || h.seq == 0):
		return head{}, nil, fmt.Errorf("%w: a beat of %d bytes at seq %d", ErrMessage, len(body), h.seq)
	case h.kind == kindSnapshotRequest && len(body) != 0:
		return head{}, nil, fmt.Errorf("%w: an ask with %d bytes", ErrMessage, len(body))
	case h.kind == kindSnapshotPiece && (len(body) < pieceHeadSize || h.seq == 0):
		return head{}, nil, fmt.Errorf("%w: a snapshot's piece of %d bytes, seq %d", ErrMessage, len(body), h.seq)
	}
	return h, body, nil
}

// beat is where a leader says it is. Its head's seq is the place's Next.
type heartbeat struct {
	position persist.Position // up to which everything has been sent
	durable  uint64           // last Seq durable, at at or later
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

// parseHeartbeat reads the body of a beat that parseMessage has let through.
func parseHeartbeat(h *head, body []byte) heartbeat {
	le := binary.LittleEndian
	return heartbeat{
		position: persist.Position{Next: h.seq, Hash: le.Uint64(body[0:]), Epoch: le.Uint64(body[8:])},
		durable:  le.Uint64(body[16:]),
		at:       int64(le.Uint64(body[24:])),
	}
}

// piece is a part of a snapshot's file. Its head's seq is the place's Next. A file
// of no bytes stands for the empty replica of persist.Genesis.
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

// parsePiece reads the body of a piece that parseMessage has let through. The
// bytes alias body.
func parsePiece(h *head, body []byte) piece {
	le := binary.LittleEndian
	return piece{
		position: persist.Position{Next: h.seq, Hash: le.Uint64(body[0:]), Epoch: le.Uint64(body[8:])},
		size:     le.Uint64(body[16:]),
		bytes:    body[pieceHeadSize:],
	}
}

// assembly puts a frame together from the pieces of one stream of messages, which
// come in order or not at all.
type assembly struct {
	seq   uint64
	total uint32
	buf   []byte
}

// add takes the next piece and returns the whole frame once it is there, valid
// until the next call. A piece that does not continue what is there drops it;
// dropped says that bytes of a frame were lost by that.
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
