package feed

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/flate"
)

const (
	// minWindowBits and maxWindowBits bound the window sizes of an offer, as powers of
	// two of bytes.
	minWindowBits = 8
	maxWindowBits = 15

	// minDeflate is the smallest frame worth compressing, in bytes.
	minDeflate = 512
	// deflateWindow is the window of compression in bytes: the smallest that a client can
	// ask for (RFC 7692), so that one encoding serves all clients. A book repeats itself
	// from level to level, so a larger window finds no more matches, and its distances
	// take more bits.
	deflateWindow = 1 << minWindowBits
	// rsv1 is the bit of a frame's first byte that marks compression.
	rsv1 = 0x40
	// flushTail ends a flushed deflate stream. A message is sent without it (RFC 7692,
	// 7.2.1).
	flushTail = "\x00\x00\xff\xff"
	// streamTail completes a message to a deflate stream: flushTail and an empty last
	// block.
	streamTail = flushTail + "\x01\x00\x00\xff\xff"
)

// Errors of a compressed message.
var (
	errInflated = errors.New("decompressed message too big")
	errDeflate  = errors.New("message is not a deflate stream")
)

// deflater compresses messages independently of each other. The zero value is ready; the
// first message allocates about 1 MiB. It is not safe for concurrent use.
type deflater struct {
	zip *flate.Writer // nil = not used yet
	out bytes.Buffer
}

// frame returns a newly allocated frame with compressed payload, or frame itself if that
// is not longer.
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

// compress sets out to the compressed payload of text.
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
	// A bytes.Buffer does not fail.
	_, _ = z.zip.Write(text)
	_ = z.zip.Flush()
	z.out.Truncate(z.out.Len() - len(flushTail))
}

// framePayload returns the payload of an unmasked frame.
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

// inflater decompresses messages independently of each other. The zero value is ready;
// the first message allocates about 100 KiB. It is not safe for concurrent use.
type inflater struct {
	in    []byte // a message and streamTail
	src   bytes.Reader
	unzip io.ReadCloser // nil = not used yet
}

// inflate appends the decompressed message to dst and returns the result. errInflated: it
// has more than limit bytes; then at most 32 KiB more were decompressed. errDeflate: src
// is not a deflate stream. It does not keep src.
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

// ended reports whether the stream ended where the message did. A message may have a last
// block of its own, and is then padded with a zero byte (RFC 7692, 7.2.3.4) or, by some
// clients, not padded.
func (z *inflater) ended() error {
	left := z.src.Len() - len(streamTail)
	if left <= 0 || left == 1 && z.in[len(z.in)-len(streamTail)-1] == 0 {
		return nil
	}
	return fmt.Errorf("%w: %d bytes behind its last block", errDeflate, left)
}
