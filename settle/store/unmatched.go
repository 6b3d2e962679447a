package store

import (
	"fmt"
	"unicode"
	"unicode/utf8"

	"blockdesk/internal/solana"
	"blockdesk/market"
	"blockdesk/persist/kv"
)

// Limits of unmatched payments.
const (
	// MaxUnmatched bounds the unresolved payments, because a stranger can make one for the
	// price of a transaction. At the limit the payment of the least value makes room, or is
	// not listed itself, and is counted: see [Store.Dropped].
	MaxUnmatched = 100_000
	// MaxWord bounds Reason and By, MaxNote bounds Note; bytes.
	MaxWord = 40
	MaxNote = 500
	// MaxUnmatchedPage bounds what one call returns.
	MaxUnmatchedPage = 1000
)

// UnmatchedPayment is a payment that the desk cannot record, or a transaction of its own
// that it cannot account for. An operator must look at it.
type UnmatchedPayment struct {
	// Signature names the transaction; not zero.
	Signature solana.Signature
	// Rail is the rail of the payment, 0 if no rail uses the asset; Amount is in its
	// atoms.
	Rail   market.Rail
	Amount uint64
	// Reason is a machine word: 1 to MaxWord bytes of printable ASCII.
	Reason string
	// Payer is zero if it is unknown.
	Payer solana.Address
	Slot  uint64
	// SeenAt is in Unix nanoseconds.
	SeenAt int64
	// Claim is the claim that the transaction names, 0 if none.
	Claim market.ClaimID

	// Resolved is when an operator resolved it, in Unix nanoseconds; 0 = not yet. By
	// is the operator, 1 to MaxWord bytes of printable ASCII; Note is what was done,
	// printable and at most MaxNote bytes. ResolveUnmatched sets them.
	Resolved int64
	By, Note string
}

func validWord(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return text != "" && len(text) <= MaxWord
}

