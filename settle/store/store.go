package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"blockdesk/internal/schedule"
	"blockdesk/internal/solana"
	"blockdesk/market"
	"blockdesk/persist/kv"
)

// Errors, wrapped with the claim or the signature that they concern.
var (
	// ErrLayout means a map of another layout, or one that is not ours.
	ErrLayout = errors.New("settle store: its layout is unknown to this program")
	// ErrDamaged means an entry that this package cannot have written.
	ErrDamaged = errors.New("settle store: an entry is damaged")
	// ErrInvalid means a value whose fields or texts are out of their bounds.
	ErrInvalid = errors.New("settle store: the value to store is not valid")
	// ErrConflict means that a different transaction is stored already.
	ErrConflict = errors.New("settle store: it conflicts with what is stored")
	// ErrFull means that a limit is reached.
	ErrFull = errors.New("settle store: a list is full")
	// ErrNotFound means that no unmatched payment has the signature.
	ErrNotFound = errors.New("settle store: not found")
	// ErrResolved means a payment that was resolved before.
	ErrResolved = errors.New("settle store: resolved already")
)

// The first byte of every key. Frozen.
const (
	keyLayout      byte = 0x01
	keyBuild       byte = 0x02
	keyTransaction byte = 0x03
	keySignature   byte = 0x04
	keyUnmatched   byte = 0x05
	keyResolved    byte = 0x06
	keyCursor      byte = 0x07
	keyBuildByAge  byte = 0x08
	keyRefund      byte = 0x09
	keyRefundOf    byte = 0x0a
	keyOpenRefund  byte = 0x0b
	keyOrder       byte = 0x0c
	keyDropped     byte = 0x0d
	keyEnd         byte = 0x20 // above all of this package

	layoutVersion = 1
	valueVersion  = 1
)

// stripes is the number of claim locks. A power of two.
const stripes = 64

// Store is settlement's part of a durable map.
type Store struct {
	kv kv.Store
	// claims are held while a claim's entry is read and written.
	claims [stripes]sync.Mutex

	// unmatchedMu is held while a payment is added or resolved. unmatched are the
	// unresolved ones, which byValue orders by their value.
	unmatchedMu  sync.Mutex
	maxUnmatched int // MaxUnmatched
	unmatched    map[solana.Signature]*ranked
	byValue      schedule.Queue[*ranked]
	dropped      Dropped

	cursorMu sync.Mutex

	Refunds *Refunds
}

// Open checks the layout, and writes it into an empty map. Errors: [ErrLayout],
// errors of the kv.Store.
func Open(store kv.Store) (*Store, error) {
	named := kv.Named(store, "settle store")
	s := &Store{
		kv: named, Refunds: &Refunds{kv: named}, maxUnmatched: MaxUnmatched, unmatched: map[solana.Signature]*ranked{},
		byValue: schedule.New(func(r *ranked) *int { return &r.index }),
	}
	found, ok, err := s.kv.Get([]byte{keyLayout})
	switch {
	case err != nil:
	case !ok:
		err = s.create()
	case !bytes.Equal(found, []byte{layoutVersion}):
		err = fmt.Errorf("%w: version %x, this program reads version %d", ErrLayout, found[:min(len(found), 8)], layoutVersion)
	}
	if err != nil {
		return nil, err
	}
	if err := s.readDropped(); err != nil {
		return nil, err
	}
	return s, kv.Each(s.kv, []byte{keyUnmatched}, []byte{keyUnmatched + 1}, func(key, value []byte) error {
		x, err := decodeUnmatched(key, value)
		if err == nil {
			s.enterUnmatched(x)
		}
		return err
	})
}

// create writes the layout version, and refuses a map that has entries but no
// version.
func (s *Store) create() error {
	err := kv.Each(s.kv, []byte{keyLayout}, []byte{keyEnd}, func(_, _ []byte) error {
		return fmt.Errorf("%w: there are entries, but no version", ErrLayout)
	})
	if err != nil {
		return err
	}
	return s.write(func(set func(key, value []byte)) { set([]byte{keyLayout}, []byte{layoutVersion}) }, true)
}

func (s *Store) write(fill func(set func(key, value []byte)), sync bool) error {
	return s.kv.Commit(func(set func(key, value []byte), _ func(lo, hi []byte)) { fill(set) }, sync)
}

// lock takes the claim's lock and returns the function that releases it. Claims have
// random numbers.
func (s *Store) lock(id market.ClaimID) func() {
	m := &s.claims[id%stripes]
	m.Lock()
	return m.Unlock
}

func claimKey(prefix byte, id market.ClaimID) []byte {
	return binary.BigEndian.AppendUint64([]byte{prefix}, uint64(id))
}

func signatureKey(prefix byte, sig solana.Signature) []byte {
	return append([]byte{prefix}, sig[:]...)
}

func claimText(id market.ClaimID) string { return string(market.AppendClaimID(nil, id)) }
