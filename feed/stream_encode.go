package feed

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"time"
)

// A message as a server-sent event is
//
//	event: l2
//	data: {"channel":"l2","type":"update",…}
//
// and an empty line: its channel as the event's name, and the JSON that the
// WebSocket sends. The JSON has no line break, so it is one line of data.

// channelHead is how the JSON of every message begins.
const channelHead = `{"channel":"`

// appendEvent appends one message as an event. frame is the message as an
// unmasked text frame.
func appendEvent(dst, frame []byte) []byte {
	text := framePayload(frame)
	name := text[len(channelHead):]
	name = name[:bytes.IndexByte(name, '"')]
	dst = append(append(dst, "event: "...), name...)
	dst = append(append(dst, "\ndata: "...), text...)
	return append(dst, "\n\n"...)
}

// appendEvents appends the messages of several frames.
func appendEvents(dst, frames []byte) []byte {
	for len(frames) > 0 {
		n := frameLen(frames)
		dst = appendEvent(dst, frames[:n])
		frames = frames[n:]
	}
	return dst
}

// frameLen returns the length of the unmasked frame that data begins with.
func frameLen(data []byte) int {
	switch n := int(data[1]); n {
	case 126:
		return 4 + int(data[2])<<8 + int(data[3])
	case 127:
		return headRoom + int(binary.BigEndian.Uint64(data[2:]))
	default:
		return 2 + n
	}
}

// mark is a place in the engine's order of commands: behind all that those up to
// and with engineSeq have done to the markets. Its text is the id of a stream, as
// in e7-1042. The zero value is no place.
type enginePos struct{ epoch, engineSeq uint64 }

// appendMark appends the event that sets the id with which a client comes back.
// By the WHATWG's standard (HTML, section 9.2.6) the id alone would do. But a
// block without data is passed over, id and all, by Firefox and by npm's
// eventsource; so it has some.
func appendMark(dst []byte, m enginePos) []byte {
	dst = append(dst, markHead...)
	dst = strconv.AppendUint(dst, m.epoch, 10)
	dst = append(dst, '-')
	dst = strconv.AppendUint(dst, m.engineSeq, 10)
	dst = append(dst, "\nevent: mark\ndata: "+channelHead+`mark","epoch":"e`...)
	dst = strconv.AppendUint(dst, m.epoch, 10)
	dst = append(dst, `","engine_seq":`...)
	dst = strconv.AppendUint(dst, m.engineSeq, 10)
	return append(dst, "}\n\n"...)
}

// markHead is how every mark begins, and no other event.
const markHead = "id: e"

// parseEventID reads an id. What is none of ours is the zero mark.
func parseEventID(id []byte) enginePos {
	epoch, seq, _ := bytes.Cut(id, []byte{'-'})
	if len(epoch) < 2 || epoch[0] != 'e' {
		return enginePos{}
	}
	e, known := parseDigits(epoch[1:])
	n, whole := parseDigits(seq)
	if !known || !whole || e == 0 {
		return enginePos{}
	}
	return enginePos{epoch: e, engineSeq: n}
}

// isMark reports whether a text of a stream is a mark.
func isMark(text []byte) bool { return bytes.HasPrefix(text, []byte(markHead)) }

// parseDigits reads a number below 2^64 as we write it: no sign, no zero in
// front.
func parseDigits(text []byte) (uint64, bool) {
	if len(text) == 0 || len(text) > 1 && text[0] == '0' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text), 10, 64)
	return n, err == nil
}

// appendRetry appends a line, to go before an event: how long a client is to wait
// before it comes back.
func appendRetry(dst []byte, wait time.Duration) []byte {
	dst = append(dst, "retry: "...)
	dst = strconv.AppendInt(dst, wait.Milliseconds(), 10)
	return append(dst, '\n')
}

// restart returns the last message of a stream that ends because the service
// does. A WebSocket is told by its close code.
func (e *encoder) restart(epoch uint64) []byte {
	e.begin()
	e.text(channelHead + `status","type":"restart","epoch":"e`)
	e.number(epoch)
	e.text(`"}`)
	return e.end(finText)
}
