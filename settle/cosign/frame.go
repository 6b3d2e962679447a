package cosign

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/tx"
)

// A connection to the signer carries one request and one answer, each a frame:
//
//	size u16 of what follows, 2 to MaxSignerFrame ‖ version u8 = 1 ‖ type u8 ‖ body
//
//	request 1    address: no body
//	request 2    sign:    kind u8 ‖ the whole transaction, the desk's slot empty
//	request 3    limits:  from u16
//	answer 0x81  address: [32]
//	answer 0x82  signature: [64]
//	answer 0x83  limits:  ceilings from that one on, each class u8 ‖ [32]mint ‖
//	             used in the last hour, most an hour, used in the last day, most a day, u64 each;
//	             fewer than maxUses end the list
//	answer 0xff  refusal: reason u8
//
// Numbers are little-endian. Frozen: a test has the bytes.
const (
	frameVersion = 1

	requestAddress  = 0x01
	requestSign     = 0x02
	requestLimits   = 0x03
	answerAddress   = 0x81
	answerSignature = 0x82
	answerLimits    = 0x83
	answerRefusal   = 0xff

	sizeSize, headSize = 2, 2
	// MaxSignerFrame bounds what follows a frame's size: head, kind and the
	// largest transaction.
	MaxSignerFrame = headSize + 1 + tx.MaxSize
)

// errFrame: bytes that are not a frame of this protocol.
var errFrame = errors.New("not a frame of the signer's protocol")

// frame is a request or an answer without its size and version.
type frame struct {
	kind byte
	body []byte
}

// append appends the frame's bytes to dst. A body that is too long is a bug in the
// caller.
func (f frame) append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint16(dst, uint16(headSize+len(f.body)))
	dst = append(dst, frameVersion, f.kind)
	return append(dst, f.body...)
}

// readFrame reads one frame. It reads nothing after it, and allocates at most
// MaxSignerFrame bytes, whatever the size says. Errors: errFrame; io.EOF if there is
// nothing to read; errors of r.
func readFrame(r io.Reader) (frame, error) {
	var head [sizeSize + headSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return frame{}, err
	}
	size := int(binary.LittleEndian.Uint16(head[:]))
	switch {
	case size < headSize || size > MaxSignerFrame:
		return frame{}, fmt.Errorf("%w: %d bytes, want %d to %d", errFrame, size, headSize, MaxSignerFrame)
	case head[2] != frameVersion:
		return frame{}, fmt.Errorf("%w: version %d, want %d", errFrame, head[2], frameVersion)
	}
	f := frame{head[3], make([]byte, size-headSize)}
	_, err := io.ReadFull(r, f.body)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF // the body is missing altogether
	}
	return f, err
}

// signFrame is the request to sign a job.
func signFrame(j Job) frame {
	body := append(make([]byte, 0, 1+len(j.Transaction())), byte(j.Kind()))
	return frame{requestSign, append(body, j.Transaction()...)}
}

// parse parses an answer of the wanted type, and of exactly the size of into. Errors:
// errFrame; a [Refusal], which may answer any request.
func (f frame) parse(want byte, into []byte) error {
	switch {
	case f.kind == answerRefusal && len(f.body) == 1:
		return Refusal(f.body[0])
	case f.kind != want || len(f.body) != len(into):
		return fmt.Errorf("%w: unexpected answer of type %#x with %d bytes", errFrame, f.kind, len(f.body))
	}
	copy(into, f.body)
	return nil
}

// Refusal is the signer's refusal of a gateway's request. The numbers are on the wire:
// frozen.
type Refusal uint8

