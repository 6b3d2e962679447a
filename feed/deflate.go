package feed

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/flate"
)

const (
	// minDeflate is the smallest frame that is compressed, in bytes; below it there
	// is little to win.
	minDeflate = 512
	// deflateWindow is how far back a compressed message refers, in bytes. It is
	// the smallest window that a client can ask us to keep to (RFC 7692), so that
	// one encoding serves all of them. A book repeats itself from level to level:
	// a longer window finds no more, and its distances take more bits.
	deflateWindow = 1 << minWindowBits
	// rsv1 is the bit of a frame's first byte that says: compressed.
	rsv1 = 0x40
	// flushTail ends the output of a deflate stream that has been flushed. A
	// message goes without it (RFC 7692, 7.2.1).
	flushTail = "\x00\x00\xff\xff"
	// streamTail is what a message lacks of a whole deflate stream: flushTail, and
	// an empty block that is marked as the last.
	streamTail = flushTail + "\x01\x00\x00\xff\xff"
)

// Errors of a compressed message.
var (
	errInflated = errors.New("a message is too big when it is decompressed")
	errDeflate  = errors.New("a message is not a deflate stream")
)

// deflater compresses messages, each for itself. The zero value is ready; the
// memory that it works in, about 1 MiB, comes with its first message. Not for
// concurrent use.
type deflater struct {
	zip *flate.Writer // nil = nothing has been compressed yet
	out bytes.Buffer
}

// frame returns an unmasked frame with its payload compressed, in memory of its
// own, or frame itself where that is not shorter.
func (z *deflater) frame(frame []byte) []byte {
	text := framePayload(frame)
	z.compress(text)
	n := z.out.Len()
	if n >= len(text) {
		return frame
	}
	small := make([]byte, headerLen(n)+n)
	putHeader(small, frame[0]|rsv1, n)
	copy(small[headerLen(n):], z.out.Bytes())
	return small
}

// compress sets out to text as the payload of a compressed message.
func (z *deflater) compress(text []byte) {
	z.out.Reset()
	if z.zip == nil {
		var err error
		if z.zip, err = flate.NewWriterWindow(&z.out, deflateWindow); err != nil {
			panic(fmt.Errorf("feed: a deflate window of %d bytes: %w", deflateWindow, err))
		}
	} else {
		z.zip.Reset(&z.out)
	}
	// Neither fails: a bytes.Buffer takes everything.
	_, _ = z.zip.Write(text)
	_ = z.zip.Flush()
	z.out.Truncate(z.out.Len() - len(flushTail))
}

// framePayload returns what an unmasked frame of ours carries.
func framePayload(frame []byte) []byte {
	switch n := frame[1]; {
	case n < 126:
		return frame[2:]
	case n == 126:
		return frame[4:]
	default:
		return frame[headRoom:]
	}
}

// inflater decompresses messages, each for itself. The zero value is ready; the
// memory that it works in, about 100 KiB, comes with its first message and grows
// no further. Not for concurrent use.
type inflater struct {
	in    []byte // a message with what it lacks of a whole stream
	src   bytes.Reader
	unzip io.ReadCloser // nil = nothing has been decompressed yet
}

// inflate appends to dst what the payload of a compressed message says, which
// may be limit bytes long, and returns the longer dst. errInflated: it is longer;
// at most 32 KiB more than limit have been decompressed then. errDeflate: it is
// no deflate stream. src is not kept.
func (z *inflater) inflate(dst, src []byte, limit int) ([]byte, error) {
	z.in = append(append(z.in[:0], src...), streamTail...)
	z.src.Reset(z.in)
	if z.unzip == nil {
		z.unzip = flate.NewReader(&z.src)
	} else if err := z.unzip.(flate.Resetter).Reset(&z.src, nil); err != nil {
		return dst, fmt.Errorf("%w: %w", errDeflate, err)
	}
	limit += len(dst)
	for {
		if len(dst) == cap(dst) {
			dst = append(dst, 0)[:len(dst)]
		}
		n, err := z.unzip.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+n]
		switch {
		case len(dst) > limit:
			return dst[:limit], errInflated
		case errors.Is(err, io.EOF):
			return dst, z.ended()
		case err != nil:
			return dst, fmt.Errorf("%w: %w", errDeflate, err)
		}
	}
}

// ended reports whether the stream ended where the message did. A message may
// mark its own last block, and is then padded with a zero byte (RFC 7692,
// 7.2.3.4) or, by senders that know no better, not at all.
func (z *inflater) ended() error {
	left := z.src.Len() - len(streamTail)
	if left <= 0 || left == 1 && z.in[len(z.in)-len(streamTail)-1] == 0 {
		return nil
	}
	return fmt.Errorf("%w: %d bytes behind its last block", errDeflate, left)
}
