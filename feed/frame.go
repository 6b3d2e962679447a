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
	// maxHeader is the longest header of a masked frame, in bytes.
	maxHeader = 14
	// maxControl is the longest payload of a control frame, in bytes (RFC 6455).
	maxControl = 125
	// maxFragments bounds the frames of one message: without it, empty ones
	// would pass below every other limit.
	maxFragments = 1024
)

// breach is what a client did that ends its connection: the close code that it
// earns and the reason in the close frame, of at most 123 bytes.
type protocolError struct {
	code uint16
	text string
}

func (b *protocolError) Error() string { return b.text }

var (
	errUnmasked   = &protocolError{CloseProtocol, "frame without a mask"}
	errReserved   = &protocolError{CloseProtocol, "reserved bit"}
	errOpcode     = &protocolError{CloseProtocol, "unknown opcode"}
	errControl    = &protocolError{CloseProtocol, "control frame over 125 bytes or in fragments"}
	errNoBegin    = &protocolError{CloseProtocol, "continuation of no message"}
	errNoEnd      = &protocolError{CloseProtocol, "message inside a message"}
	errLength     = &protocolError{CloseProtocol, "length in more bytes than it needs"}
	errCloseFrame = &protocolError{CloseProtocol, "close frame of one byte or with an invalid code"}
	errText       = &protocolError{CloseBadData, "text that is not UTF-8"}
	errTooBig     = &protocolError{CloseFrameTooBig, "frame too big"}
	errFragments  = &protocolError{CloseTooManyMessage, "too many fragments"}
)

// incoming is one thing that a client said: a data message, whole, or a control
// frame.
type incoming struct {
	opcode byte // opText to opPong; zero = nothing is whole yet
	// deflated: data is compressed (RFC 7692); it is a data message's.
	deflated bool
	data     []byte
}

// header is a frame's header, checked as far as the frame alone tells.
type header struct {
	opcode   byte
	final    bool
	deflated bool
	mask     [4]byte
	length   int // of the payload, at most MaxFrame
}

func (h *header) control() bool { return h.opcode >= opClose }

// decoder takes what one client sends apart into messages and control frames
// (RFC 6455), however its bytes are cut. It holds memory from the first byte of
// a message that does not come whole to the last, at most about twice MaxFrame.
// The zero value is ready, for a connection without compression. After an error
// it must not be used.
type decoder struct {
	// deflate: compression is agreed on, so RSV1 may mark a message.
	deflate bool
	rest    *partial // nil between messages
}

// partial is what has come of a message, or of a frame, that is not whole.
type partial struct {
	head      [maxHeader]byte // of the frame, while it is not whole
	have      int             // bytes of head
	inPayload bool            // h is whole, its payload is not
	h         header
	got       int  // bytes of h's payload
	opcode    byte // of the data message that has begun; zero = none
	rsv1      bool // that message is compressed
	frames    int  // of that message
	message   []byte
	control   [maxControl]byte
}

// next takes bytes from the front of buf until something is whole or buf is
// empty, and returns what remains of buf. What it returns aliases buf or memory
// that the decoder has let go, until the next call; buf's bytes are unmasked
// where they stand. An error is a *breach.
func (d *decoder) next(buf []byte) (m incoming, rest []byte, err error) {
	for len(buf) > 0 && m.opcode == 0 {
		if d.rest != nil && d.rest.inPayload {
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

// header reads a frame's header off the front of buf, together with what is
// held of it, or holds all of buf and reports that it is not whole.
func (d *decoder) header(buf []byte) (h header, whole bool, rest []byte, err error) {
	src, held := buf, 0
	if d.rest != nil && d.rest.have > 0 {
		held = d.rest.have
		src = d.rest.head[:held+copy(d.rest.head[held:], buf)]
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
		d.rest.have = 0
	}
	return h, true, buf[n-held:], nil
}

// parseHeader reads a header from the front of b and returns its length, or 0
// if b is too short for it.
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

// admit checks a frame against the message that it belongs to.
func (d *decoder) checkSequence(h *header) error {
	if h.deflated && (!d.deflate || h.control() || h.opcode == opContinuation) {
		return errReserved
	}
	if h.control() {
		return nil
	}
	open := d.rest != nil && d.rest.opcode != 0
	switch {
	case h.opcode == opContinuation && !open:
		return errNoBegin
	case h.opcode != opContinuation && open:
		return errNoEnd
	case !open:
		return nil
	case d.rest.frames >= maxFragments:
		return errFragments
	case len(d.rest.message)+h.length > MaxFrame:
		return errTooBig
	}
	return nil
}

// enter begins a frame whose payload is not at hand in full, or that is one of
// several. Such a frame may be empty, and so end at once.
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

// payload takes what buf has of the frame's payload.
func (d *decoder) payload(buf []byte) (incoming, []byte) {
	p := d.rest
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

// leave ends a frame and returns what is whole by it.
func (d *decoder) endFrame() (m incoming) {
	p := d.rest
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
	if d.rest == nil {
		d.rest = &partial{}
	}
	return d.rest
}

// settle lets the memory go if nothing is under way.
func (d *decoder) release() {
	if p := d.rest; p != nil && p.opcode == 0 && !p.inPayload && p.have == 0 {
		d.rest = nil
	}
}

// unmask takes the mask off b, which stands at that offset in its payload.
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

// closeCode reads a close frame's payload and returns the code to answer with;
// a frame without one is answered as a normal end.
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
