package wire

import (
	"bytes"
	"strconv"
)

// Fields of a Logon that FIX 4.4 does not have. Every session may send them: the stock
// dictionary allows user-defined fields.
const (
	TagCustomFields       = 5600 // Y = our custom fields may come; absent = N
	TagCancelOnDisconnect = 8013 // N = orders outlive the connection; absent = Y
	TagDropCopy           = 9406 // Y = copies of all fills of the participant; absent = N
)

// TagMassCancelSession is Y in an OrderMassCancelRequest (q) that cancels the orders of its session
// only; absent = N, those of the participant.
const TagMassCancelSession = 5620

// The custom fields have values that no standard field fits. Only a session that has
// logged on with 5600=Y gets them, because a stock client rejects fields that its
// dictionary lacks. sdk/fix/FIX44-blockdesk.xml defines them, and TestDictionary compares
// the two. A client's fields under these tags are not read.
const (
	TagFillUSD           = 5601
	TagRail              = 5602
	TagDiscountBps       = 5603
	TagReferencePriceUSD = 5604
	TagPaymentAmount     = 5605
	TagPaymentAtoms      = 5606
	TagPayTo             = 5607
	TagPaymentMint       = 5608
	TagPaymentReference  = 5609
	TagPaymentMemo       = 5610
	TagBaseAtoms         = 5611
	TagClaimState        = 5612
	TagL1Signature       = 5613 // reserved: in the dictionary, in no message yet
	TagFeeBps            = 5614
	TagEpoch             = 5615
	TagFeedSeq           = 5616
)

// AppendTag appends SOH, the tag and '=' of a further field.
func AppendTag(dst []byte, tag int) []byte {
	return append(strconv.AppendInt(append(dst, SOH), int64(tag), 10), '=')
}

// AppendCustomText appends a custom field whose text is always printable ASCII: a
// decimal, a base58 address or signature, a state.
func AppendCustomText(dst []byte, tag int, value string) []byte {
	return append(AppendTag(dst, tag), value...)
}

// appendCustomInt appends a custom field with a whole number.
func appendCustomInt(dst []byte, tag int, n int64) []byte {
	return strconv.AppendInt(AppendTag(dst, tag), n, 10)
}

// AppendCustomCount appends a custom field with an unsigned number of 64 bits, such as
// atoms.
func AppendCustomCount(dst []byte, tag int, n uint64) []byte {
	return strconv.AppendUint(AppendTag(dst, tag), n, 10)
}

// WithoutCustom returns fields, joined by SOH, without the custom ones, for a session
// that has asked for them earlier but not now. It does not change fields, and returns it
// if there are none. The first field is kept in any case, because a body begins with a
// value alone.
func WithoutCustom(fields []byte) []byte {
	var kept []byte
	for at := 0; at < len(fields); {
		end := len(fields)
		if i := bytes.IndexByte(fields[at:], SOH); i >= 0 {
			end = at + i + 1
		}
		switch tag, _ := SplitField(fields[at:end]); {
		case at > 0 && tag >= TagCustomFields && tag <= TagFeedSeq:
			if kept == nil {
				kept = append(make([]byte, 0, len(fields)), fields[:at]...)
			}
		case kept != nil:
			kept = append(kept, fields[at:end]...)
		}
		at = end
	}
	if kept == nil {
		return fields
	}
	if fields[len(fields)-1] != SOH { // a body ends without one
		kept = bytes.TrimSuffix(kept, []byte{SOH})
	}
	return kept
}

// MessageWithoutCustom is WithoutCustom for a whole message. The sender makes the
// CheckSum.
func MessageWithoutCustom(msg []byte) []byte {
	stripped := WithoutCustom(msg)
	if len(stripped) == len(msg) {
		return msg
	}
	head := bytes.Index(stripped, []byte("\x0135=")) + 1
	first := bytes.IndexByte(stripped, SOH) + 1
	out := append(make([]byte, 0, len(msg)), stripped[:first]...)
	out = strconv.AppendInt(append(out, "9="...), int64(len(stripped)-head-trailerSize), 10)
	return append(append(out, SOH), stripped[head:]...)
}
