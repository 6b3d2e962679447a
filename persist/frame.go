package persist

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/cespare/xxhash/v2"

	"blockdesk/engine"
)

// Limits of one frame, part of the format: frozen.
const (
	// MaxFrameCommands is the largest number of commands in one frame.
	MaxFrameCommands = 1 << 17
	// MaxFrameBytes is the longest encoding of a frame.
	MaxFrameBytes = frameHeaderSize + MaxFrameCommands*maxRecordSize + frameTrailerSize
)

const (
	frameMagic       = 0x4a464442 // "BDFJ" in little-endian bytes
	frameVersion     = 1
	frameHeaderSize  = 48
	frameTrailerSize = 4
)

// Errors of the frame codec.
var (
	// ErrFrame is wrapped by every decoding error of a frame.
	ErrFrame = errors.New("invalid frame")
	// ErrFrameCommands says that the commands cannot be encoded: none or too many, a
	// gap in Seq, a falling At.
	ErrFrameCommands = errors.New("cannot encode a frame")
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Frame is one record of the journal: the commands that became durable together. The
// bytes are the same on disk, in a raft log and on the wire; the package documentation
// has them.
type Frame struct {
	// Epoch is the epoch after the frame's last command.
	Epoch uint64
	// First is the Seq of the first command, at least 1.
	First uint64
	// Count is the number of commands, 1..MaxFrameCommands.
	Count int
	// Previous is the HashFrame of the frame before; 0 for the very first.
	Previous uint64
	// EventHash is the digest of all events before the first command.
	EventHash uint64

	payload []byte // aliases the decoded bytes
}

// Last returns the Seq of the frame's last command.
func (f *Frame) Last() uint64 { return f.First + uint64(f.Count) - 1 }

// HashFrame returns the XXH64 of an encoded frame, which the next frame contains.
func HashFrame(encoded []byte) uint64 { return xxhash.Sum64(encoded) }

// AppendFrame appends the encoding of one frame with the commands of a, then of b. It
// reads Epoch (before the commands), Previous and EventHash of f and sets First, Count
// and Epoch. It allocates only if dst is too small. The only error is ErrFrameCommands,
// which leaves dst as it was.
func AppendFrame(dst []byte, f *Frame, a, b []engine.Command) ([]byte, error) {
	count := len(a) + len(b)
	if count == 0 || count > MaxFrameCommands {
		return dst, fmt.Errorf("%w: %d commands: must be 1 to %d", ErrFrameCommands, count, MaxFrameCommands)
	}
	if len(a) == 0 {
		a, b = b, nil
	}
	start := len(dst)
	dst = slices.Grow(dst, frameHeaderSize+count*maxRecordSize+frameTrailerSize)
	buf := dst[start:cap(dst)]
	e := encoder{seq: a[0].Seq, epoch: f.Epoch}
	n, ok := e.put(buf, frameHeaderSize, a)
	if ok {
		n, ok = e.put(buf, n, b)
	}
	if !ok || a[0].Seq == 0 {
		return dst[:start], fmt.Errorf("%w: the command after seq %d, time %d: seq must grow by one and time must not fall",
			ErrFrameCommands, e.seq, e.at)
	}
	f.First, f.Count, f.Epoch = a[0].Seq, count, e.epoch
	binary.LittleEndian.PutUint32(buf[0:], frameMagic)
	binary.LittleEndian.PutUint16(buf[4:], frameVersion)
	binary.LittleEndian.PutUint16(buf[6:], frameHeaderSize)
	binary.LittleEndian.PutUint64(buf[8:], f.Epoch)
	binary.LittleEndian.PutUint64(buf[16:], f.First)
	binary.LittleEndian.PutUint32(buf[24:], uint32(count))
	binary.LittleEndian.PutUint32(buf[28:], uint32(n-frameHeaderSize))
	binary.LittleEndian.PutUint64(buf[32:], f.Previous)
	binary.LittleEndian.PutUint64(buf[40:], f.EventHash)
	f.payload = buf[frameHeaderSize:n]
	binary.LittleEndian.PutUint32(buf[n:], crc32.Checksum(buf[:n], castagnoli))
	return dst[:start+n+frameTrailerSize], nil
}

// ParseFrame decodes a frame's header and checks everything but the commands: magic,
// version, lengths, checksum. The result aliases data. Every error wraps ErrFrame.
func ParseFrame(data []byte) (Frame, error) {
	if len(data) < frameHeaderSize+frameTrailerSize {
		return Frame{}, fmt.Errorf("%w: %d bytes: shorter than a header", ErrFrame, len(data))
	}
	if magic := binary.LittleEndian.Uint32(data); magic != frameMagic {
		return Frame{}, fmt.Errorf("%w: magic %#x, want %#x", ErrFrame, magic, uint32(frameMagic))
	}
	body := len(data) - frameTrailerSize
	if got, want := crc32.Checksum(data[:body], castagnoli), binary.LittleEndian.Uint32(data[body:]); got != want {
		return Frame{}, fmt.Errorf("%w: checksum %08x, want %08x", ErrFrame, got, want)
	}
	if v := binary.LittleEndian.Uint16(data[4:]); v != frameVersion {
		return Frame{}, fmt.Errorf("%w: schema version %d: this program reads %d", ErrFrame, v, frameVersion)
	}
	if v := binary.LittleEndian.Uint16(data[6:]); v != frameHeaderSize {
		return Frame{}, fmt.Errorf("%w: header of %d bytes, want %d", ErrFrame, v, frameHeaderSize)
	}
	f := Frame{
		Epoch:     binary.LittleEndian.Uint64(data[8:]),
		First:     binary.LittleEndian.Uint64(data[16:]),
		Count:     int(binary.LittleEndian.Uint32(data[24:])),
		Previous:  binary.LittleEndian.Uint64(data[32:]),
		EventHash: binary.LittleEndian.Uint64(data[40:]),
		payload:   data[frameHeaderSize:body],
	}
	length := int(binary.LittleEndian.Uint32(data[28:]))
	switch {
	case length != len(f.payload):
		return Frame{}, fmt.Errorf("%w: payload of %d bytes, header says %d", ErrFrame, len(f.payload), length)
	case f.Count < 1 || f.Count > MaxFrameCommands:
		return Frame{}, fmt.Errorf("%w: %d commands: must be 1 to %d", ErrFrame, f.Count, MaxFrameCommands)
	case f.Count*minRecordSize > length:
		return Frame{}, fmt.Errorf("%w: %d commands cannot fit %d bytes", ErrFrame, f.Count, length)
	case f.First == 0 || f.Last() < f.First:
		return Frame{}, fmt.Errorf("%w: first seq %d with %d commands: out of range", ErrFrame, f.First, f.Count)
	}
	return f, nil
}

// AppendCommands decodes the frame's commands and appends them to dst, with Seq and At.
// Memory grows by Count commands, which ParseFrame has compared with the length of the
// payload. Every error wraps ErrFrame.
func (f *Frame) AppendCommands(dst []engine.Command) ([]engine.Command, error) {
	start := len(dst)
	dst = slices.Grow(dst, f.Count)[:start+f.Count]
	d := decoder{epoch: f.Epoch}
	p := f.payload
	for i := range f.Count {
		c := &dst[start+i]
		n := d.get(p, c)
		if n == 0 {
			return dst[:start], fmt.Errorf("%w: seq %d: not a command in this version's encoding", ErrFrame, f.First+uint64(i))
		}
		c.Seq = f.First + uint64(i)
		p = p[n:]
	}
	if len(p) != 0 {
		return dst[:start], fmt.Errorf("%w: %d bytes after the last command", ErrFrame, len(p))
	}
	if d.epoch != f.Epoch {
		return dst[:start], fmt.Errorf("%w: it is of epoch %d, its commands start epoch %d", ErrFrame, f.Epoch, d.epoch)
	}
	return dst, nil
}
