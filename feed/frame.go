package feed

import (
	"encoding/binary"
	"unicode/utf8"
)

// Opcodes of WebSocket frames (RFC 6455, section 5.2).
const (
	opContinuation = 0x0
	opText         = 0x1
	opBinary       = 0x2
	opClose        = 0x8
	opPing         = 0x9
	opPong         = 0xa
)

const (
	// maxHeader is the length of the longest header of a masked frame, in bytes.
	maxHeader = 14
	// maxControl is the length of the longest payload of a control frame, in bytes (RFC
	// 6455).
	maxControl = 125
	// maxFragments bounds the frames of a message, because empty frames count towards no
	// other limit.
	maxFragments = 1024
)

// protocolError ends a connection with a close code and a reason of at most 123 bytes.
type protocolError struct {
	code uint16
	text string
}

func (p *protocolError) Error() string { return p.text }

var (
	errUnmasked   = &protocolError{CloseProtocol, "frame without a mask"}
	errReserved   = &protocolError{CloseProtocol, "reserved bit set"}
	errOpcode     = &protocolError{CloseProtocol, "unknown opcode"}
	errControl    = &protocolError{CloseProtocol, "control frame over 125 bytes or in fragments"}
	errNoBegin    = &protocolError{CloseProtocol, "continuation frame without a message"}
	errNoEnd      = &protocolError{CloseProtocol, "new message before the last frame of another"}
	errLength     = &protocolError{CloseProtocol, "length not minimally encoded"}
	errCloseFrame = &protocolError{CloseProtocol, "close frame of one byte or with an invalid code"}
	errText       = &protocolError{CloseBadData, "text is not valid UTF-8"}
	errTooBig     = &protocolError{CloseFrameTooBig, "frame too big"}
	errFragments  = &protocolError{CloseTooManyMessage, "too many fragments"}
)

// incoming is a complete data message or control frame.
type incoming struct {
	opcode byte // opText to opPong; zero = none is complete yet
	// deflated: data is compressed (RFC 7692); data messages only.
	deflated bool
	data     []byte
}

// header is a frame's header, validated by itself.
type header struct {
	opcode   byte
	final    bool
	deflated bool
	mask     [4]byte
	length   int // of the payload, at most MaxFrame
}

func (h *header) control() bool { return h.opcode >= opClose }

// decoder splits a client's input into messages and control frames (RFC 6455), however it
// is cut. It allocates, at most about twice MaxFrame, only while a message is incomplete.
// The zero value is ready, for a connection without compression. It must not be used
// after an error.
type decoder struct {
	// deflate: compression was negotiated, so RSV1 may mark a message.
	deflate bool
	partial *partial // nil between messages
}

// partial is an incomplete message or frame.
type partial struct {
	head      [maxHeader]byte // of the frame, while it is incomplete
	have      int             // bytes of head
	inPayload bool            // h is complete, its payload is not
	h         header
	got       int  // bytes of h's payload
	opcode    byte // of the data message; zero = none
	rsv1      bool // the data message is compressed
	frames    int  // of the data message
	message   []byte
	control   [maxControl]byte
}

// next consumes input until a message or control frame is complete or buf is empty, and
// returns the rest of buf. The result aliases buf, or memory that the decoder no longer
// uses, until the next call; buf is unmasked in place. An error is a *protocolError.
func (d *decoder) next(buf []byte) (m incoming, rest []byte, err error) {
	for len(buf) > 0 && m.opcode == 0 {
		if d.partial != nil && d.partial.inPayload {
			m, buf = d.payload(buf)
			continue
		}
		var h header
		var whole bool
		h, whole, buf, err = d.header(buf)
		if err != nil {
			return incoming{}, nil, err
		}
		if !whole {
			return incoming{}, nil, nil
		}
		if err := d.checkSequence(&h); err != nil {
			return incoming{}, nil, err
		}
		alone := h.control() || h.final && h.opcode != opContinuation
		if alone && len(buf) >= h.length {
			m = incoming{opcode: h.opcode, deflated: h.deflated, data: buf[:h.length:h.length]}
			unmask(m.data, h.mask, 0)
			buf = buf[h.length:]
			d.release()
			continue
		}
		m = d.beginFrame(&h)
	}
	return m, buf, nil
}

// header reads a frame's header from the held bytes and buf. If it is incomplete, it
// holds all of buf and returns whole = false.
func (d *decoder) header(buf []byte) (h header, whole bool, rest []byte, err error) {
	src, held := buf, 0
	if d.partial != nil && d.partial.have > 0 {
		held = d.partial.have
		src = d.partial.head[:held+copy(d.partial.head[held:], buf)]
	}
	h, n, err := parseHeader(src)
	if err != nil {
		return h, false, nil, err
	}
	if n == 0 {
		p := d.partialFrame()
		p.have = copy(p.head[:], src)
		return h, false, nil, nil
	}
	if held > 0 {
		d.partial.have = 0
	}
	return h, true, buf[n-held:], nil
}

