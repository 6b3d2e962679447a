package store

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/tx"
	"blockdesk/market"
	"blockdesk/persist/kv"
	"blockdesk/settle/cosign"
)

// MaxTransactions bounds the signed transactions of one claim: a cosigned one, or a
// delivery and those that came after it expired.
const MaxTransactions = 64

// Kept is a signed transaction that is on disk. The zero value is none.
type Transaction struct {
	claim     market.ClaimID
	kind      cosign.Kind
	ordinal   uint8
	hash      solana.Hash
	signature solana.Signature
	raw       []byte
	lastValid uint64
	signedAt  int64
}

// Claim returns whose transaction it is.
func (k Transaction) Claim() market.ClaimID { return k.claim }

// Kind returns what the desk signed.
func (k Transaction) Kind() cosign.Kind { return k.kind }

// Hash returns the SHA-256 of the message.
func (k Transaction) Hash() solana.Hash { return k.hash }

// Signature returns the first one, which names the transaction.
func (k Transaction) Signature() solana.Signature { return k.signature }

// Bytes returns the exact bytes to send. Not to be written to.
func (k Transaction) Bytes() []byte { return k.raw }

// LastValid returns the height of the last block that it can be in.
func (k Transaction) LastValid() uint64 { return k.lastValid }

// SignedAt returns when it was kept first, in nanoseconds of Unix time.
func (k Transaction) SignedAt() int64 { return k.signedAt }

func transactionKey(id market.ClaimID, hash solana.Hash) []byte {
	return append(claimKey(keyTransaction, id), hash[:]...)
}

func appendTransaction(dst []byte, k *Transaction) []byte {
	dst = append(dst, valueVersion, uint8(k.kind), k.ordinal)
	dst = le.AppendUint64(dst, k.lastValid)
	dst = le.AppendUint64(dst, uint64(k.signedAt))
	return append(dst, k.raw...)
}

// decodeTransaction reads an entry: key is its whole key. The bytes are of the message
// whose hash is in the key, and their first signature slot is filled. It copies
// nothing. Errors: [ErrDamaged].
func decodeTransaction(key, value []byte) (Transaction, error) {
	kr, r := reader{buf: key}, reader{buf: value}
	kr.take(1)
	k := Transaction{claim: market.ClaimID(kr.be64()), hash: solana.Hash(kr.take(32))}
	r.version()
	k.kind, k.ordinal, k.lastValid, k.signedAt, k.raw = cosign.Kind(r.u8()), r.u8(), r.u64(), r.i64(), r.rest()
	if !kr.complete() || !r.complete() || k.read() != nil {
		return Transaction{}, fmt.Errorf("%w: transaction %s of claim %s", ErrDamaged, k.hash, claimText(k.claim))
	}
	return k, nil
}

// read checks the fields, and takes the name of the transaction from its bytes.
func (k *Transaction) read() error {
	t, err := tx.Decode(k.raw)
	switch {
	case err != nil:
		return err
	case k.claim == 0, k.kind != cosign.Cosign && k.kind != cosign.Deliver, k.ordinal == 0 || k.ordinal > MaxTransactions, k.lastValid == 0,
		k.signedAt <= 0, len(k.raw) > MaxRaw, t.Signatures[0] == (solana.Signature{}), tx.MessageHash(t.Signed) != k.hash:
		return ErrInvalid
	}
	k.signature = t.Signatures[0]
	return nil
}

