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
	"blockdesk/settle/binding"
	"blockdesk/settle/cosign"
)

// MaxTransactions bounds the signed transactions of one claim: a cosigned one, or its
// deliveries, of which the earlier ones have expired.
const MaxTransactions = 64

// Transaction is a signed transaction that is on disk: of a claim, or of refunds, which
// have no claim. The zero value is none.
type Transaction struct {
	claim     market.ClaimID
	kind      cosign.Kind
	ordinal   uint8
	hash      solana.Hash
	signature solana.Signature
	raw       []byte
	lastValid uint64
	signedAt  int64
	payment   solana.Signature // of refunds: the first one that is paid back
}

// Claim returns the transaction's claim, 0 of refunds.
func (t Transaction) Claim() market.ClaimID { return t.claim }

// Kind returns the kind of the transaction.
func (t Transaction) Kind() cosign.Kind { return t.kind }

// Hash returns the SHA-256 of the message.
func (t Transaction) Hash() solana.Hash { return t.hash }

// Signature returns the first signature, which names the transaction on the chain.
func (t Transaction) Signature() solana.Signature { return t.signature }

// Bytes returns the exact bytes to send. Read-only.
func (t Transaction) Bytes() []byte { return t.raw }

// LastValid returns the height of the last block in which it can land.
func (t Transaction) LastValid() uint64 { return t.lastValid }

// SignedAt returns when it was first stored, in Unix nanoseconds.
func (t Transaction) SignedAt() int64 { return t.signedAt }

// Reference returns an account that the message names, to find it by.
func (t Transaction) Reference() solana.Address {
	if t.kind == cosign.Refund {
		return binding.RefundReference(t.payment)
	}
	return binding.Reference(t.claim)
}

func transactionKey(id market.ClaimID, hash solana.Hash) []byte {
	return append(claimKey(keyTransaction, id), hash[:]...)
}

func appendTransaction(dst []byte, k *Transaction) []byte {
	dst = append(dst, valueVersion, uint8(k.kind), k.ordinal)
	dst = le.AppendUint64(dst, k.lastValid)
	dst = le.AppendUint64(dst, uint64(k.signedAt))
	return append(dst, k.raw...)
}

// decodeTransaction decodes an entry; key is the whole key. It checks that the message
// has the hash in the key and that the first signature slot is filled. It copies
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

// read checks the fields, and takes the signature from the bytes.
func (t *Transaction) read() error {
	decoded, err := tx.Decode(t.raw)
	switch {
	case err != nil:
		return err
	case t.claim == 0, t.kind != cosign.Cosign && t.kind != cosign.Deliver, t.ordinal == 0 || t.ordinal > MaxTransactions, t.lastValid == 0,
		t.signedAt <= 0, len(t.raw) > MaxRaw, decoded.Signatures[0] == (solana.Signature{}), tx.MessageHash(decoded.Signed) != t.hash:
		return ErrInvalid
	}
	t.signature = decoded.Signatures[0]
	return nil
}

// PutTransaction stores a signed transaction, and returns when it is on disk.
// lastValid is the height of the last block in which it can land, at is now in Unix
// nanoseconds; both are above 0. The same bytes again return the [Transaction] of the
// first time. Errors: [ErrConflict] if the message is stored under other signatures,
// or the claim has another cosigned message; [ErrFull] beyond MaxTransactions;
// [ErrInvalid] for a zero value; [ErrDamaged]; errors of the kv.Store.
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
			return Transaction{}, fmt.Errorf("%w: transaction %s of claim %s: the claim has another signed transaction", ErrConflict, k.hash, claimText(k.claim))
		}
	}
	if k.ordinal > MaxTransactions {
		return Transaction{}, fmt.Errorf("%w: transaction %s of claim %s: %d are stored, at most %d", ErrFull, k.hash, claimText(k.claim), len(list), MaxTransactions)
	}
	if err := k.read(); err != nil {
		return Transaction{}, fmt.Errorf("%w: transaction %s of claim %s is not a signed transaction of the desk", ErrInvalid, k.hash, claimText(k.claim))
	}
	if err := s.writeTransaction(&k); err != nil {
		return Transaction{}, fmt.Errorf("transaction %s of claim %s: %w", k.hash, claimText(k.claim), err)
	}
	return k, nil
}

// writeTransaction writes k even if it is stored already, because an earlier sync
// may have failed. The claim's build no longer counts as unsigned.
func (s *Store) writeTransaction(k *Transaction) error {
	name := signatureKey(keySignature, k.signature)
	value := append(le.AppendUint64(nil, uint64(k.claim)), k.hash[:]...)
	if is, ok, err := s.kv.Get(name); err != nil {
		return err
	} else if ok && !bytes.Equal(is, value) {
		return ErrConflict
	}
	build, ok, err := s.Build(k.claim)
	if err != nil {
		return err
	}
	return s.kv.Commit(func(set func(key, value []byte), deleteRange func(lo, hi []byte)) {
		set(transactionKey(k.claim, k.hash), appendTransaction(nil, k))
		set(name, value)
		if ok {
			age := ageKey(build)
			deleteRange(age, kv.After(age))
		}
	}, true)
}

// Transaction returns a claim's signed transaction by the hash of its message.
// Errors: [ErrDamaged], errors of the kv.Store.
func (s *Store) Transaction(id market.ClaimID, hash solana.Hash) (Transaction, bool, error) {
	key := transactionKey(id, hash)
	value, ok, err := s.kv.Get(key)
	if err != nil || !ok {
		return Transaction{}, false, err
	}
	k, err := decodeTransaction(key, value)
	return k, err == nil, err
}

// Transactions returns all signed transactions of a claim, oldest first. Errors:
// [ErrDamaged], errors of the kv.Store.
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

// ClaimOf returns the claim of the stored transaction that has a signature. Errors:
// [ErrDamaged], errors of the kv.Store.
func (s *Store) ClaimOf(sig solana.Signature) (market.ClaimID, bool, error) {
	value, ok, err := s.kv.Get(signatureKey(keySignature, sig))
	if err != nil || !ok {
		return 0, false, err
	}
	r := reader{buf: value}
	id := market.ClaimID(r.u64())
	r.take(32)
	if !r.complete() || id == 0 {
		return 0, false, fmt.Errorf("%w: the claim of transaction %s", ErrDamaged, sig)
	}
	return id, true, nil
}
