package fixgw

import (
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/gagliardetto/solana-go/base58"

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

var errKeySyntax = errors.New("must be an Ed25519 public key, 32 bytes in base58 or base64")

// parseKey reads a public key: base64 with its padding, or base58. A key that
// everybody can sign for is refused.
func parseKey(text string) (key [32]byte, err error) {
	var raw []byte
	if len(text) > len(key)*2 {
		return key, errKeySyntax
	}
	if len(text) > 0 && text[len(text)-1] == '=' {
		raw, err = base64.StdEncoding.Strict().DecodeString(text)
	} else {
		raw, err = base58.Decode(text)
	}
	if err != nil || len(raw) != len(key) {
		return key, errKeySyntax
	}
	if copy(key[:], raw); !eddsa.ValidKey(key) {
		return key, errors.New("is no key that a signature proves anything about")
	}
	return key, nil
}

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
