package store

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/tx"
	"blockdesk/market"
	"blockdesk/persist/kv"
)

// Limits of builds.
const (
	// MaxRaw bounds a transaction's bytes: ours are version 0.
	MaxRaw = tx.MaxSize
	// BuildRetention is how long an unsigned build is kept.
	BuildRetention = 30 * 24 * time.Hour
	// MaxPrunedACall bounds the builds that one Prune deletes.
	MaxPrunedACall = 1024
)

// Build is the unsigned transaction of a claim, as it was handed out.
type Build struct {
	// Claim is not 0.
	Claim market.ClaimID
	Way   rfq.SettlementMode
	// Taker is the wallet that must sign; not zero.
	Taker solana.Address
	// Raw is the whole transaction, its signature slots zero. 1 to MaxRaw bytes.
	Raw []byte
	// LastValid is the height of the last block in which it can land.
	LastValid uint64
	// BuiltAt is in Unix nanoseconds, above 0.
	BuiltAt int64
}

func (b *Build) check() error {
	switch {
	case b.Claim == 0, b.Way != rfq.Modular && b.Way != rfq.Atomic, b.Taker == (solana.Address{}), b.BuiltAt <= 0:
		return fmt.Errorf("%w: build of claim %s: it needs a claim, a mode, a taker and a time", ErrInvalid, claimText(b.Claim))
	case len(b.Raw) == 0 || len(b.Raw) > MaxRaw:
		return fmt.Errorf("%w: build of claim %s: %d bytes: must be 1 to %d", ErrInvalid, claimText(b.Claim), len(b.Raw), MaxRaw)
	}
	return nil
}

func appendBuild(dst []byte, b *Build) []byte {
	dst = append(dst, valueVersion, uint8(b.Way))
	dst = append(dst, b.Taker[:]...)
	dst = le.AppendUint64(dst, b.LastValid)
	dst = le.AppendUint64(dst, uint64(b.BuiltAt))
	return append(dst, b.Raw...)
}

// decodeBuild decodes a claim's value. Raw aliases it. Errors: [ErrDamaged].
func decodeBuild(id market.ClaimID, value []byte) (*Build, error) {
	r := reader{buf: value}
	r.version()
	b := &Build{Claim: id, Way: rfq.SettlementMode(r.u8()), Taker: solana.Address(r.take(32)), LastValid: r.u64(), BuiltAt: r.i64(), Raw: r.rest()}
	if !r.complete() || b.check() != nil {
		return nil, fmt.Errorf("%w: build of claim %s", ErrDamaged, claimText(id))
	}
	return b, nil
}

// PutBuild stores the first build of a claim, and returns the one that is stored:
// every caller gets the same. With sync it is on disk then; without, a crash may lose
// it and everything written after it. The result is read-only. Errors: [ErrInvalid],
// [ErrDamaged], errors of the kv.Store.
func (s *Store) PutBuild(b *Build, sync bool) (*Build, error) {
	if err := b.check(); err != nil {
		return nil, err
	}
	defer s.lock(b.Claim)()
	stored, ok, err := s.Build(b.Claim)
	switch {
	case err != nil:
		return nil, err
	case ok && !sync:
		return stored, nil
	case !ok:
		copied := *b
		copied.Raw = slices.Clone(b.Raw)
		stored = &copied
	}
	// A stored build may not be on disk yet, so it is written again.
	err = s.write(func(set func(key, value []byte)) {
		set(claimKey(keyBuild, stored.Claim), appendBuild(nil, stored))
		if !ok {
			set(ageKey(stored), nil)
		}
	}, sync)
	if err != nil {
		return nil, fmt.Errorf("build of claim %s: %w", claimText(b.Claim), err)
	}
	return stored, nil
}

// ReplaceBuild stores a newer transaction in the place of a claim's build. It keeps the
// first BuiltAt, from which the retention counts. Errors: [ErrInvalid] if the claim has no
// build of the same mode and taker; [ErrDamaged]; errors of the kv.Store.
func (s *Store) ReplaceBuild(b *Build, sync bool) error {
	if err := b.check(); err != nil {
		return err
	}
	defer s.lock(b.Claim)()
	stored, ok, err := s.Build(b.Claim)
	switch {
	case err != nil:
		return err
	case !ok || stored.Way != b.Way || stored.Taker != b.Taker:
		return fmt.Errorf("%w: claim %s has no build of this mode and taker to replace", ErrInvalid, claimText(b.Claim))
	}
	newer := *b
	newer.BuiltAt = stored.BuiltAt
	err = s.write(func(set func(key, value []byte)) { set(claimKey(keyBuild, newer.Claim), appendBuild(nil, &newer)) }, sync)
	if err != nil {
		return fmt.Errorf("build of claim %s: %w", claimText(b.Claim), err)
	}
	return nil
}

// Build returns a claim's build; ok is false if there is none, or it was pruned.
// Errors: [ErrDamaged], errors of the kv.Store.
func (s *Store) Build(id market.ClaimID) (b *Build, ok bool, err error) {
	value, ok, err := s.kv.Get(claimKey(keyBuild, id))
	if err != nil || !ok {
		return nil, false, err
	}
	b, err = decodeBuild(id, value)
	return b, err == nil, err
}

func ageKey(b *Build) []byte {
	key := binary.BigEndian.AppendUint64([]byte{keyBuildByAge}, uint64(b.BuiltAt))
	return binary.BigEndian.AppendUint64(key, uint64(b.Claim))
}

// Prune deletes unsigned builds that are older than BuildRetention at now, in Unix
// nanoseconds: the oldest first, at most MaxPrunedACall. It returns their number; call
// it again while that is MaxPrunedACall.
func (s *Store) Prune(now int64) (int, error) {
	if now <= int64(BuildRetention) {
		return 0, nil
	}
	var old [][]byte
	hi := binary.BigEndian.AppendUint64([]byte{keyBuildByAge}, uint64(now-int64(BuildRetention)))
	err := s.kv.Scan([]byte{keyBuildByAge}, hi, func(key, _ []byte) bool {
		old = append(old, slices.Clone(key))
		return len(old) < MaxPrunedACall
	})
	if err != nil {
		return 0, err
	}
	for i, key := range old {
		if err := s.drop(key); err != nil {
			return i, err
		}
	}
	return len(old), nil
}

// drop deletes one build, unless it has been signed meanwhile.
func (s *Store) drop(age []byte) error {
	if len(age) != 17 {
		return fmt.Errorf("%w: the age index of a build has %d bytes", ErrDamaged, len(age))
	}
	id := market.ClaimID(binary.BigEndian.Uint64(age[9:]))
	defer s.lock(id)()
	if _, ok, err := s.kv.Get(age); err != nil || !ok {
		return err
	}
	build := claimKey(keyBuild, id)
	err := s.kv.Commit(func(_ func(key, value []byte), deleteRange func(lo, hi []byte)) {
		deleteRange(build, kv.After(build))
		deleteRange(age, kv.After(age))
	}, false)
	if err != nil {
		return fmt.Errorf("build of claim %s: %w", claimText(id), err)
	}
	return nil
}
