package eddsa

import (
	stdlib "crypto/ed25519"
	"crypto/sha512"
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/oasisprotocol/curve25519-voi/curve"
	"github.com/oasisprotocol/curve25519-voi/curve/scalar"

	"blockdesk/internal/solana"
)

// forgery is a signature that its maker should not get accepted.
type forgery struct {
	name      string
	key       solana.Address
	message   []byte
	signature solana.Signature
}

// forger makes the corpus from one seed.
type forger struct {
	rng    *rand.Rand
	corpus []forgery
}

func (f *forger) add(name string, key, r, s [32]byte, message []byte) {
	var g solana.Signature
	copy(g[:32], r[:])
	copy(g[32:], s[:])
	f.corpus = append(f.corpus, forgery{name, key, message, g})
}

func (f *forger) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(f.rng.Uint32())
	}
	return b
}

func (f *forger) scalar() *scalar.Scalar {
	s, err := scalar.NewFromBytesModOrderWide(f.bytes(64))
	if err != nil {
		panic(err)
	}
	return s
}

func times(s *scalar.Scalar) *curve.EdwardsPoint {
	return new(curve.EdwardsPoint).MulBasepoint(curve.ED25519_BASEPOINT_TABLE, s)
}

func plus(a, b *curve.EdwardsPoint) *curve.EdwardsPoint { return new(curve.EdwardsPoint).Add(a, b) }

func encode(p *curve.EdwardsPoint) (b [32]byte) {
	var c curve.CompressedEdwardsY
	c.SetEdwardsPoint(p)
	return c
}

func encodeScalar(s *scalar.Scalar) (b [32]byte) {
	if err := s.ToBytes(b[:]); err != nil {
		panic(err)
	}
	return b
}

// challenge is the hash that ties a signature to key and message.
func challenge(r, key [32]byte, message []byte) *scalar.Scalar {
	h := sha512.New()
	h.Write(r[:])
	h.Write(key[:])
	h.Write(message)
	s, err := scalar.NewFromBytesModOrderWide(h.Sum(nil))
	if err != nil {
		panic(err)
	}
	return s
}

// response is r + challenge × a.
func response(r, h, a *scalar.Scalar) [32]byte {
	s := scalar.New().Mul(h, a)
	return encodeScalar(s.Add(s, r))
}

// smallOrder is every encoding of a point of small order that some decoder
// takes: canonical, with y beyond the prime, with the sign of a zero x.
func smallOrder() (all [][32]byte) {
	prime := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 255), big.NewInt(19))
	seen := map[[32]byte]bool{}
	put := func(b [32]byte) {
		if !seen[b] {
			seen[b] = true
			all = append(all, b)
		}
	}
	for _, p := range curve.EIGHT_TORSION {
		b := encode(p)
		put(b)
		b[31] ^= 0x80
		put(b)
	}
	for y := range int64(2) { // 0 and 1 have a second encoding below 2^255
		var b [32]byte
		new(big.Int).Add(prime, big.NewInt(y)).FillBytes(b[:])
		for i, j := 0, 31; i < j; i, j = i+1, j-1 {
			b[i], b[j] = b[j], b[i]
		}
		put(b)
		b[31] |= 0x80
		put(b)
	}
	return all
}

// smallKeys: no key is needed when the key's multiple vanishes.
func (f *forger) smallKeys() {
	small := smallOrder()
	for _, key := range small {
		for _, r := range small {
			for range 8 {
				f.add("small key, small point, zero scalar", key, r, [32]byte{}, f.bytes(20))
			}
		}
		for range 32 {
			s := f.scalar()
			f.add("small key, any scalar", key, encode(times(s)), encodeScalar(s), f.bytes(20))
		}
	}
}

// mixedKeys: an attacker who knows a can sign for aB + T too, for a part of the messages.
func (f *forger) mixedKeys() {
	for i := range 400 {
		a, r := f.scalar(), f.scalar()
		key := encode(plus(times(a), curve.EIGHT_TORSION[1+i%7]))
		point, message := encode(times(r)), f.bytes(20)
		f.add("mixed key", key, point, response(r, challenge(point, key, message), a), message)
	}
}

