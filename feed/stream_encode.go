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
// and an empty line: its channel as the event's name and the WebSocket's JSON, which has
// no line break, as one line of data.

// channelHead begins the JSON of every message.
const channelHead = `{"channel":"`

// appendEvent appends the message of an unmasked text frame as an event.
func appendEvent(dst, frame []byte) []byte {
	text := framePayload(frame)
	name := text[len(channelHead):]
	name = name[:bytes.IndexByte(name, '"')]
	dst = append(append(dst, "event: "...), name...)
	dst = append(append(dst, "\ndata: "...), text...)
	return append(dst, "\n\n"...)
}

// appendEvents appends the messages of several frames as events.
func appendEvents(dst, frames []byte) []byte {
	for len(frames) > 0 {
		n := frameLen(frames)
		dst = appendEvent(dst, frames[:n])
		frames = frames[n:]
	}
	return dst
}

// frameLen returns the length of the unmasked frame at the start of data.
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

// enginePos is a position in the engine's order of commands: after the market-data
// effects of all commands up to engineSeq. Its text, such as e7-1042, is the id of a
// stream's mark event. The zero value is no position.
type enginePos struct{ epoch, engineSeq uint64 }

// appendMark appends the event that sets the id with which a client resumes. It has data,
// because Firefox and npm's eventsource ignore the id of an event without data, which the
// WHATWG's standard (HTML, section 9.2.6) allows.
func appendMark(dst []byte, pos enginePos) []byte {
	dst = append(dst, markHead...)
	dst = strconv.AppendUint(dst, pos.epoch, 10)
	dst = append(dst, '-')
	dst = strconv.AppendUint(dst, pos.engineSeq, 10)
	dst = append(dst, "\nevent: mark\ndata: "+channelHead+`mark","epoch":"e`...)
	dst = strconv.AppendUint(dst, pos.epoch, 10)
	dst = append(dst, `","engine_seq":`...)
	dst = strconv.AppendUint(dst, pos.engineSeq, 10)
	return append(dst, "}\n\n"...)
}

// markHead begins a mark event and no other event.
const markHead = "id: e"

// parseEventID parses an event id. An invalid one is the zero position.
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

// isMark reports whether an encoded event is a mark.
func isMark(text []byte) bool { return bytes.HasPrefix(text, []byte(markHead)) }

// parseDigits parses a uint64 without sign and leading zeros.
func parseDigits(text []byte) (uint64, bool) {
	if len(text) == 0 || len(text) > 1 && text[0] == '0' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text), 10, 64)
	return n, err == nil
}

// appendRetry appends a line, before an event, with the client's reconnection time.
func appendRetry(dst []byte, wait time.Duration) []byte {
	dst = append(dst, "retry: "...)
	dst = strconv.AppendInt(dst, wait.Milliseconds(), 10)
	return append(dst, '\n')
}

// restart returns the last message of a stream when the service ends. A WebSocket has a
// close code instead.
func (e *encoder) restart(epoch uint64) []byte {
	e.begin()
	e.text(channelHead + `status","type":"restart","epoch":"e`)
	e.number(epoch)
	e.text(`"}`)
	return e.end(finText)
}
