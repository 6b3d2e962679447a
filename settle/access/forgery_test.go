package access

import (
	stdlib "crypto/ed25519"
	"crypto/sha512"
	"errors"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/oasisprotocol/curve25519-voi/curve"
	"github.com/oasisprotocol/curve25519-voi/curve/scalar"

	"blockdesk/desk"
	"blockdesk/internal/solana"
)

// forger presents what should not be taken, each time with a nonce of its own.
type forger struct {
	t     *testing.T
	rng   *rand.Rand
	a     *Access
	tried int
	taken int // by the standard library
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
		f.t.Fatal(err)
	}
	return s
}

func times(s *scalar.Scalar) *curve.EdwardsPoint {
	return new(curve.EdwardsPoint).MulBasepoint(curve.ED25519_BASEPOINT_TABLE, s)
}

func encode(p *curve.EdwardsPoint) (b [32]byte) {
	var c curve.CompressedEdwardsY
	c.SetEdwardsPoint(p)
	return c
}

// shifted is p with the small-order part i.
func shifted(p *curve.EdwardsPoint, i int) [32]byte {
	return encode(new(curve.EdwardsPoint).Add(p, curve.EIGHT_TORSION[i]))
}

// smallOrder is every encoding of a point of small order that some decoder takes.
func smallOrder() (all [][32]byte) {
	put := func(b [32]byte) {
		if !slices.Contains(all, b) {
			all = append(all, b)
		}
	}
	for _, p := range curve.EIGHT_TORSION {
		b := encode(p)
		put(b)
		b[31] ^= 0x80
		put(b)
	}
	for y := range byte(2) { // 0 and 1 with the prime added
		b := [32]byte{0xed + y}
		for i := 1; i < 31; i++ {
			b[i] = 0xff
		}
		for _, sign := range []byte{0, 0x80} {
			b[31] = 0x7f | sign
			put(b)
		}
	}
	return all
}

// present seals a nonce for key, also where Challenge would not, and presents it
// with what make makes of its text.
func (f *forger) present(name string, key solana.Address, forge func(text string) (r, s [32]byte)) {
	n := newNonce(key, f.a.clock.now())
	n.seal(f.a.process)
	r, s := forge(n.text())
	signature := solana.Signature(slices.Concat(r[:], s[:]))
	f.tried++
	if stdlib.Verify(key[:], []byte(n.text()), signature[:]) {
		f.taken++
	}
	if g, err := f.a.Issue(key, n.text(), signature, client(9)); !errors.Is(err, desk.ErrBadProof) {
		f.t.Errorf("%s, key %x, signature %x: %v, %v", name, key, signature, g, err)
	}
}

// answer is the signature of key over text by the scalars a, of the key, and r, of
// the point.
func (f *forger) answer(key, point [32]byte, r, a *scalar.Scalar, text string) [32]byte {
	h := sha512.New()
	for _, part := range [][]byte{point[:], key[:], []byte(text)} {
		h.Write(part)
	}
	c, err := scalar.NewFromBytesModOrderWide(h.Sum(nil))
	if err != nil {
		f.t.Fatal(err)
	}
	return f.word(c.Add(scalar.New().Mul(c, a), r))
}

func (f *forger) word(s *scalar.Scalar) (b [32]byte) {
	if err := s.ToBytes(b[:]); err != nil {
		f.t.Fatal(err)
	}
	return b
}

// smallKeys forges without any secret.
func (f *forger) smallKeys() {
	small := smallOrder()
	for _, key := range small {
		if _, err := f.a.Challenge(key); !errors.Is(err, desk.ErrBadKey) {
			f.t.Errorf("challenges the small key %x: %v", key, err)
		}
		for _, point := range small {
			for range 10 {
				f.present("small key and point", key, func(string) (r, s [32]byte) { return point, s })
			}
		}
		for range 20 {
			f.present("small key", key, func(string) (r, s [32]byte) {
				v := f.scalar()
				return encode(times(v)), f.word(v)
			})
		}
	}
}

