package wire

import (
	"bytes"
	"strconv"
)

// dataTag returns the data field that a length field belongs to, or 0.
func dataTag(length int) int {
	switch length {
	case 90, 95, 212, 348, 350, 352, 354, 356, 358, 360, 362, 364, 445, 618, 621:
		return length + 1
	case 93: // SignatureLength: Signature (89)
		return 89
	}
	return 0
}

// MaskData replaces each SOH in the data fields of a message that ScanFrame has accepted by
// a space, and corrects the CheckSum. A data field is read by its length, so it may have
// any byte; quickfix and our own readers end every field at the first SOH. The gateway
// uses no data field but a Logon's RawData, which has none. It leaves a data field alone
// whose length field is wrong.
func MaskData(frame []byte) {
	masked := false
	trailer := len(frame) - trailerSize
	for at := 0; at < trailer; {
		end := at + bytes.IndexByte(frame[at:], SOH)
		tag, value := SplitField(frame[at:end])
		at = end + 1
		data := dataTag(tag)
		if data == 0 {
			continue
		}
		size, err := strconv.Atoi(string(value[:min(len(value), maxLengthText)]))
		name := strconv.Itoa(data) + "="
		start := at + len(name)
		if err != nil || size < 0 || start+size >= trailer || !bytes.HasPrefix(frame[at:], []byte(name)) || frame[start+size] != SOH {
			continue
		}
		for i := start; i < start+size; i++ {
			if frame[i] == SOH {
				frame[i], masked = ' ', true
			}
		}
		at = start + size + 1
	}
	if !masked {
		return
	}
	sum := byte(0)
	for _, b := range frame[:trailer] {
		sum += b
	}
	digits := frame[trailer+len("10="):]
	digits[0], digits[1], digits[2] = '0'+sum/100, '0'+sum/10%10, '0'+sum%10
}

// HasCode reports whether text begins with a code, as in "INVALID_FIELD: …".
func HasCode(text []byte) bool {
	code, _, ok := bytes.Cut(text, []byte(": "))
	for _, c := range code {
		if c != '_' && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return ok && len(code) > 1
}
