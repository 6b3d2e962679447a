package store

import (
	"fmt"
	"unicode"
	"unicode/utf8"

	"blockdesk/internal/solana"
	"blockdesk/market"
	"blockdesk/persist/kv"
)

// Limits of strays.
const (
	// MaxStrays bounds those that nobody has resolved: a stranger makes one for
	// the price of a transaction.
	MaxStrays = 100_000
	// MaxWord bounds Reason and By, MaxNote bounds Note; bytes.
	MaxWord = 40
	MaxNote = 500
	// MaxStraysAPage bounds what one call returns.
	MaxStraysAPage = 1000
)

// Stray is money that came and that the desk cannot book. A person must look.
type Stray struct {
	// Signature names the transaction; not zero.
	Signature solana.Signature
	// Rail is what came, 0 if it is neither; Amount is in its atoms.
	Rail   market.Rail
	Amount uint64
	// Reason is a machine's word: 1 to MaxWord bytes of printable ASCII.
	Reason string
	// Payer is zero if it is not known.
	Payer solana.Address
	Slot  uint64
	// SeenAt is in nanoseconds of Unix time.
	SeenAt int64
	// Claim is the one that the transaction names, 0 if none.
	Claim market.ClaimID

	// Resolved is when, in nanoseconds of Unix time; 0 means not yet. By is who,
	// 1 to MaxWord bytes of printable ASCII; Note is what was done, printable and
	// at most MaxNote bytes. ResolveStray sets them.
	Resolved int64
	By, Note string
}

func word(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return text != "" && len(text) <= MaxWord
}

func note(text string) bool {
	for _, r := range text {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return len(text) <= MaxNote && utf8.ValidString(text)
}

func (x *Stray) check() error {
	resolved := x.Resolved > 0 && word(x.By) && note(x.Note)
	open := x.Resolved == 0 && x.By == "" && x.Note == ""
	if x.Signature == (solana.Signature{}) || x.Rail != 0 && !x.Rail.Valid() || !word(x.Reason) || !resolved && !open {
		return fmt.Errorf("%w: stray %s", ErrInvalid, x.Signature)
	}
	return nil
}

func appendStray(dst []byte, x *Stray) []byte {
	dst = append(dst, valueVersion, uint8(x.Rail))
	dst = le.AppendUint64(dst, x.Amount)
	dst = append(dst, x.Payer[:]...)
	dst = le.AppendUint64(dst, x.Slot)
	dst = le.AppendUint64(dst, uint64(x.SeenAt))
	dst = le.AppendUint64(dst, uint64(x.Claim))
	dst = append(append(dst, uint8(len(x.Reason))), x.Reason...)
	if x.Resolved == 0 {
		return dst
	}
	dst = le.AppendUint64(dst, uint64(x.Resolved))
	dst = append(append(dst, uint8(len(x.By))), x.By...)
	return append(le.AppendUint16(dst, uint16(len(x.Note))), x.Note...)
}

// decodeStray reads an entry: key is its whole key. Errors: [ErrDamaged].
func decodeStray(key, value []byte) (*Stray, error) {
	k, r := reader{buf: key}, reader{buf: value}
	prefix := k.u8()
	x := &Stray{Signature: solana.Signature(k.take(64))}
	r.version()
	x.Rail, x.Amount, x.Payer = market.Rail(r.u8()), r.u64(), solana.Address(r.take(32))
	x.Slot, x.SeenAt, x.Claim = r.u64(), r.i64(), market.ClaimID(r.u64())
	x.Reason = string(r.take(int(r.u8())))
	if prefix == keyResolved {
		x.Resolved = r.i64()
		x.By = string(r.take(int(r.u8())))
		x.Note = string(r.take(int(r.u16())))
	}
	if !k.whole() || !r.whole() || x.check() != nil || (prefix == keyResolved) != (x.Resolved != 0) {
		return nil, fmt.Errorf("%w: stray %s", ErrDamaged, x.Signature)
	}
	return x, nil
}

// AddStray notes money for a person to look at, and returns when that is on
// disk. The same signature again, resolved or not, changes nothing. Errors:
// [ErrInvalid], [ErrFull], those of the map.
func (s *Store) AddStray(x *Stray) error {
	if err := x.check(); err != nil {
		return err
	}
	if x.Resolved != 0 {
		return fmt.Errorf("%w: stray %s is resolved", ErrInvalid, x.Signature)
	}
	s.strayMu.Lock()
	defer s.strayMu.Unlock()
	_, ok, err := s.Stray(x.Signature)
	if err != nil || ok {
		return err
	}
	if s.strays >= MaxStrays {
		return fmt.Errorf("%w: stray %s: %d are unresolved", ErrFull, x.Signature, s.strays)
	}
	err = s.write(func(set func(key, value []byte)) {
		set(signatureKey(keyStray, x.Signature), appendStray(nil, x))
	}, true)
	if err != nil {
		return fmt.Errorf("stray %s: %w", x.Signature, err)
	}
	s.strays++
	return nil
}

// Stray returns one, resolved or not. Errors: [ErrDamaged], those of the map.
func (s *Store) Stray(sig solana.Signature) (*Stray, bool, error) {
	for _, prefix := range []byte{keyStray, keyResolved} {
		key := signatureKey(prefix, sig)
		value, ok, err := s.kv.Get(key)
		if err != nil {
			return nil, false, err
		}
		if ok {
			x, err := decodeStray(key, value)
			return x, err == nil, err
		}
	}
	return nil, false, nil
}

// Strays lists those that nobody has resolved, by signature, from the first one
// after that one, which is zero for the beginning; at most limit, and
// MaxStraysAPage. Errors: [ErrDamaged], those of the map.
func (s *Store) Strays(from solana.Signature, limit int) ([]Stray, error) {
	var list []Stray
	limit = min(limit, MaxStraysAPage)
	if limit <= 0 {
		return nil, nil
	}
	err := kv.Each(s.kv, kv.After(signatureKey(keyStray, from)), []byte{keyStray + 1}, func(key, value []byte) error {
		x, err := decodeStray(key, value)
		if err != nil {
			return err
		}
		if list = append(list, *x); len(list) == limit {
			return kv.ErrStop
		}
		return nil
	})
	return list, err
}

// ResolveStray notes who settled a stray, how and when, and returns when that is
// on disk. Errors: [ErrUnknown], [ErrResolved], [ErrInvalid], those of the map.
func (s *Store) ResolveStray(sig solana.Signature, by, note string, at int64) error {
	s.strayMu.Lock()
	defer s.strayMu.Unlock()
	x, ok, err := s.Stray(sig)
	switch {
	case err != nil:
		return err
	case !ok:
		return fmt.Errorf("%w: stray %s", ErrUnknown, sig)
	case x.Resolved != 0:
		return fmt.Errorf("%w: stray %s", ErrResolved, sig)
	}
	x.Resolved, x.By, x.Note = at, by, note
	if err := x.check(); err != nil || at <= 0 {
		return fmt.Errorf("%w: stray %s", ErrInvalid, sig)
	}
	open := signatureKey(keyStray, sig)
	err = s.kv.Commit(func(set func(key, value []byte), deleteRange func(lo, hi []byte)) {
		deleteRange(open, kv.After(open))
		set(signatureKey(keyResolved, sig), appendStray(nil, x))
	}, true)
	if err != nil {
		return fmt.Errorf("stray %s: %w", sig, err)
	}
	s.strays--
	return nil
}

// StrayCount returns how many nobody has resolved.
func (s *Store) StrayCount() int {
	s.strayMu.Lock()
	defer s.strayMu.Unlock()
	return s.strays
}
