package fixgw

import (
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"blockdesk/fixgw/wire"
	"blockdesk/internal/solana/eddsa"
)

// A participant that has a key may log on by a signature instead of a password.
// RawData (96) is the base64 of its Ed25519 signature over the values of
// MsgType (35), SenderCompID (49), TargetCompID (56), MsgSeqNum (34) and
// SendingTime (52) as they stand in the Logon, joined by SOH; RawDataLength (95)
// is the length of that text.
//
// Who overhears a signed Logon cannot use it: SendingTime must be close to our
// clock and later than that of the session's last signed Logon, which is kept
// over restarts. It counts from the moment that the signature was right, whatever
// became of the Logon.

// MaxLogonSkew is how far SendingTime (52) of a signed Logon may be from our
// clock.
const MaxLogonSkew = 30 * time.Second

// errBadSignature is the one answer to a wrong name, CompID or signature, and
// where there is no key to check it with.
var errBadSignature = errors.New(wire.CodeLogonRefused + ": username, signature or CompID is wrong")

// proveSignature reports what is wrong with a signed Logon; s is nil where its
// CompID is nobody's. Only who has the key learns more than that it is wrong.
func (v *server) proveSignature(s *session, l *wire.Logon) error {
	var key *[32]byte
	if s != nil {
		key = s.terms.Load().key
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(string(l.Signature))
	switch {
	case err != nil || len(raw) != 64 || key == nil:
		return errBadSignature
	case l.Username != nil && string(l.Username) != s.participant.Name:
		return errBadSignature
	case !eddsa.Verify(*key, l.SignedText(), [64]byte(raw)):
		return errBadSignature
	}
	at, err := time.Parse("20060102-15:04:05", string(l.SendingTime))
	if err != nil {
		return fmt.Errorf("%w: SendingTime (52) %.30q is no UTCTimestamp", wire.ErrField, l.SendingTime)
	}
	if now := v.options.Now(); at.Sub(now).Abs() > MaxLogonSkew {
		return fmt.Errorf("%s: SendingTime (52) is more than %s from our clock, which says %s",
			wire.CodeLogonRefused, MaxLogonSkew, wire.AppendTime(nil, now.UnixNano()))
	}
	later, err := s.messages.signedLogon(at.UnixNano())
	if err != nil {
		v.fail(err)
		return errors.New(wire.CodeLogonRefused + ": out of service")
	}
	if !later {
		return fmt.Errorf("%s: SendingTime (52) is not later than that of the last signed Logon", wire.CodeLogonRefused)
	}
	return nil
}