const (
	// RefusalFrame: not a request of the protocol.
	RefusalFrame Refusal = 1
	// RefusalShape: not a message that the desk signs.
	RefusalShape Refusal = 2
	// RefusalSlots: the desk's slot is filled, or the taker's signature does not
	// verify.
	RefusalSlots Refusal = 3
	// RefusalMessage: another message was signed for the claim.
	RefusalMessage Refusal = 4
	// RefusalDeliveries: MaxDeliveries messages were signed for the claim.
	RefusalDeliveries Refusal = 5
	// RefusalFull: the record is full.
	RefusalFull Refusal = 6
	// RefusalRecord: the record could not be written. The signer refuses until a
	// restart.
	RefusalRecord Refusal = 7
	// RefusalBusy: too many connections: retry.
	RefusalBusy Refusal = 8
	// RefusalKey: the signer's own key failed.
	RefusalKey Refusal = 9
	// RefusalToken: the file of limits has no such token, or not on this rail.
	RefusalToken Refusal = 10
	// RefusalPayee: the payment goes to a wallet that the file of limits does not have.
	RefusalPayee Refusal = 11
	// RefusalPrice: the payment is below the token's lowest price.
	RefusalPrice Refusal = 12
	// RefusalHour: the ceiling of an hour is reached.
	RefusalHour Refusal = 13
	// RefusalDay: the ceiling of a day is reached.
	RefusalDay Refusal = 14
	// RefusalNoLimits: refunds are signed only with a file of limits.
	RefusalNoLimits Refusal = 15
	// RefusalRefunds: MaxRefundAttempts messages were signed for the payment.
	RefusalRefunds Refusal = 16
)

// String returns the machine word.
func (r Refusal) String() string {
	words := [...]string{
		RefusalFrame: "bad_frame", RefusalShape: "bad_shape", RefusalSlots: "bad_slots",
		RefusalMessage: "other_message", RefusalDeliveries: "too_many_deliveries", RefusalFull: "record_full",
		RefusalRecord: "record_failed", RefusalBusy: "busy", RefusalKey: "key_failed",
		RefusalToken: "token_not_allowed", RefusalPayee: "payee_not_allowed", RefusalPrice: "below_lowest_price",
		RefusalHour: "ceiling_hour", RefusalDay: "ceiling_day", RefusalNoLimits: "no_limits", RefusalRefunds: "too_many_refunds",
	}
	if int(r) < len(words) && words[r] != "" {
		return words[r]
	}
	return "refusal?"
}

// Error makes a Refusal an error.
func (r Refusal) Error() string { return "cosign: the signer refuses: " + r.String() }

// ByLimits reports whether the signer's file of limits is the reason.
func (r Refusal) ByLimits() bool { return r >= RefusalToken && r <= RefusalNoLimits }

func refusalFrame(r Refusal) frame { return frame{answerRefusal, []byte{byte(r)}} }

func addressFrame(a solana.Address) frame { return frame{answerAddress, a[:]} }

func signatureFrame(s solana.Signature) frame { return frame{answerSignature, s[:]} }

const (
	// useSize is the size of a ceiling in an answer, and maxUses are in one answer.
	useSize = 1 + 32 + 4*8
	maxUses = (MaxSignerFrame - headSize) / useSize
)

func limitsRequest(from int) frame {
	return frame{requestLimits, binary.LittleEndian.AppendUint16(nil, uint16(from))}
}

// limitsFrame is the answer with the ceilings from one on.
func limitsFrame(list []LimitUse, from int) frame {
	list = list[min(from, len(list)):]
	body := make([]byte, 0, maxUses*useSize)
	for i := range list[:min(len(list), maxUses)] {
		u := &list[i]
		body = append(append(body, byte(u.Class)), u.Mint[:]...)
		for _, n := range []uint64{u.Hour, u.MaxHour, u.Day, u.MaxDay} {
			body = binary.LittleEndian.AppendUint64(body, n)
		}
	}
	return frame{answerLimits, body}
}

// uses parses the answer to limitsRequest. Errors: errFrame; a [Refusal], also of a
// signer of 0.1.0, which has no limits.
func (f frame) uses() (list []LimitUse, err error) {
	if f.kind == answerRefusal && len(f.body) == 1 {
		return nil, Refusal(f.body[0])
	}
	if f.kind != answerLimits || len(f.body)%useSize != 0 {
		return nil, fmt.Errorf("%w: unexpected answer of type %#x with %d bytes", errFrame, f.kind, len(f.body))
	}
	for body := f.body; len(body) > 0; body = body[useSize:] {
		number := func(at int) uint64 { return binary.LittleEndian.Uint64(body[33+8*at:]) }
		list = append(list, LimitUse{
			Class: LimitClass(body[0]), Mint: solana.Address(body[1:33]), Hour: number(0), MaxHour: number(1), Day: number(2), MaxDay: number(3),
		})
	}
	return list, nil
}
