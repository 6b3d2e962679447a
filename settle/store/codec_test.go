package store_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/build"
	"blockdesk/internal/solana/tx"
	"blockdesk/market"
	"blockdesk/persist/kv/kvtest"
	"blockdesk/settle/cosign"
	"blockdesk/settle/store"
	"blockdesk/settle/store/storetest"
)

const goldenClaim = market.ClaimID(0x0102030405060708)

// dump is a whole map, for people.
func dump(t testing.TB, kv *kvtest.Memory) string {
	t.Helper()
	var b bytes.Buffer
	err := kv.Scan(nil, nil, func(key, value []byte) bool {
		b.WriteString(hex.EncodeToString(key) + " = " + hex.EncodeToString(value) + "\n")
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func filled[T ~[32]byte | ~[64]byte](with byte) (v T) {
	for i := range len(v) {
		v[i] = with
	}
	return v
}

// TestGolden freezes what is on disk.
func TestGolden(t *testing.T) {
	kv := kvtest.New()
	s := open(t, kv)
	_, buildErr := s.PutBuild(&store.Build{
		Claim: goldenClaim, Way: rfq.Modular, Taker: filled[solana.Address](0xaa), Raw: []byte{0xde, 0xad}, LastValid: 0x0a0b, BuiltAt: 0x0c0d,
	}, true)
	unmatched := store.UnmatchedPayment{
		Signature: filled[solana.Signature](0xbb), Rail: market.RailSOL, Amount: 0x0e0f, Reason: "too_old", Payer: filled[solana.Address](0xcc),
		Slot: 0x1011, SeenAt: 0x1213, Claim: goldenClaim,
	}
	other := unmatched
	other.Signature = filled[solana.Signature](0xdd)
	err := errors.Join(buildErr, s.AddUnmatched(&unmatched), s.AddUnmatched(&other), s.ResolveUnmatched(other.Signature, "ops", "µ", 0x1415),
		s.SetCursor(filled[solana.Address](0xee), filled[solana.Signature](0xff)))
	if err != nil {
		t.Fatal(err)
	}
	const want = "" +
		"01 = 01\n" +
		"020102030405060708 = 0101" +
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" + "0b0a000000000000" + "0d0c000000000000" + "dead\n" +
		"05bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb = 0102" +
		"0f0e000000000000" + "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc" + "1110000000000000" + "1312000000000000" +
		"0807060504030201" + "07746f6f5f6f6c64\n" +
		"06dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd = 0102" +
		"0f0e000000000000" + "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc" + "1110000000000000" + "1312000000000000" +
		"0807060504030201" + "07746f6f5f6f6c64" + "1514000000000000" + "036f7073" + "0200c2b5\n" +
		"07eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee = " +
		"ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff\n" +
		"080000000000000c0d0102030405060708 = \n"
	if got := dump(t, kv); got != want {
		t.Errorf("on disk:\n%swant:\n%s", got, want)
	}
}

// TestGoldenTransaction freezes the entries of a signed transaction.
func TestGoldenTransaction(t *testing.T) {
	kv := kvtest.New()
	x := storetest.Delivery(t, goldenClaim, 1)
	if _, err := open(t, kv).PutTransaction(x, 0x0a0b, 0x0c0d); err != nil {
		t.Fatal(err)
	}
	hash, sig := x.Hash(), x.Signature()
	want := "01 = 01\n" +
		"030102030405060708" + hex.EncodeToString(hash[:]) + " = 010201" + "0b0a000000000000" + "0d0c000000000000" + hex.EncodeToString(x.Bytes()) + "\n" +
		"04" + hex.EncodeToString(sig[:]) + " = 0807060504030201" + hex.EncodeToString(hash[:]) + "\n"
	if got := dump(t, kv); got != want {
		t.Errorf("on disk:\n%swant:\n%s", got, want)
	}
}

// TestRoundTrip: what is written is read.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := &store.Build{
			Claim: market.ClaimID(rapid.Uint64Min(1).Draw(t, "claim")), Way: rfq.SettlementMode(rapid.IntRange(1, 2).Draw(t, "way")),
			Taker: filled[solana.Address](rapid.ByteRange(1, 255).Draw(t, "taker")), Raw: rapid.SliceOfN(rapid.Byte(), 1, store.MaxRaw).Draw(t, "raw"),
			LastValid: rapid.Uint64().Draw(t, "last valid"), BuiltAt: rapid.Int64Min(1).Draw(t, "built at"),
		}
		if got, err := store.DecodeBuild(b.Claim, store.EncodeBuild(b)); err != nil || !sameBuild(got, b) {
			t.Fatalf("%+v, %v; want %+v", got, err, b)
		}
		x := &store.UnmatchedPayment{
			Signature: filled[solana.Signature](rapid.ByteRange(1, 255).Draw(t, "signature")), Rail: market.Rail(rapid.IntRange(0, 2).Draw(t, "rail")),
			Amount: rapid.Uint64().Draw(t, "amount"), Reason: rapid.StringMatching(`[ -~]{1,40}`).Draw(t, "reason"),
			Payer: filled[solana.Address](rapid.Byte().Draw(t, "payer")), Slot: rapid.Uint64().Draw(t, "slot"), SeenAt: rapid.Int64().Draw(t, "seen"),
			Claim: market.ClaimID(rapid.Uint64().Draw(t, "of")),
		}
		if rapid.Bool().Draw(t, "resolved") {
			x.Resolved, x.By = rapid.Int64Min(1).Draw(t, "at"), rapid.StringMatching(`[ -~]{1,40}`).Draw(t, "by")
			x.Note = rapid.StringMatching(`[a-zé€ ]{0,160}`).Draw(t, "note")
		}
		if got, err := store.DecodeUnmatched(store.UnmatchedKey(x.Resolved != 0, x.Signature), store.EncodeUnmatched(x)); err != nil || *got != *x {
			t.Fatalf("%+v, %v; want %+v", got, err, x)
		}
	})
}

