package wire

import (
	"strconv"
	"strings"
	"time"
)

// Header is a message's standard header.
type Header struct {
	MsgType        string
	Sender, Target string
	Seq            uint64
	At             time.Time
}

// AppendMessage appends one whole message; body is fields with SOH between.
func AppendMessage(dst []byte, h Header, body []byte) []byte {
	field := func(dst []byte, tag, value string) []byte {
		return append(append(append(dst, tag...), value...), SOH)
	}
	head := field(nil, "35=", h.MsgType)
	head = append(strconv.AppendUint(append(head, "34="...), h.Seq, 10), SOH)
	head = field(head, "49=", h.Sender)
	head = append(AppendTime(append(head, "52="...), h.At.UnixNano()), SOH)
	return AppendFrame(dst, field(head, "56=", h.Target), body)
}

// AppendFrame appends one whole message whose fields are head and then body: it adds
// BeginString, BodyLength, the last SOH and CheckSum.
func AppendFrame(dst, head, body []byte) []byte {
	start := len(dst)
	dst = append(dst, "8=FIX.4.4\x019="...)
	dst = append(strconv.AppendInt(dst, int64(len(head)+len(body)+1), 10), SOH)
	dst = append(append(append(dst, head...), body...), SOH)
	sum := byte(0)
	for _, b := range dst[start:] {
		sum += b
	}
	return append(dst, '1', '0', '=', '0'+sum/100, '0'+sum/10%10, '0'+sum%10, SOH)
}

// AppendTime appends a UTCTimestamp with milliseconds, rounded down.
func AppendTime(dst []byte, at int64) []byte {
	return time.Unix(0, at).UTC().AppendFormat(dst, "20060102-15:04:05.000")
}

// AppendText appends text as a field's value: bytes that are not printable ASCII, and so
// every delimiter, become '?'. Our texts quote what clients have sent.
func AppendText(dst []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c >= ' ' && c <= '~' {
			dst = append(dst, c)
		} else {
			dst = append(dst, '?')
		}
	}
	return dst
}

// oneOf reports whether value is one of the characters of set.
func oneOf(value []byte, set string) bool {
	return len(value) == 1 && strings.IndexByte(set, value[0]) >= 0
}