// mixedPoints: honest keys, with a small-order part in the signature's point.
func (f *forger) mixedPoints() {
	for i := range 400 {
		a, r := f.scalar(), f.scalar()
		key, message := encode(times(a)), f.bytes(20)
		point := encode(plus(times(r), curve.EIGHT_TORSION[1+i%7]))
		f.add("mixed point", key, point, response(r, challenge(point, key, message), a), message)
	}
	for i, point := range smallOrder() {
		a, message := f.scalar(), f.bytes(20+i)
		key := encode(times(a))
		s := scalar.New().Mul(challenge(point, key, message), a)
		f.add("small point", key, point, encodeScalar(s), message)
	}
}

// order is the group's order, little-endian.
func order() *big.Int {
	l, _ := new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)
	return l
}

// malleated: an honest signature with a multiple of the order added.
func (f *forger) malleated(key, r, s [32]byte, message []byte) {
	v := new(big.Int)
	for i := 31; i >= 0; i-- {
		v.Lsh(v, 8).Or(v, big.NewInt(int64(s[i])))
	}
	for range 15 {
		v.Add(v, order())
		if v.BitLen() > 256 {
			return
		}
		var more [32]byte
		v.FillBytes(more[:])
		for i, j := 0, 31; i < j; i, j = i+1, j-1 {
			more[i], more[j] = more[j], more[i]
		}
		f.add("malleated scalar", key, r, more, message)
	}
}

// honest makes a signature by the standard library.
func (f *forger) honest() forgery {
	private := stdlib.NewKeyFromSeed(f.bytes(32))
	message := f.bytes(f.rng.IntN(300))
	return forgery{
		name: "honest", key: solana.Address(private.Public().(stdlib.PublicKey)),
		message: message, signature: solana.Signature(stdlib.Sign(private, message)),
	}
}

func (f *forger) spoiled() {
	for range 100 {
		h := f.honest()
		f.malleated(h.key, [32]byte(h.signature[:32]), [32]byte(h.signature[32:]), h.message)
		for range 4 {
			bit := f.rng.IntN(512)
			g := h
			g.name = "flipped bit of the signature"
			g.signature[bit/8] ^= 1 << (bit % 8)
			f.corpus = append(f.corpus, g)
			g = h
			g.name = "flipped bit of the key"
			g.key[bit/8%32] ^= 1 << (bit % 8)
			f.corpus = append(f.corpus, g)
		}
		g := h
		g.name, g.message = "longer message", append([]byte{0}, h.message...)
		other := f.honest()
		f.corpus = append(f.corpus, g,
			forgery{"other key", other.key, h.message, h.signature},
			forgery{"empty slot", h.key, h.message, solana.Signature{}},
			forgery{"zero key", solana.Address{}, h.message, h.signature},
			forgery{"all ones", h.key, h.message, solana.Signature(fill(0xff))})
	}
}

func fill(b byte) []byte {
	out := make([]byte, 64)
	for i := range out {
		out[i] = b
	}
	return out
}

func forgeries(seed uint64) []forgery {
	f := &forger{rng: rand.New(rand.NewPCG(seed, 25519))}
	f.smallKeys()
	f.mixedKeys()
	f.mixedPoints()
	f.spoiled()
	return f.corpus
}

// TestForgeries: none of thousands is accepted, and the corpus is a real one:
// the standard library takes hundreds of it.
func TestForgeries(t *testing.T) {
	corpus, taken, kinds := forgeries(1), 0, map[string]int{}
	for i, g := range corpus {
		kinds[g.name]++
		if Verify(g.key, g.message, g.signature) {
			t.Errorf("%d, %s: accepted key %x signature %x", i, g.name, g.key, g.signature)
		}
		if stdlib.Verify(g.key[:], g.message, g.signature[:]) {
			taken++
		}
	}
	if len(corpus) < 4000 || taken < 300 {
		t.Errorf("the corpus is weak: %d, of which crypto/ed25519 takes %d", len(corpus), taken)
	}
	t.Logf("%d forgeries, crypto/ed25519 takes %d: %v", len(corpus), taken, kinds)
}