// Keep keeps a signed transaction, and returns when it is on disk. lastValid is
// the height of the last block that it can be in, at is now in nanoseconds of
// Unix time; both are above 0. The same bytes again give the [Kept] of the first time.
// Errors: [ErrConflict] where the message is kept under other signatures, or
// another cosigned message of the claim is kept; [ErrFull] beyond MaxTransactions;
// [ErrInvalid] of a zero value; [ErrDamaged]; those of the map.
func (s *Store) PutTransaction(x cosign.Signed, lastValid uint64, at int64) (Transaction, error) {
	k := Transaction{
		claim: x.Claim(), kind: x.Kind(), hash: x.Hash(), raw: bytes.Clone(x.Bytes()), lastValid: lastValid, signedAt: at,
	}
	defer s.lock(k.claim)()
	list, err := s.Transactions(k.claim)
	if err != nil {
		return Transaction{}, err
	}
	k.ordinal = uint8(len(list) + 1)
	for i := range list {
		switch is := &list[i]; {
		case is.hash == k.hash && bytes.Equal(is.raw, k.raw):
			k = *is
		case is.hash == k.hash, is.kind == cosign.Cosign && k.kind == cosign.Cosign:
			return Transaction{}, fmt.Errorf("%w: transaction %s of claim %s", ErrConflict, k.hash, claimText(k.claim))
		}
	}
	if k.ordinal > MaxTransactions {
		return Transaction{}, fmt.Errorf("%w: transaction %s of claim %s: %d are kept", ErrFull, k.hash, claimText(k.claim), len(list))
	}
	if err := k.read(); err != nil {
		return Transaction{}, fmt.Errorf("%w: transaction %s of claim %s", ErrInvalid, k.hash, claimText(k.claim))
	}
	if err := s.writeTransaction(&k); err != nil {
		return Transaction{}, fmt.Errorf("transaction %s of claim %s: %w", k.hash, claimText(k.claim), err)
	}
	return k, nil
}

// keep writes it, even what is there: a first try may have failed at the disk
// only. Its claim's build is no longer one that nobody signed.
func (s *Store) writeTransaction(k *Transaction) error {
	name := signatureKey(keySignature, k.signature)
	whose := append(le.AppendUint64(nil, uint64(k.claim)), k.hash[:]...)
	if is, ok, err := s.kv.Get(name); err != nil {
		return err
	} else if ok && !bytes.Equal(is, whose) {
		return ErrConflict
	}
	build, ok, err := s.Build(k.claim)
	if err != nil {
		return err
	}
	return s.kv.Commit(func(set func(key, value []byte), deleteRange func(lo, hi []byte)) {
		set(transactionKey(k.claim, k.hash), appendTransaction(nil, k))
		set(name, whose)
		if ok {
			age := ageKey(build)
			deleteRange(age, kv.After(age))
		}
	}, true)
}

// Kept returns a claim's signed transaction of a message. Errors: [ErrDamaged],
// those of the map.
func (s *Store) Transaction(id market.ClaimID, hash solana.Hash) (Transaction, bool, error) {
	key := transactionKey(id, hash)
	value, ok, err := s.kv.Get(key)
	if err != nil || !ok {
		return Transaction{}, false, err
	}
	k, err := decodeTransaction(key, value)
	return k, err == nil, err
}

// Transactions returns all signed transactions of a claim, the oldest first. Errors:
// [ErrDamaged], those of the map.
func (s *Store) Transactions(id market.ClaimID) ([]Transaction, error) {
	var list []Transaction
	lo := claimKey(keyTransaction, id)
	hi := append(bytes.Clone(lo), bytes.Repeat([]byte{0xff}, len(solana.Hash{})+1)...)
	err := kv.Each(s.kv, lo, hi, func(key, value []byte) error {
		k, err := decodeTransaction(key, bytes.Clone(value))
		list = append(list, k)
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b Transaction) int { return cmp.Compare(a.ordinal, b.ordinal) })
	return list, nil
}

// ClaimOf returns the claim whose kept transaction a signature names. Errors:
// [ErrDamaged], those of the map.
func (s *Store) ClaimOf(sig solana.Signature) (market.ClaimID, bool, error) {
	value, ok, err := s.kv.Get(signatureKey(keySignature, sig))
	if err != nil || !ok {
		return 0, false, err
	}
	r := reader{buf: value}
	id := market.ClaimID(r.u64())
	r.take(32)
	if !r.complete() || id == 0 {
		return 0, false, fmt.Errorf("%w: whose is transaction %s", ErrDamaged, sig)
	}
	return id, true, nil
}