// FuzzBuild: what is read would be written the same.
func FuzzBuild(f *testing.F) {
	f.Add(store.EncodeBuild(buildOf(1, 1)))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, value []byte) {
		b, err := store.DecodeBuild(1, value)
		if err != nil {
			if !errors.Is(err, store.ErrDamaged) {
				t.Error(err)
			}
			return
		}
		if !bytes.Equal(store.EncodeBuild(b), value) {
			t.Errorf("%x is read as %+v", value, b)
		}
	})
}

func FuzzUnmatched(f *testing.F) {
	resolved := unmatchedOf(1)
	resolved.Resolved, resolved.By, resolved.Note = now, "ops", "done"
	f.Add(false, store.EncodeUnmatched(unmatchedOf(1)))
	f.Add(true, store.EncodeUnmatched(resolved))
	f.Add(false, store.EncodeUnmatched(resolved))
	f.Fuzz(func(t *testing.T, is bool, value []byte) {
		x, err := store.DecodeUnmatched(store.UnmatchedKey(is, signature(1)), value)
		if err != nil {
			if !errors.Is(err, store.ErrDamaged) {
				t.Error(err)
			}
			return
		}
		if !bytes.Equal(store.EncodeUnmatched(x), value) || (x.Resolved != 0) != is {
			t.Errorf("%x is read as %+v", value, x)
		}
	})
}

func FuzzTransaction(f *testing.F) {
	for i, x := range []cosign.Signed{storetest.Delivery(f, goldenClaim, 1), storetest.Atomic(f, goldenClaim, 1, build.Taker)} {
		kv := kvtest.New()
		k, err := open(f, kv).PutTransaction(x, uint64(i+1), now)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint64(k.Claim()), store.EncodeTransaction(k))
	}
	f.Fuzz(func(t *testing.T, claim uint64, value []byte) {
		// The key is that of the value's message, where it has one.
		var hash solana.Hash
		const fields = 1 + 1 + 1 + 8 + 8
		if x, err := tx.Decode(value[min(fields, len(value)):]); err == nil {
			hash = tx.MessageHash(x.Signed)
		}
		key := store.TransactionKey(market.ClaimID(claim), hash)
		k, err := store.DecodeTransaction(key, value)
		if err != nil {
			if !errors.Is(err, store.ErrDamaged) {
				t.Error(err)
			}
			return
		}
		if !bytes.Equal(store.EncodeTransaction(k), value) || !bytes.Equal(store.TransactionKey(k.Claim(), k.Hash()), key) {
			t.Errorf("%x, %x is read as %+v", key, value, k)
		}
		if k.Claim() == 0 || k.Signature() == (solana.Signature{}) || len(k.Bytes()) > store.MaxRaw {
			t.Errorf("%x, %x is no transaction", key, value)
		}
	})
}
