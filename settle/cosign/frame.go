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
//	answer 0x81  address: [32]
//	answer 0x82  signature: [64]
//	answer 0xff  refusal: reason u8
//
// Numbers are little-endian. Frozen: a test has the bytes.
const (
	frameVersion = 1

	requestAddress  = 0x01
	requestSign     = 0x02
	answerAddress   = 0x81
	answerSignature = 0x82
	answerRefusal   = 0xff

	sizeSize, headSize = 2, 2
	// MaxSignerFrame bounds what follows a frame's size: head, kind and the
	// largest transaction.
	MaxSignerFrame = headSize + 1 + tx.MaxSize
)

// errFrame: bytes that are no frame of this protocol.
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
		return frame{}, fmt.Errorf("%w: of %d bytes", errFrame, size)
	case head[2] != frameVersion:
		return frame{}, fmt.Errorf("%w: version %d", errFrame, head[2])
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
		return fmt.Errorf("%w: an answer %#x of %d bytes", errFrame, f.kind, len(f.body))
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
)

// String returns the machine word.
func (r Refusal) String() string {
	words := [...]string{
		RefusalFrame: "bad_frame", RefusalShape: "bad_shape", RefusalSlots: "bad_slots",
		RefusalMessage: "other_message", RefusalDeliveries: "too_many_deliveries", RefusalFull: "record_full",
		RefusalRecord: "record_failed", RefusalBusy: "busy", RefusalKey: "key_failed",
	}
	if int(r) < len(words) && words[r] != "" {
		return words[r]
	}
	return "refusal?"
}

// Error makes a Refusal an error.
func (r Refusal) Error() string { return "cosign: the signer refuses: " + r.String() }

func refusalFrame(r Refusal) frame { return frame{answerRefusal, []byte{byte(r)}} }

func addressFrame(a solana.Address) frame { return frame{answerAddress, a[:]} }

func signatureFrame(s solana.Signature) frame { return frame{answerSignature, s[:]} }
