package storetest

import (
	"crypto/ed25519"
	"encoding/binary"
	"testing"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/tx"
	"blockdesk/market"
	"blockdesk/persist/kv/kvtest"
	"blockdesk/settle/cosign"
	"blockdesk/settle/store"
)

// Forge returns a stored transaction that no desk has made, for tests that need many: its
// message is made of number alone.
func Forge(t testing.TB, claim market.ClaimID, kind cosign.Kind, number uint64, lastValid uint64, at int64) store.Transaction {
	t.Helper()
	raw := ForgedBytes(t, number)
	hash := tx.MessageHash(raw[1+len(solana.Signature{}):])
	key := binary.BigEndian.AppendUint64([]byte{0x03}, uint64(claim))
	value := []byte{1, uint8(kind), 1}
	value = binary.LittleEndian.AppendUint64(value, lastValid)
	value = binary.LittleEndian.AppendUint64(value, uint64(at))
	kv := kvtest.New()
	s, err := store.Open(kv)
	if err != nil {
		t.Fatal(err)
	}
	err = kv.Commit(func(set func(key, value []byte), _ func(lo, hi []byte)) {
		set(append(key, hash[:]...), append(value, raw...))
	}, true)
	if err != nil {
		t.Fatal(err)
	}
	k, ok, err := s.Transaction(claim, hash)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	return k
}

// ForgedBytes returns the bytes of a small transaction, signed with Key(TakerKey).
func ForgedBytes(t testing.TB, number uint64) []byte {
	t.Helper()
	m := tx.Message{
		Version: tx.V0, Header: tx.Header{Required: 1, ReadonlyUnsigned: 1},
		Keys: []solana.Address{AddressOf(Key(TakerKey)), solana.MemoProgram}, Instructions: []tx.Instruction{{Program: 1, Data: []byte("forged")}},
	}
	binary.BigEndian.PutUint64(m.Blockhash[:], number)
	s := tx.Transaction{Signatures: make([]solana.Signature, 1), Message: m}
	raw, err := s.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	signature := raw[1 : 1+ed25519.SignatureSize]
	copy(signature, ed25519.Sign(Key(TakerKey), raw[1+len(signature):]))
	return raw
}
