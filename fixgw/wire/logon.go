package wire

import "fmt"

// Logon is a Logon (35=A). Texts alias the message.
type Logon struct {
	Sender, target     []byte
	Username, Password []byte
	// Signature is RawData (96); nil = the logon is by password.
	Signature           []byte
	SeqNum, SendingTime []byte
	HeartBtInt          int
	Flags               LogonFlags
}

// The texts of refused Logons begin with these codes.
const (
	CodeLogonRefused = "LOGON_REFUSED"
	CodeInvalidField = "INVALID_FIELD"
	CodeMissingField = "MISSING_FIELD"
)

// Limits of HeartBtInt (108), in seconds.
const (
	MinHeartBtInt = 10
	MaxHeartBtInt = 60
)

// ParseLogon reads a Logon; minHeartBt is the least HeartBtInt, in seconds. The
// error's text is for the client.
func ParseLogon(frame []byte, ourCompID string, minHeartBt int) (l Logon, err error) {
	var beginString, msgType, heartBtInt, encrypt, reset, rawLength []byte
	var asked flagValues
	readFields(frame, map[int]*[]byte{
		8: &beginString, 34: &l.SeqNum, 35: &msgType, 49: &l.Sender, 52: &l.SendingTime, 56: &l.target,
		95: &rawLength, 96: &l.Signature, 98: &encrypt, 108: &heartBtInt, 141: &reset,
		553: &l.Username, 554: &l.Password,
		TagCustomFields: &asked.custom, TagCancelOnDisconnect: &asked.cancel, TagDropCopy: &asked.dropCopy,
	})
	switch {
	case string(msgType) != "A":
		return l, fmt.Errorf("%s: the first message must be a Logon, not MsgType (35) %.4q", CodeLogonRefused, msgType)
	case string(beginString) != "FIX.4.4":
		return l, fmt.Errorf("%s: BeginString (8) %.20q: must be FIX.4.4", CodeInvalidField, beginString)
	case string(l.target) != ourCompID:
		return l, fmt.Errorf("%s: TargetCompID (56) %.40q: must be %s", CodeInvalidField, l.target, ourCompID)
	case string(encrypt) != "0":
		return l, fmt.Errorf("%s: EncryptMethod (98) %.20q: must be 0", CodeInvalidField, encrypt)
	}
	if l.HeartBtInt, err = parseHeartBtInt(heartBtInt, minHeartBt); err != nil {
		return l, err
	}
	if _, err = parseYesNo(141, reset, false); err != nil {
		return l, err
	}
	if l.Signature != nil {
		if err := checkRawData(rawLength, l.Signature); err != nil {
			return l, err
		}
	}
	l.Flags, err = asked.parse()
	return l, err
}

// flagValues are the values of the Logon's fields for LogonFlags; nil = absent.
type flagValues struct{ custom, cancel, dropCopy []byte }

func (w *flagValues) parse() (flags LogonFlags, err error) {
	for _, f := range [...]struct {
		tag    int
		value  []byte
		absent bool
		flag   LogonFlags
	}{
		{TagCustomFields, w.custom, false, FlagCustomFields},
		{TagCancelOnDisconnect, w.cancel, true, FlagCancelOnDisconnect},
		{TagDropCopy, w.dropCopy, false, FlagDropCopy},
	} {
		yes, err := parseYesNo(f.tag, f.value, f.absent)
		if err != nil {
			return 0, err
		}
		if yes {
			flags |= f.flag
		}
	}
	return flags, nil
}

func parseHeartBtInt(value []byte, least int) (int, error) {
	n := 0
	for _, c := range value {
		if c < '0' || c > '9' || n > MaxHeartBtInt {
			n = -1
			break
		}
		n = 10*n + int(c-'0')
	}
	if n < least || n > MaxHeartBtInt {
		return 0, fmt.Errorf("%s: HeartBtInt (108) %.20q: must be %d to %d", CodeInvalidField, value, least, MaxHeartBtInt)
	}
	return n, nil
}

func parseYesNo(tag int, value []byte, absent bool) (bool, error) {
	switch {
	case value == nil:
		return absent, nil
	case string(value) == "Y":
		return true, nil
	case string(value) == "N":
		return false, nil
	}
	return false, fmt.Errorf("%s: tag %d %.20q: must be Y or N", CodeInvalidField, tag, value)
}

// LogonFlags are the options of a Logon. The message store keeps those of the last one, so
// that reports made while the client is logged out, and after a restart, follow them. The
// bits are stored: do not change them.
type LogonFlags uint8

// The LogonFlags.
const (
	FlagCancelOnDisconnect LogonFlags = 1 << 0 // cancel on disconnect (8013)
	FlagDropCopy           LogonFlags = 1 << 1 // copies of the participant's fills (9406)
	FlagCustomFields       LogonFlags = 1 << 2 // custom fields in our messages (5600)
)

// signatureText is the length of a signature in base64.
const signatureText = 88

// checkRawData checks the form of a Logon's RawData (96); length is RawDataLength (95),
// nil = missing.
func checkRawData(length, data []byte) error {
	if string(length) != fmt.Sprint(len(data)) {
		return fmt.Errorf("%w: RawDataLength (95) %.20q: must be the length of RawData (96), %d", ErrField, length, len(data))
	}
	if len(data) != signatureText {
		return fmt.Errorf("%w: RawData (96): must be a signature, %d bytes of base64", ErrField, signatureText)
	}
	return nil
}

// SignedText returns the text that a Logon's signature signs.
func (l *Logon) SignedText() []byte {
	text := append([]byte("A"), SOH)
	text = append(append(text, l.Sender...), SOH)
	text = append(append(text, l.target...), SOH)
	text = append(append(text, l.SeqNum...), SOH)
	return append(text, l.SendingTime...)
}