func TestHonest(t *testing.T) {
	f := &forger{rng: rand.New(rand.NewPCG(2, 3))}
	for range 500 {
		if h := f.honest(); !Verify(h.key, h.message, h.signature) {
			t.Fatalf("refused key %x message %x signature %x", h.key, h.message, h.signature)
		}
	}
}

// RFC 8032, section 7.1, the first and the second test.
func TestVectors(t *testing.T) {
	for _, c := range []struct{ key, message, signature string }{
		{
			"d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
			"e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
		},
		{
			"3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
			"92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
		},
	} {
		key, message, signature := unhex(t, c.key), unhex(t, c.message), unhex(t, c.signature)
		if !Verify(solana.Address(key), message, solana.Signature(signature)) {
			t.Errorf("refused the vector of key %s", c.key)
		}
	}
}

func unhex(t *testing.T, text string) (b []byte) {
	t.Helper()
	if text == "" {
		return nil
	}
	if _, err := fmt.Sscanf(text, "%x", &b); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestValidKey(t *testing.T) {
	for _, key := range smallOrder() {
		if ValidKey(key) {
			t.Errorf("small-order key %x is valid", key)
		}
	}
	f := &forger{rng: rand.New(rand.NewPCG(5, 6))}
	refused := 0
	for range 200 {
		point := times(f.scalar())
		if !ValidKey(encode(point)) {
			t.Errorf("key %x is not valid", encode(point))
		}
		for _, small := range curve.EIGHT_TORSION[1:] {
			if ValidKey(encode(plus(point, small))) {
				t.Errorf("mixed key of %x is valid", encode(point))
			}
		}
		if !ValidKey(solana.Address(f.bytes(32))) {
			refused++
		}
	}
	if refused < 150 {
		t.Errorf("only %d of 200 random words were refused", refused)
	}
}

// TestNonCanonicalKeys: the 19 heights that have a second encoding, with either
// sign. Some of them decode.
func TestNonCanonicalKeys(t *testing.T) {
	points := 0
	for y := range byte(19) {
		for _, sign := range []byte{0, 0x80} {
			key := solana.Address(fill(0xff)[:32])
			key[0], key[31] = 0xed+y, 0x7f|sign
			compressed := curve.CompressedEdwardsY(key)
			var p curve.EdwardsPoint
			if _, err := p.SetCompressedY(&compressed); err == nil {
				points++
			}
			if ValidKey(key) {
				t.Errorf("key %x is valid", key)
			}
		}
	}
	if points < 10 {
		t.Errorf("only %d decode: the test proves nothing", points)
	}
}

// FuzzVerify: what Verify accepts, the standard library accepts.
func FuzzVerify(f *testing.F) {
	g := &forger{rng: rand.New(rand.NewPCG(7, 8))}
	for range 4 {
		h := g.honest()
		f.Add(h.key[:], h.message, h.signature[:])
	}
	f.Fuzz(func(t *testing.T, key, message, signature []byte) {
		if len(key) != 32 || len(signature) != 64 {
			return
		}
		if Verify(solana.Address(key), message, solana.Signature(signature)) && !stdlib.Verify(key, message, signature) {
			t.Errorf("key %x message %x signature %x: only we accept it", key, message, signature)
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	f := &forger{rng: rand.New(rand.NewPCG(9, 10))}
	h := f.honest()
	h.message = f.bytes(600)
	private := stdlib.NewKeyFromSeed(f.bytes(32))
	h.key, h.signature = solana.Address(private.Public().(stdlib.PublicKey)), solana.Signature(stdlib.Sign(private, h.message))
	b.Run("strict", func(b *testing.B) {
		for b.Loop() {
			if !Verify(h.key, h.message, h.signature) {
				b.Fatal("refused")
			}
		}
	})
	b.Run("crypto_ed25519", func(b *testing.B) {
		for b.Loop() {
			if !stdlib.Verify(h.key[:], h.message, h.signature[:]) {
				b.Fatal("refused")
			}
		}
	})
	b.Run("key_only", func(b *testing.B) {
		for b.Loop() {
			if !ValidKey(h.key) {
				b.Fatal("refused")
			}
		}
	})
}
