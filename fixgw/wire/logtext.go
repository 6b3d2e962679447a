package wire

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Redacted replaces a secret value.
const Redacted = "<hidden>"

// AppendLogText appends a message as a person reads it: '|' for SOH, and without secrets. A
// byte of a value that is '|', '\' or not printable ASCII becomes \xHH, so that one message
// is one line and only secrets are lost:
//
//   - of a Logon (A), a UserRequest (BE) and a message without a type, only a list of
//     harmless fields is shown;
//   - of every other message, passwords and signatures of any kind are hidden;
//   - bytes that are no field are hidden: they may be the rest of one.
func AppendLogText(dst, message []byte) []byte {
	careful := carriesSecrets(message)
	for len(message) > 0 {
		end := bytes.IndexByte(message, SOH)
		if end < 0 {
			end = len(message)
		}
		tag, value := SplitField(message[:end])
		switch {
		case tag <= 0:
			dst = append(dst, Redacted...)
		case careful && !shownOfLogon(tag), secretTag(tag):
			dst = append(append(strconv.AppendInt(dst, int64(tag), 10), '='), Redacted...)
		default:
			dst = appendEscaped(append(strconv.AppendInt(dst, int64(tag), 10), '='), value)
		}
		dst = append(dst, '|')
		message = message[min(end+1, len(message)):]
	}
	return dst
}

// carriesSecrets reports whether a message is of a type that authenticates somebody, or
// has no type. With several MsgType fields the most sensitive one decides.
func carriesSecrets(message []byte) bool {
	typed, careful := false, false
	EachField(message, func(tag int, value []byte) {
		if tag == 35 {
			typed = true
			careful = careful || string(value) == "A" || string(value) == "BE" || len(value) == 0
		}
	})
	return careful || !typed
}

// shownOfLogon reports whether a field of a Logon is known to carry no secret. BodyLength
// and CheckSum depend on the secrets, so they are hidden too.
func shownOfLogon(tag int) bool {
	switch tag {
	case 8, 35, 49, 56, 34, 52, 43, 97, 122, 369, // header
		98, 108, 141, 553, 789, 383, 464, 58, // body
		8013, 9406, 5600: // ours
		return true
	}
	return false
}

// secretTag reports whether a field is a secret in any message: Signature (89),
// SecureData (91), Password (554), NewPassword (925), and the encrypted ones
// (1400 to 1404) of later versions.
func secretTag(tag int) bool {
	switch tag {
	case 89, 91, 554, 925, 1400, 1401, 1402, 1403, 1404:
		return true
	}
	return false
}

const hexDigits = "0123456789abcdef"

func appendEscaped(dst, value []byte) []byte {
	for _, c := range value {
		if c >= ' ' && c <= '~' && c != '|' && c != '\\' {
			dst = append(dst, c)
		} else {
			dst = append(dst, '\\', 'x', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return dst
}

// LogField is one field of a message in a log.
type LogField struct {
	Tag   int    // 0 = the bytes were no field
	Value string // unescaped; Redacted for a secret
}

// LogEntry is one line of a message log.
type LogEntry struct {
	At     time.Time // UTC, nanoseconds
	Lost   uint64    // messages missing here; 0 = the entry is a message
	Out    bool      // sent by us
	CompID string    // the client's
	// Fields are in the message's order.
	Fields []LogField
}

// Get returns the first value of a tag, or "".
func (e *LogEntry) Get(tag int) string {
	for i := range e.Fields {
		if e.Fields[i].Tag == tag {
			return e.Fields[i].Value
		}
	}
	return ""
}

// ErrLogLine is wrapped in the error of ParseLogLine.
var ErrLogLine = errors.New("not a line of a FIX message log")

// MaxLogFields limits the fields of a line.
const MaxLogFields = 1 << 16

// ParseLogLine reads a line of the message log, without its newline.
func ParseLogLine(line string) (LogEntry, error) {
	stamp, rest, _ := strings.Cut(line, " ")
	at, err := time.Parse(logTime, stamp)
	if err != nil || len(stamp) != len(logTime) {
		return LogEntry{}, fmt.Errorf("%w: it begins with %.40q", ErrLogLine, stamp)
	}
	e := LogEntry{At: at}
	way, rest, _ := strings.Cut(rest, " ")
	switch way {
	case "lost":
		if e.Lost, err = strconv.ParseUint(rest, 10, 64); err != nil || e.Lost == 0 {
			return LogEntry{}, fmt.Errorf("%w: invalid count of lost messages %.40q", ErrLogLine, rest)
		}
		return e, nil
	case "in":
	case "out":
		e.Out = true
	default:
		return LogEntry{}, fmt.Errorf("%w: unknown direction %.40q", ErrLogLine, way)
	}
	compID, text, _ := strings.Cut(rest, " ")
	if !IsCompID(compID) {
		return LogEntry{}, fmt.Errorf("%w: invalid CompID %.40q", ErrLogLine, compID)
	}
	e.CompID = compID
	e.Fields, err = ParseLogText(text)
	return e, err
}

// ParseLogText reads what AppendLogText has written.
func ParseLogText(text string) ([]LogField, error) {
	parts := strings.Split(text, "|")
	if len(parts) > MaxLogFields {
		return nil, fmt.Errorf("%w: more than %d fields", ErrLogLine, MaxLogFields)
	}
	if last := len(parts) - 1; last == 0 || parts[last] != "" {
		return nil, fmt.Errorf("%w: the message has no end", ErrLogLine)
	}
	fields := make([]LogField, 0, len(parts)-1)
	for _, part := range parts[:len(parts)-1] {
		if part == Redacted {
			fields = append(fields, LogField{Value: Redacted})
			continue
		}
		tag, value := SplitField([]byte(part))
		if tag <= 0 {
			return nil, fmt.Errorf("%w: invalid field %.40q", ErrLogLine, part)
		}
		plain, err := unescape(value)
		if err != nil {
			return nil, err
		}
		fields = append(fields, LogField{Tag: tag, Value: plain})
	}
	return fields, nil
}

func unescape(value []byte) (string, error) {
	if bytes.IndexByte(value, '\\') < 0 {
		return string(value), nil
	}
	out := make([]byte, 0, len(value))
	for i := 0; i < len(value); i++ {
		if value[i] != '\\' {
			out = append(out, value[i])
			continue
		}
		if i+4 > len(value) || value[i+1] != 'x' {
			return "", fmt.Errorf("%w: invalid escape in %.40q", ErrLogLine, value)
		}
		high := strings.IndexByte(hexDigits, value[i+2])
		low := strings.IndexByte(hexDigits, value[i+3])
		if high < 0 || low < 0 {
			return "", fmt.Errorf("%w: invalid escape in %.40q", ErrLogLine, value)
		}
		out = append(out, byte(high<<4|low))
		i += 3
	}
	return string(out), nil
}

// Direction of a message, from the gateway's point of view.
type Direction byte

// The two directions.
const (
	Received Direction = 1
	Sent     Direction = 2
)

// AppendLogLine appends one message as a line.
func AppendLogLine(dst []byte, at time.Time, d Direction, compID, message []byte) []byte {
	way := " in "
	if d == Sent {
		way = " out "
	}
	dst = append(append(AppendLogTime(dst, at), way...), compID...)
	return append(AppendLogText(append(dst, ' '), message), '\n')
}

// AppendLogTime appends a time with all nine digits, so that lines align.
func AppendLogTime(dst []byte, at time.Time) []byte {
	return at.AppendFormat(dst, logTime)
}

const logTime = "2006-01-02T15:04:05.000000000Z"