// mixed: keys and points with a component of small order, whose other component the
// forger knows.
func (f *forger) mixed() {
	for i := range 400 {
		a, v := f.scalar(), f.scalar()
		key := shifted(times(a), 1+i%7)
		if _, err := f.a.Challenge(key); !errors.Is(err, desk.ErrBadKey) {
			f.t.Errorf("challenges the mixed key %x: %v", key, err)
		}
		f.present("mixed key", key, func(text string) (r, s [32]byte) {
			r = encode(times(v))
			return r, f.answer(key, r, v, a, text)
		})
		honest := encode(times(a))
		f.present("mixed point", honest, func(text string) (r, s [32]byte) {
			r = shifted(times(v), 1+i%7)
			return r, f.answer(honest, r, v, a, text)
		})
	}
	for _, point := range smallOrder() {
		a := f.scalar()
		key := encode(times(a))
		f.present("small point", key, func(text string) (r, s [32]byte) {
			return point, f.answer(key, point, scalar.New(), a, text)
		})
	}
}

// spoiled: an honest signature with something else about it.
func (f *forger) spoiled() {
	order, _ := new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)
	for i := range 120 {
		p := newPerson(uint64(i))
		signed := func(text string) (r, s [32]byte) {
			g := p.sign(text)
			return [32]byte(g[:32]), [32]byte(g[32:])
		}
		for more := range int64(15) {
			f.present("malleated scalar", p.key, func(text string) (r, s [32]byte) {
				r, s = signed(text)
				slices.Reverse(s[:])
				v := new(big.Int).SetBytes(s[:])
				v.Add(v, new(big.Int).Mul(order, big.NewInt(1+more)))
				if v.BitLen() > 256 {
					return r, [32]byte{}
				}
				v.FillBytes(s[:])
				slices.Reverse(s[:])
				return r, s
			})
		}
		f.present("flipped bit", p.key, func(text string) (r, s [32]byte) {
			r, s = signed(text)
			if bit := f.rng.IntN(512); bit < 256 {
				r[bit/8] ^= 1 << (bit % 8)
			} else {
				s[bit/8-32] ^= 1 << (bit % 8)
			}
			return r, s
		})
		f.present("longer text", p.key, func(text string) (r, s [32]byte) { return signed(text + "=") })
		f.present("zero", p.key, func(string) (r, s [32]byte) { return r, s })
	}
}

// TestForgeries: none of thousands is taken, although the standard library takes
// hundreds; nor is a nonce made for a key that proves nothing.
func TestForgeries(t *testing.T) {
	a := mustOpen(t, newWatch().options(), newMemKV())
	f := &forger{t: t, rng: rand.New(rand.NewPCG(1, 25519)), a: a}
	f.smallKeys()
	f.mixed()
	f.spoiled()
	if f.tried < 4000 || f.taken < 300 {
		t.Errorf("the corpus is weak: %d, of which crypto/ed25519 takes %d", f.tried, f.taken)
	}
	t.Logf("%d forgeries, crypto/ed25519 takes %d", f.tried, f.taken)
	if tokens, live, hours := a.remembers(); tokens+live+hours != 0 {
		t.Errorf("issued %d tokens", tokens)
	}
	a.mustProve(t, newPerson(1), client(9))
}

// TestChallengeWantsAKey: encodings that are no point, or one of two of a point.
func TestChallengeWantsAKey(t *testing.T) {
	a := mustOpen(t, newWatch().options(), newMemKV())
	for y := range byte(19) {
		for _, sign := range []byte{0x7f, 0xff} {
			key := solana.Address{0xed + y}
			for i := 1; i < 31; i++ {
				key[i] = 0xff
			}
			key[31] = sign
			if _, err := a.Challenge(key); !errors.Is(err, desk.ErrBadKey) {
				t.Errorf("key %x: %v", key, err)
			}
		}
	}
	if _, err := a.Challenge(solana.Address{}); !errors.Is(err, desk.ErrBadKey) {
		t.Errorf("the zero key: %v", err)
	}
}