// parseHeader parses a header at the start of b and returns its length, or 0 if b is too
// short.
func parseHeader(b []byte) (h header, n int, err error) {
	if len(b) < 2 {
		return h, 0, nil
	}
	h.opcode, h.final, h.deflated = b[0]&0x0f, b[0]&0x80 != 0, b[0]&0x40 != 0
	short := b[1] & 0x7f
	switch {
	case b[0]&0x30 != 0:
		return h, 0, errReserved
	case h.opcode > opBinary && h.opcode < opClose || h.opcode > opPong:
		return h, 0, errOpcode
	case h.control() && (!h.final || short > maxControl):
		return h, 0, errControl
	case b[1]&0x80 == 0:
		return h, 0, errUnmasked
	}
	length := uint64(short)
	n = 2
	switch short {
	case 126:
		if n = 4; len(b) < n {
			return h, 0, nil
		}
		if length = uint64(binary.BigEndian.Uint16(b[2:])); length < 126 {
			return h, 0, errLength
		}
	case 127:
		if n = 10; len(b) < n {
			return h, 0, nil
		}
		if length = binary.BigEndian.Uint64(b[2:]); length < 1<<16 || length >= 1<<63 {
			return h, 0, errLength
		}
	}
	if length > MaxFrame {
		return h, 0, errTooBig
	}
	if len(b) < n+4 {
		return h, 0, nil
	}
	h.length = int(length)
	copy(h.mask[:], b[n:])
	return h, n + 4, nil
}

// checkSequence checks a frame against the message that it belongs to.
func (d *decoder) checkSequence(h *header) error {
	if h.deflated && (!d.deflate || h.control() || h.opcode == opContinuation) {
		return errReserved
	}
	if h.control() {
		return nil
	}
	open := d.partial != nil && d.partial.opcode != 0
	switch {
	case h.opcode == opContinuation && !open:
		return errNoBegin
	case h.opcode != opContinuation && open:
		return errNoEnd
	case !open:
		return nil
	case d.partial.frames >= maxFragments:
		return errFragments
	case len(d.partial.message)+h.length > MaxFrame:
		return errTooBig
	}
	return nil
}

// beginFrame begins a frame that is incomplete or a fragment. An empty one ends at once.
func (d *decoder) beginFrame(h *header) incoming {
	p := d.partialFrame()
	p.h, p.got, p.inPayload = *h, 0, true
	if !h.control() {
		if h.opcode != opContinuation {
			p.opcode, p.rsv1, p.frames = h.opcode, h.deflated, 0
		}
		p.frames++
	}
	if h.length == 0 {
		return d.endFrame()
	}
	return incoming{}
}

// payload consumes payload of the current frame.
func (d *decoder) payload(buf []byte) (incoming, []byte) {
	p := d.partial
	part := buf[:min(len(buf), p.h.length-p.got)]
	unmask(part, p.h.mask, p.got)
	if p.h.control() {
		copy(p.control[p.got:], part)
	} else {
		p.message = append(p.message, part...)
	}
	p.got += len(part)
	if p.got < p.h.length {
		return incoming{}, buf[len(part):]
	}
	return d.endFrame(), buf[len(part):]
}

// endFrame ends a frame and returns what it completes.
func (d *decoder) endFrame() (m incoming) {
	p := d.partial
	p.inPayload = false
	switch {
	case p.h.control():
		m = incoming{opcode: p.h.opcode, data: p.control[:p.h.length]}
	case p.h.final:
		m = incoming{opcode: p.opcode, deflated: p.rsv1, data: p.message}
		p.opcode = 0
	}
	d.release()
	return m
}

func (d *decoder) partialFrame() *partial {
	if d.partial == nil {
		d.partial = &partial{}
	}
	return d.partial
}

// release frees the memory if nothing is incomplete.
func (d *decoder) release() {
	if p := d.partial; p != nil && p.opcode == 0 && !p.inPayload && p.have == 0 {
		d.partial = nil
	}
}

// unmask unmasks b, which begins at that offset of its payload.
func unmask(b []byte, mask [4]byte, offset int) {
	var eight [8]byte
	for i := range eight {
		eight[i] = mask[(offset+i)&3]
	}
	word := binary.LittleEndian.Uint64(eight[:])
	for len(b) >= 8 {
		binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(b)^word)
		b = b[8:]
	}
	for i := range b {
		b[i] ^= eight[i]
	}
}

// closeCode returns the code with which to answer a close frame: the frame's own, or
// CloseNormal if it has none.
func closeCode(data []byte) (uint16, error) {
	if len(data) == 0 {
		return CloseNormal, nil
	}
	if len(data) == 1 {
		return 0, errCloseFrame
	}
	code := binary.BigEndian.Uint16(data)
	switch {
	case code >= 3000 && code <= 4999:
	case code < 1000 || code > 1014 || code >= 1004 && code <= 1006:
		return 0, errCloseFrame
	}
	if !utf8.Valid(data[2:]) {
		return 0, errText
	}
	return code, nil
}
