package store

import (
	"fmt"

	"blockdesk/internal/solana"
	"blockdesk/persist/kv"
)

// MaxCursors bounds the accounts that have a cursor.
const MaxCursors = 256

func cursorKey(account solana.Address) []byte { return append([]byte{keyCursor}, account[:]...) }

// Cursor returns the newest signature up to which an account's history has been
// read. Errors: [ErrDamaged], errors of the kv.Store.
func (s *Store) Cursor(account solana.Address) (sig solana.Signature, ok bool, err error) {
	value, ok, err := s.kv.Get(cursorKey(account))
	if err != nil || !ok {
		return sig, false, err
	}
	if len(value) != len(sig) {
		return sig, false, fmt.Errorf("%w: cursor of %s", ErrDamaged, solana.Base58(account))
	}
	return solana.Signature(value), true, nil
}

// Cursors returns the cursors of all accounts, at most MaxCursors. Errors:
// [ErrDamaged], errors of the kv.Store.
func (s *Store) Cursors() (map[solana.Address]solana.Signature, error) {
	cursors := map[solana.Address]solana.Signature{}
	err := kv.Each(s.kv, []byte{keyCursor}, []byte{keyCursor + 1}, func(key, value []byte) error {
		k, v := reader{buf: key[1:]}, reader{buf: value}
		account, sig := solana.Address(k.take(32)), solana.Signature(v.take(64))
		if !k.complete() || !v.complete() {
			return fmt.Errorf("%w: a cursor with a key of %d bytes and a value of %d", ErrDamaged, len(key), len(value))
		}
		cursors[account] = sig
		return nil
	})
	return cursors, err
}

// SetCursor records that an account's history has been read up to a signature. It does
// not sync: if a crash loses a cursor, work is only repeated, and if it survives, so
// does everything that was written before it. Errors: [ErrFull], errors of the kv.Store.
func (s *Store) SetCursor(account solana.Address, sig solana.Signature) error {
	s.cursorMu.Lock()
	defer s.cursorMu.Unlock()
	_, ok, err := s.kv.Get(cursorKey(account))
	if err != nil {
		return err
	}
	if !ok {
		if err := s.roomForCursor(); err != nil {
			return fmt.Errorf("cursor of %s: %w", solana.Base58(account), err)
		}
	}
	return s.write(func(set func(key, value []byte)) { set(cursorKey(account), sig[:]) }, false)
}

func (s *Store) roomForCursor() error {
	n := 0
	err := s.kv.Scan([]byte{keyCursor}, []byte{keyCursor + 1}, func(_, _ []byte) bool {
		n++
		return true
	})
	if err == nil && n >= MaxCursors {
		err = fmt.Errorf("%w: %d cursors", ErrFull, n)
	}
	return err
}
