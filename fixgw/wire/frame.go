package wire

import (
	"bytes"
	"errors"
	"fmt"
)

// Errors of ScanFrame and CheckFrame: the connection ends.
var (
	ErrTooLarge = errors.New("MESSAGE_TOO_LARGE: BodyLength (9)")
	ErrNotFIX   = errors.New("INVALID_MESSAGE: bytes are not FIX")
	ErrField    = errors.New("INVALID_FIELD")
)

// SOH ends a field.
const SOH = 1

// beginStringPrefix begins every message; a message is longer than it.
var beginStringPrefix = []byte("8=FIX")

// MaxHeader is the most bytes of BeginString, BodyLength and CheckSum.
const MaxHeader = 64

const (
	maxBeginString = 16 // bytes of BeginString's value
	maxLengthText  = 10 // digits of BodyLength; some clients fill with zeros
	trailerSize    = 7  // "10=nnn" and SOH
)

// ScanFrame looks for one whole message at the start of buf. At most one of the results
// is set: skip bytes are no message and must be dropped, n bytes are a message whose
// length and checksum are right, or err ends the connection. All zero means that more
// bytes are needed. A message whose BodyLength is above most is ErrTooLarge before its
// bytes are read.
//
// FIX 4.4 volume 2: a garbled message is ignored, and the next one begins at the next
// BeginString. Everything within its BodyLength is dropped with it, so that bytes inside
// a field are never taken for a message. A whole message that is lost this way leaves a gap
// in the sequence numbers, and is requested again.
func ScanFrame(buf []byte, most int) (skip, n int, err error) {
	start := bytes.Index(buf, beginStringPrefix)
	switch {
	case start > 0:
		return start, 0, nil
	case start < 0:
		return max(0, len(buf)-len(beginStringPrefix)+1), 0, nil
	}
	head := bytes.IndexByte(buf, SOH)
	if head < 0 {
		return giveUp(buf, len("8=")+maxBeginString)
	}
	if head > len("8=")+maxBeginString {
		return len(beginStringPrefix), 0, nil
	}
	rest := buf[head+1:]
	if len(rest) < 2 {
		return 0, 0, nil
	}
	if rest[0] != '9' || rest[1] != '=' {
		return len(beginStringPrefix), 0, nil
	}
	length, digits := 0, 0
	for _, c := range rest[2:] {
		if c == SOH {
			break
		}
		if digits++; c < '0' || c > '9' || digits > maxLengthText {
			return len(beginStringPrefix), 0, nil
		}
		if length = 10*length + int(c-'0'); length > most {
			return 0, 0, fmt.Errorf("%w is above %d", ErrTooLarge, most)
		}
	}
	body := head + 1 + 2 + digits + 1
	switch {
	case body > len(buf): // the SOH has not come
		return 0, 0, nil
	case digits == 0:
		return len(beginStringPrefix), 0, nil
	case len(buf) < body+length+trailerSize:
		return 0, 0, nil
	}
	if !validTrailer(buf[:body+length], buf[body+length:]) {
		return body + length, 0, nil
	}
	return 0, body + length + trailerSize, nil
}

// giveUp skips a BeginString that does not end within most bytes.
func giveUp(buf []byte, most int) (skip, n int, err error) {
	if len(buf) > most+len("8=") {
		return len(beginStringPrefix), 0, nil
	}
	return 0, 0, nil
}

func validTrailer(message, trailer []byte) bool {
	if message[len(message)-1] != SOH || string(trailer[:3]) != "10=" || trailer[6] != SOH {
		return false
	}
	sum := byte(0)
	for _, b := range message {
		sum += b
	}
	return trailer[3] == '0'+sum/100 && trailer[4] == '0'+sum/10%10 && trailer[5] == '0'+sum%10
}

// CheckFrame refuses messages that crash quickfix: it panics on an empty MsgSeqNum and on
// the lengths of XmlData, in a goroutine of its own, which would end the process. It
// returns MsgSeqNum; 0 only in a SequenceReset, where it does not count. The session
// answers every other error in a field.
func CheckFrame(frame []byte) (seq uint64, err error) {
	typed, numbered := false, false
	for at, first := 0, true; at < len(frame); first = false {
		end := at + bytes.IndexByte(frame[at:], SOH)
		tag, value := SplitField(frame[at:end])
		at = end + 1
		switch tag {
		case 34:
			if numbered = true; string(value) == "0" {
				seq = 0
			} else if seq, err = ParseSeq(value); err != nil {
				return seq, err
			}
		case 35:
			// quickfix answers an empty one with an empty RefMsgType.
			if typed = len(value) > 0; !typed {
				return seq, fmt.Errorf("%w: MsgType (35) is empty", ErrField)
			}
		case 212, 213:
			return seq, fmt.Errorf("%w: XmlData (213) is not supported", ErrField)
		case 10:
			if at != len(frame) {
				return seq, fmt.Errorf("%w: CheckSum (10) is not the last field", ErrField)
			}
		case -1:
			return seq, fmt.Errorf("%w: a field is not tag=value", ErrField)
		}
		if first && tag != 8 {
			return seq, ErrNotFIX
		}
	}
	switch {
	case !numbered:
		return seq, fmt.Errorf("%w: MsgSeqNum (34) is missing", ErrField)
	case !typed:
		return seq, fmt.Errorf("%w: MsgType (35) is missing", ErrField)
	}
	return seq, nil
}

// ParseSeq reads a sequence number: 1 to 10^9-1 (our choice), which fits every client's
// int.
func ParseSeq(value []byte) (uint64, error) {
	seq := uint64(0)
	for _, c := range value {
		if c < '0' || c > '9' || seq > 1e9 {
			return 0, fmt.Errorf("%w: MsgSeqNum (34) %.20q must be 1 to 999999999", ErrField, value)
		}
		seq = 10*seq + uint64(c-'0')
	}
	if seq == 0 || seq >= 1e9 {
		return 0, fmt.Errorf("%w: MsgSeqNum (34) %.20q must be 1 to 999999999", ErrField, value)
	}
	return seq, nil
}

// SplitField returns tag and value of "tag=value", or tag -1. A tag has at most 9 digits.
// A negative tag is returned as 0, which is no field either: the session rejects both.
func SplitField(field []byte) (tag int, value []byte) {
	negative := len(field) > 0 && field[0] == '-'
	if negative {
		field = field[1:]
	}
	for i, c := range field {
		switch {
		case c == '=' && i > 0 && negative:
			return 0, field[i+1:]
		case c == '=' && i > 0:
			return tag, field[i+1:]
		case c < '0' || c > '9' || i > 8:
			return -1, nil
		}
		tag = 10*tag + int(c-'0')
	}
	return -1, nil
}

// EachField calls f for each field of a message that ScanFrame has accepted. value
// aliases frame.
func EachField(frame []byte, f func(tag int, value []byte)) {
	for len(frame) > 0 {
		end := bytes.IndexByte(frame, SOH)
		if end < 0 {
			return
		}
		if tag, value := SplitField(frame[:end]); tag >= 0 {
			f(tag, value)
		}
		frame = frame[end+1:]
	}
}

// readFields sets each of the values to the last one of its tag in a message; they alias it.
func readFields(frame []byte, values map[int]*[]byte) {
	EachField(frame, func(tag int, value []byte) {
		if to := values[tag]; to != nil {
			*to = value
		}
	})
}

// MsgType returns the MsgType (35) of a message, or "".
func MsgType(frame []byte) string {
	_, rest, _ := bytes.Cut(frame, []byte("\x0135="))
	value, _, _ := bytes.Cut(rest, []byte{SOH})
	return string(value)
}