func validNote(text string) bool {
	for _, r := range text {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return len(text) <= MaxNote && utf8.ValidString(text)
}

func (x *UnmatchedPayment) check() error {
	resolved := x.Resolved > 0 && validWord(x.By) && validNote(x.Note)
	open := x.Resolved == 0 && x.By == "" && x.Note == ""
	if x.Signature == (solana.Signature{}) || x.Rail != 0 && !x.Rail.Valid() || !validWord(x.Reason) || !resolved && !open {
		return fmt.Errorf("%w: payment %s: it needs a signature, a known rail, a reason, and all or none of a resolution", ErrInvalid, x.Signature)
	}
	return nil
}

func appendUnmatched(dst []byte, x *UnmatchedPayment) []byte {
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

// decodeUnmatched decodes an entry; key is the whole key. Errors: [ErrDamaged].
func decodeUnmatched(key, value []byte) (*UnmatchedPayment, error) {
	k, r := reader{buf: key}, reader{buf: value}
	prefix := k.u8()
	x := &UnmatchedPayment{Signature: solana.Signature(k.take(64))}
	r.version()
	x.Rail, x.Amount, x.Payer = market.Rail(r.u8()), r.u64(), solana.Address(r.take(32))
	x.Slot, x.SeenAt, x.Claim = r.u64(), r.i64(), market.ClaimID(r.u64())
	x.Reason = string(r.take(int(r.u8())))
	if prefix == keyResolved {
		x.Resolved = r.i64()
		x.By = string(r.take(int(r.u8())))
		x.Note = string(r.take(int(r.u16())))
	}
	if !k.complete() || !r.complete() || x.check() != nil || (prefix == keyResolved) != (x.Resolved != 0) {
		return nil, fmt.Errorf("%w: payment %s", ErrDamaged, x.Signature)
	}
	return x, nil
}

// rank returns the value of a payment in 10^-6 dollars, for the order in which payments make
// room: SOL counts 100 dollars, because only the order matters. Tokens of no rail, which
// have a payer and no amount, come first. A transaction without either is never dropped,
// because it is the desk's own or could not be read.
func (x *UnmatchedPayment) rank() int64 {
	switch x.Rail {
	case market.RailUSDC:
		return int64(min(x.Amount, maxRank-1))
	case market.RailSOL:
		return int64(min(x.Amount/10, maxRank-1))
	}
	if x.Payer != (solana.Address{}) {
		return 0
	}
	return maxRank
}

const maxRank = 1<<63 - 1

// ranked is an unresolved payment in the queue by value.
type ranked struct {
	signature solana.Signature
	index     int // in the queue
}

// AddUnmatched stores a payment for a person to look at, and returns when it is on
// disk. The same signature again, resolved or not, changes nothing. At MaxUnmatched the
// payment of the least value is dropped and counted, this one or another. Errors:
// [ErrInvalid]; [ErrFull] if none may be dropped; errors of the kv.Store.
func (s *Store) AddUnmatched(x *UnmatchedPayment) error {
	if err := x.check(); err != nil {
		return err
	}
	if x.Resolved != 0 {
		return fmt.Errorf("%w: payment %s is new and must not be resolved", ErrInvalid, x.Signature)
	}
	s.unmatchedMu.Lock()
	defer s.unmatchedMu.Unlock()
	_, ok, err := s.UnmatchedPayment(x.Signature)
	if err != nil || ok {
		return err
	}
	if len(s.unmatched) >= s.maxUnmatched {
		return s.replaceLeast(x)
	}
	err = s.write(func(set func(key, value []byte)) {
		set(signatureKey(keyUnmatched, x.Signature), appendUnmatched(nil, x))
	}, true)
	if err != nil {
		return fmt.Errorf("payment %s: %w", x.Signature, err)
	}
	s.enterUnmatched(x)
	return nil
}

// enterUnmatched enters a stored payment into the queue by value.
func (s *Store) enterUnmatched(x *UnmatchedPayment) {
	r := &ranked{signature: x.Signature}
	s.unmatched[x.Signature] = r
	s.byValue.Set(r, x.rank(), 0)
}

// replaceLeast stores a payment in the place of the one of the least value, or drops it if
// that is itself. The number of the dropped one is stored with it.
func (s *Store) replaceLeast(x *UnmatchedPayment) error {
	r, value, _ := s.byValue.First()
	if value >= maxRank {
		return fmt.Errorf("%w: %d unmatched payments are not resolved, and payment %s is not worth more than any of them: resolve some", ErrFull, len(s.unmatched), x.Signature)
	}
	least, stays := x, value >= x.rank()
	if !stays {
		found, ok, err := s.UnmatchedPayment(r.signature)
		if err != nil || !ok {
			return fmt.Errorf("%w: payment %s: %w", ErrDamaged, r.signature, err)
		}
		least = found
	}
	dropped := s.dropped
	dropped.Count++
	dropped.Atoms[least.Rail] += least.Amount
	err := s.kv.Commit(func(set func(key, value []byte), deleteRange func(lo, hi []byte)) {
		set([]byte{keyDropped}, dropped.append(nil))
		if !stays {
			open := signatureKey(keyUnmatched, least.Signature)
			deleteRange(open, kv.After(open))
			set(signatureKey(keyUnmatched, x.Signature), appendUnmatched(nil, x))
		}
	}, true)
	if err != nil {
		return fmt.Errorf("payment %s: %w", x.Signature, err)
	}
	if s.dropped = dropped; !stays {
		s.leaveUnmatched(least.Signature)
		s.enterUnmatched(x)
	}
	return nil
}

func (s *Store) leaveUnmatched(sig solana.Signature) {
	s.byValue.Remove(s.unmatched[sig])
	delete(s.unmatched, sig)
}

// Dropped are unmatched payments that were dropped at MaxUnmatched, since the store was
// made: their number, and their atoms by rail. A payment that is examined again after it
// was dropped counts again.
type Dropped struct {
	Count uint64
	Atoms [market.RailCount]uint64
}

func (d *Dropped) append(dst []byte) []byte {
	dst = le.AppendUint64(append(dst, valueVersion), d.Count)
	for _, n := range d.Atoms[1:] { // rail 0 is none
		dst = le.AppendUint64(dst, n)
	}
	return dst
}

// readDropped reads the counts of dropped payments.
func (s *Store) readDropped() error {
	value, ok, err := s.kv.Get([]byte{keyDropped})
	if err != nil || !ok {
		return err
	}
	r := reader{buf: value}
	r.version()
	s.dropped.Count = r.u64()
	for rail := range s.dropped.Atoms[1:] {
		s.dropped.Atoms[1+rail] = r.u64()
	}
	if !r.complete() {
		return fmt.Errorf("%w: the number of dropped payments", ErrDamaged)
	}
	return nil
}

// Dropped returns what was dropped.
func (s *Store) Dropped() Dropped {
	s.unmatchedMu.Lock()
	defer s.unmatchedMu.Unlock()
	return s.dropped
}

// UnmatchedPayment returns the payment with a signature, resolved or not. Errors:
// [ErrDamaged], errors of the kv.Store.
func (s *Store) UnmatchedPayment(sig solana.Signature) (*UnmatchedPayment, bool, error) {
	for _, prefix := range []byte{keyUnmatched, keyResolved} {
		key := signatureKey(prefix, sig)
		value, ok, err := s.kv.Get(key)
		if err != nil {
			return nil, false, err
		}
		if ok {
			x, err := decodeUnmatched(key, value)
			return x, err == nil, err
		}
	}
	return nil, false, nil
}

// UnmatchedPayments lists the unresolved payments after a signature, zero for the
// beginning, in the order of their signatures; at most limit, and MaxUnmatchedPage.
// Errors: [ErrDamaged], errors of the kv.Store.
func (s *Store) UnmatchedPayments(after solana.Signature, limit int) ([]UnmatchedPayment, error) {
	var list []UnmatchedPayment
	limit = min(limit, MaxUnmatchedPage)
	if limit <= 0 {
		return nil, nil
	}
	err := kv.Each(s.kv, kv.After(signatureKey(keyUnmatched, after)), []byte{keyUnmatched + 1}, func(key, value []byte) error {
		x, err := decodeUnmatched(key, value)
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

// ResolveUnmatched records who resolved a payment, how and when, and returns when that
// is on disk. Errors: [ErrNotFound], [ErrResolved], [ErrInvalid], errors of the kv.Store.
func (s *Store) ResolveUnmatched(sig solana.Signature, by, note string, at int64) error {
	s.unmatchedMu.Lock()
	defer s.unmatchedMu.Unlock()
	x, ok, err := s.UnmatchedPayment(sig)
	switch {
	case err != nil:
		return err
	case !ok:
		return fmt.Errorf("%w: payment %s", ErrNotFound, sig)
	case x.Resolved != 0:
		return fmt.Errorf("%w: payment %s", ErrResolved, sig)
	}
	x.Resolved, x.By, x.Note = at, by, note
	if err := x.check(); err != nil || at <= 0 {
		return fmt.Errorf("%w: payment %s", ErrInvalid, sig)
	}
	open := signatureKey(keyUnmatched, sig)
	err = s.kv.Commit(func(set func(key, value []byte), deleteRange func(lo, hi []byte)) {
		deleteRange(open, kv.After(open))
		set(signatureKey(keyResolved, sig), appendUnmatched(nil, x))
	}, true)
	if err != nil {
		return fmt.Errorf("payment %s: %w", sig, err)
	}
	s.leaveUnmatched(sig)
	return nil
}

// UnmatchedCount returns the number of unresolved payments.
func (s *Store) UnmatchedCount() int {
	s.unmatchedMu.Lock()
	defer s.unmatchedMu.Unlock()
	return len(s.unmatched)
}
