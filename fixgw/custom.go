package fixgw

import (
	"bytes"
	"strconv"
)

// Fields of a Logon that FIX 4.4 does not have. Every session may send them: the
// stock dictionary lets user-defined fields in.
const (
	tagCustomFields       = 5600 // Y = our custom fields may come; absent = N
	tagCancelOnDisconnect = 8013 // N = orders outlive the connection; absent = Y
	tagDropCopy           = 9406 // Y = copies of all fills of the participant; absent = N
)

// The custom fields: what standard fields have no place for. A message of ours
// carries them only to a session that has logged on with 5600=Y, since default
// clients reject what their dictionary does not know. sdk/fix/FIX44-blockdesk.xml
// has them by type and message, and TestDictionary holds the two together. What
// a client sends under these tags is not read.
const (
	tagFillUSD           = 5601
	tagRail              = 5602
	tagDiscountBps       = 5603
	tagReferencePriceUSD = 5604
	tagPaymentAmount     = 5605
	tagPaymentAtoms      = 5606
	tagPayTo             = 5607
	tagPaymentMint       = 5608
	tagPaymentReference  = 5609
	tagPaymentMemo       = 5610
	tagBaseAtoms         = 5611
	tagClaimState        = 5612
	tagL1Signature       = 5613 // reserved: in the dictionary, in no message yet
	tagFeeBps            = 5614
	tagEpoch             = 5615
	tagFeedSeq           = 5616
)

// appendTag appends what stands before a further field's value: SOH, the tag and
// '='.
func appendTag(dst []byte, tag int) []byte {
	return append(strconv.AppendInt(append(dst, soh), int64(tag), 10), '=')
}

// appendCustomText appends a custom field with a text that is printable ASCII by
// its kind: a decimal, a base58 address or signature, a state's word.
func appendCustomText(dst []byte, tag int, value string) []byte {
	return append(appendTag(dst, tag), value...)
}

// appendCustomInt appends a custom field with a whole number.
func appendCustomInt(dst []byte, tag int, n int64) []byte {
	return strconv.AppendInt(appendTag(dst, tag), n, 10)
}

// appendCustomCount appends a custom field with a number of 64 bits without
// sign, such as atoms.
func appendCustomCount(dst []byte, tag int, n uint64) []byte {
	return strconv.AppendUint(appendTag(dst, tag), n, 10)
}

// withoutCustom returns fields, joined by SOH, without the custom ones, for a
// session that has not asked for them now but had when they were made. It returns
// fields itself where there are none; it does not change them. The first is kept
// whatever it is: a body begins with a value alone.
func withoutCustom(fields []byte) []byte {
	var kept []byte
	for at := 0; at < len(fields); {
		end := len(fields)
		if i := bytes.IndexByte(fields[at:], soh); i >= 0 {
			end = at + i + 1
		}
		switch tag, _ := splitField(fields[at:end]); {
		case at > 0 && tag >= tagCustomFields && tag <= tagFeedSeq:
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
	if fields[len(fields)-1] != soh { // a body ends without one
		kept = bytes.TrimSuffix(kept, []byte{soh})
	}
	return kept
}

// messageWithoutCustom is withoutCustom for a whole message. The CheckSum is left
// to who sends it.
func messageWithoutCustom(msg []byte) []byte {
	stripped := withoutCustom(msg)
	if len(stripped) == len(msg) {
		return msg
	}
	head := bytes.Index(stripped, []byte("\x0135=")) + 1
	first := bytes.IndexByte(stripped, soh) + 1
	out := append(make([]byte, 0, len(msg)), stripped[:first]...)
	out = strconv.AppendInt(append(out, "9="...), int64(len(stripped)-head-trailerSize), 10)
	return append(append(out, soh), stripped[head:]...)
}
