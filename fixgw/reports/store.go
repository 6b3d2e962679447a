package reports

import (
	"encoding/binary"
	"fmt"

	"blockdesk/fixgw/session"
	"blockdesk/market"
)

// The keys of the FIX store. Numbers are big-endian, so that a scan sees them in their
// order. Every package has its own kinds of keys:
//
//	v c                   layout version, position: here
//	x day session ClOrdID the first answer to a request: here
//	p                     there while a Reconcile is unfinished: here
//	k                     written to make what came before it durable: here
//	a s r l m u           package session
//	o y n                 package orders
//	q d e f b t           package rfq
//	g j                   package history
const (
	keyAnswer     byte = 'x'
	keyUnfinished byte = 'p'
	keySync       byte = 'k'

	layoutVersion = 2
)

func answerKey(dst []byte, day uint32, session uint16, clOrdID []byte) []byte {
	dst = binary.BigEndian.AppendUint32(append(dst, keyAnswer), day)
	dst = binary.BigEndian.AppendUint16(dst, session)
	return append(dst, clOrdID...)
}

// DayOf returns the UTC day of a Unix nanosecond. Records of one day are deleted together.
func DayOf(at int64) uint32 {
	const day = 24 * 60 * 60 * 1_000_000_000
	return uint32(max(at, 0) / day)
}

// RecentDays returns the days of which a record may still be needed, at a Unix nanosecond:
// of today first. The engine's clock may be a day ahead of ours.
func RecentDays(at int64) [3]uint32 {
	day := DayOf(at)
	return [...]uint32{day, day - 1, day + 1}
}

// Expired returns the range of answers of the days before day.
func Expired(day uint32) (lo, hi []byte) { return ExpiredOf(keyAnswer, day) }

// ExpiredOf returns the range of a kind of keys that begin with a day, of the days before day.
func ExpiredOf(kind byte, day uint32) (lo, hi []byte) {
	return []byte{kind}, binary.BigEndian.AppendUint32([]byte{kind}, day)
}

// An answer record is the first answer to a ClOrdID:
//
//	0 version · 1 MsgType of the request · 2 OrderID u64 · 10 MsgType of the
//	answer · 11 content of the request u64 · 19 the answer's body
//
// Version 1 lacks the content.
const (
	answerRecordV1Size  = 11
	answerRecordVersion = 2
	answerRecordSize    = 19
)

type answer struct {
	request byte
	id      market.OrderID
	msgType byte
	content uint64 // wire.OrderRequest.Content; 0 = unknown
	body    []byte
}

func appendAnswer(dst []byte, a answer) []byte {
	dst = append(dst, answerRecordVersion, a.request)
	dst = binary.BigEndian.AppendUint64(dst, uint64(a.id))
	dst = binary.BigEndian.AppendUint64(append(dst, a.msgType), a.content)
	return append(dst, a.body...)
}

func parseAnswer(value []byte) (answer, error) {
	switch {
	case len(value) > answerRecordV1Size && value[0] == 1:
	case len(value) > answerRecordSize && value[0] == answerRecordVersion:
	default:
		return answer{}, fmt.Errorf("%w: answer of %d bytes", session.ErrLayout, len(value))
	}
	a := answer{
		request: value[1], id: market.OrderID(binary.BigEndian.Uint64(value[2:])),
		msgType: value[10], body: value[answerRecordV1Size:],
	}
	if value[0] == answerRecordVersion {
		a.content, a.body = binary.BigEndian.Uint64(value[answerRecordV1Size:]), value[answerRecordSize:]
	}
	return a, nil
}
