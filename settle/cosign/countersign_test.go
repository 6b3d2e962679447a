package cosign

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/build"
	"blockdesk/market"
)

// submitted returns a built transaction with a signature in one of its slots.
func submitted(raw []byte, slot int, s solana.Signature) []byte {
	b := bytes.Clone(raw)
	copy(slotOf(b, slot), s[:])
	return b
}

// offer is a built atomic transaction and what an honest taker brings.
type offer struct {
	raw       []byte
	slot      int // the taker's
	signature solana.Signature
	honest    []byte
}

func offerOf(t testing.TB, spoil func(a *build.Atomic)) offer {
	t.Helper()
	a := atomicOf(t, testClaim)
	spoil(&a)
	u := built(t, &a)
	o := offer{raw: u.Bytes(), slot: slices.Index(u.Signers(), a.Taker), signature: signatureOf(takerKey, u.Message())}
	o.honest = submitted(o.raw, o.slot, o.signature)
	return o
}

func (o *offer) submit(s Submission) (Countersigned, error) {
	return Countersign(testClaim, o.raw, takerAddress, s)
}

func TestCountersign(t *testing.T) {
	for _, spoil := range []func(a *build.Atomic){
		func(*build.Atomic) {},
		func(a *build.Atomic) { a.FeePayer = build.Taker },
	} {
		o := offerOf(t, spoil)
		byTransaction, err := o.submit(Submission{Transaction: o.honest})
		if err != nil {
			t.Fatal(err)
		}
		bySignature, err := o.submit(Submission{Signature: o.signature})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []Countersigned{byTransaction, bySignature} {
			if c.Claim() != testClaim || !bytes.Equal(c.countersigned.raw, o.honest) {
				t.Errorf("claim %d, bytes %x", c.Claim(), c.countersigned.raw)
			}
		}
	}
}

// TestEveryBit: a submitted transaction with any one bit turned is refused.
func TestEveryBit(t *testing.T) {
	for _, spoil := range []func(a *build.Atomic){
		func(*build.Atomic) {},
		func(a *build.Atomic) { a.FeePayer = build.Taker },
	} {
		o := offerOf(t, spoil)
		start := 1 + o.slot*signatureSize
		for bit := range len(o.honest) * 8 {
			b := bytes.Clone(o.honest)
			b[bit/8] ^= 1 << (bit % 8)
			want := ErrMismatch
			if at := bit / 8; at >= start && at < start+signatureSize {
				want = ErrBadSignature
			}
			if c, err := o.submit(Submission{Transaction: b}); !errors.Is(err, want) || c != (Countersigned{}) {
				t.Fatalf("bit %d: %v, want %v", bit, err, want)
			}
		}
		for bit := range 8 * signatureSize {
			s := o.signature
			s[bit/8] ^= 1 << (bit % 8)
			if c, err := o.submit(Submission{Signature: s}); !errors.Is(err, ErrBadSignature) || c != (Countersigned{}) {
				t.Fatalf("signature bit %d: %v", bit, err)
			}
		}
	}
}

// TestEveryStoredBit: if the stored bytes are damaged, an honest signature does not
// make them good.
func TestEveryStoredBit(t *testing.T) {
	o := offerOf(t, func(*build.Atomic) {})
	for bit := range len(o.raw) * 8 {
		damaged := o
		damaged.raw = bytes.Clone(o.raw)
		damaged.raw[bit/8] ^= 1 << (bit % 8)
		for _, s := range []Submission{{Transaction: o.honest}, {Signature: o.signature}} {
			if c, err := damaged.submit(s); err == nil || c != (Countersigned{}) {
				t.Fatalf("bit %d: accepted", bit)
			}
		}
	}
}

// order is the order of the curve's group.
var order, _ = new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)

// malleated returns the signature with the group's order added to its scalar.
func malleated(s solana.Signature) solana.Signature {
	scalar := s[32:]
	slices.Reverse(scalar)
	sum := new(big.Int).Add(new(big.Int).SetBytes(scalar), order)
	sum.FillBytes(scalar)
	slices.Reverse(scalar)
	return s
}

func TestAttacks(t *testing.T) {
	o := offerOf(t, func(*build.Atomic) {})
	message := o.raw[1+2*signatureSize:]
	deskSlot := 1 - o.slot
	deskSignature := signatureOf(deskKey, message)
	swapped := submitted(o.raw, deskSlot, o.signature)
	again := offerOf(t, func(a *build.Atomic) { a.Blockhash[0]++ })
	for name, c := range map[string]struct {
		s    Submission
		want error
	}{
		"nothing":                      {Submission{}, ErrEmptyCounterparty},
		"unsigned":                     {Submission{Transaction: o.raw}, ErrEmptyCounterparty},
		"both":                         {Submission{Transaction: o.honest, Signature: o.signature}, ErrMismatch},
		"truncated":                    {Submission{Transaction: o.honest[:len(o.honest)-1]}, ErrMismatch},
		"half":                         {Submission{Transaction: o.honest[:len(o.honest)/2]}, ErrMismatch},
		"one byte":                     {Submission{Transaction: o.honest[:1]}, ErrMismatch},
		"message alone":                {Submission{Transaction: message}, ErrMismatch},
		"trailing":                     {Submission{Transaction: append(bytes.Clone(o.honest), 0)}, ErrMismatch},
		"twice":                        {Submission{Transaction: append(bytes.Clone(o.honest), o.honest...)}, ErrMismatch},
		"slots reordered":              {Submission{Transaction: swapped}, ErrMismatch},
		"desk's slot filled":           {Submission{Transaction: submitted(o.honest, deskSlot, deskSignature)}, ErrMismatch},
		"desk's slot alone filled":     {Submission{Transaction: submitted(o.raw, deskSlot, deskSignature)}, ErrMismatch},
		"taker's in both":              {Submission{Transaction: submitted(o.honest, deskSlot, o.signature)}, ErrMismatch},
		"desk's signature":             {Submission{Signature: deskSignature}, ErrBadSignature},
		"another's signature":          {Submission{Signature: signatureOf(otherKey, message)}, ErrBadSignature},
		"signature of the whole":       {Submission{Signature: signatureOf(takerKey, o.raw)}, ErrBadSignature},
		"signature of another build":   {Submission{Signature: again.signature}, ErrBadSignature},
		"another build":                {Submission{Transaction: again.honest}, ErrMismatch},
		"malleated":                    {Submission{Signature: malleated(o.signature)}, ErrBadSignature},
		"malleated in the transaction": {Submission{Transaction: submitted(o.raw, o.slot, malleated(o.signature))}, ErrBadSignature},
		"all ones":                     {Submission{Signature: solana.Signature(bytes.Repeat([]byte{0xff}, signatureSize))}, ErrBadSignature},
	} {
		if got, err := o.submit(c.s); !errors.Is(err, c.want) || got != (Countersigned{}) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// TestForgedByNobody: if the taker's key is a point of small order, anybody can make
// signatures that the standard library accepts.
func TestForgedByNobody(t *testing.T) {
	identity := solana.Address{1}
	o := offerOf(t, func(a *build.Atomic) { a.Taker = identity })
	var forged solana.Signature
	forged[0] = 1
	if !ed25519.Verify(identity[:], o.raw[1+2*signatureSize:], forged[:]) {
		t.Fatal("the standard library refuses it too: the test proves nothing")
	}
	if c, err := Countersign(testClaim, o.raw, identity, Submission{Signature: forged}); !errors.Is(err, ErrBadSignature) || c != (Countersigned{}) {
		t.Errorf("forged: %v", err)
	}
}

// TestWrongCall: what the caller gives must fit together too.
func TestWrongCall(t *testing.T) {
	o := offerOf(t, func(*build.Atomic) {})
	good := Submission{Signature: o.signature}
	delivery := deliveryOf(t, testClaim)
	pay := build.Payment{Common: commonOf(testClaim), Wallet: takerAddress, Leg: atomicOf(t, testClaim).Payment}
	three := edit{t, messageOf(t, &build.Atomic{
		Common: commonOf(testClaim), Taker: takerAddress, Desk: deskAddress, Payment: atomicOf(t, testClaim).Payment,
		Base: atomicOf(t, testClaim).Base, BaseAmount: 1, FeePayer: build.Desk, RentPayer: build.Taker,
	})}
	three.insert(1, otherAddress)
	three.Header.Required++
	ofThree := takerSigned(t, three.Message)
	clear(slotOf(ofThree, 2))
	noReference := atomicOf(t, testClaim)
	noReference.Reference = solana.Address{}
	for name, c := range map[string]struct {
		claim market.ClaimID
		raw   []byte
		taker solana.Address
		want  error
	}{
		"zero taker":            {testClaim, o.raw, solana.Address{}, ErrEmptyCounterparty},
		"another taker":         {testClaim, o.raw, otherAddress, ErrMismatch},
		"one who does not sign": {testClaim, o.raw, treasury, ErrMismatch},
		"the desk as taker":     {testClaim, o.raw, deskAddress, ErrShape},
		"another claim":         {testClaim + 1, o.raw, takerAddress, ErrShape},
		"no claim":              {0, o.raw, takerAddress, ErrShape},
		"nothing stored":        {testClaim, nil, takerAddress, ErrShape},
		"stored cut":            {testClaim, o.raw[:len(o.raw)-1], takerAddress, ErrShape},
		"stored with more":      {testClaim, append(bytes.Clone(o.raw), 0), takerAddress, ErrShape},
		"stored signed":         {testClaim, o.honest, takerAddress, ErrShape},
		"a delivery":            {testClaim, built(t, &delivery).Bytes(), deskAddress, ErrShape},
		"a payment":             {testClaim, built(t, &pay).Bytes(), takerAddress, ErrShape},
		"no reference":          {testClaim, built(t, &noReference).Bytes(), takerAddress, ErrShape},
	} {
		if got, err := Countersign(c.claim, c.raw, c.taker, good); !errors.Is(err, c.want) || got != (Countersigned{}) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// TestNothingShared: what is countersigned stays so, whatever the caller does with
// his bytes later.
func TestNothingShared(t *testing.T) {
	o := offerOf(t, func(*build.Atomic) {})
	raw, sent := bytes.Clone(o.raw), bytes.Clone(o.honest)
	c, err := Countersign(testClaim, raw, takerAddress, Submission{Transaction: sent})
	if err != nil {
		t.Fatal(err)
	}
	clear(raw)
	clear(sent)
	a, err := c.Authorize(&agreeing{})
	if err != nil {
		t.Fatal(err)
	}
	x := signedBy(t, a, deskSigner())
	want := submitted(o.honest, 1-o.slot, signatureOf(deskKey, o.raw[1+2*signatureSize:]))
	if !bytes.Equal(x.Bytes(), want) {
		t.Errorf("signed %x, want %x", x.Bytes(), want)
	}
	if !bytes.Equal(c.countersigned.raw, o.honest) {
		t.Error("signing wrote into what was countersigned")
	}
}

// TestSpliced: bytes put together of the honest ones are refused, unless they are
// the honest ones.
func TestSpliced(t *testing.T) {
	o := offerOf(t, func(*build.Atomic) {})
	rapid.Check(t, func(t *rapid.T) {
		cut := rapid.IntRange(0, len(o.honest)).Draw(t, "cut")
		from := rapid.IntRange(0, len(o.honest)).Draw(t, "from")
		b := append(bytes.Clone(o.honest[:cut]), rapid.SliceOfN(rapid.Byte(), 0, 80).Draw(t, "more")...)
		b = append(b, o.honest[from:]...)
		_, err := o.submit(Submission{Transaction: b})
		if (err == nil) != bytes.Equal(b, o.honest) {
			t.Fatalf("%d bytes: %v", len(b), err)
		}
	})
}

// FuzzCountersign: what is accepted is the stored bytes, and a signature that the
// standard library accepts too.
func FuzzCountersign(f *testing.F) {
	o := offerOf(f, func(*build.Atomic) {})
	f.Add(o.honest, o.signature[:])
	f.Add(o.raw, []byte{})
	f.Add([]byte{}, o.signature[:])
	f.Fuzz(func(t *testing.T, transaction, signature []byte) {
		var s Submission
		s.Transaction = transaction
		copy(s.Signature[:], signature)
		c, err := o.submit(s)
		if err != nil {
			return
		}
		got := c.countersigned.raw
		if !bytes.Equal(submitted(got, o.slot, solana.Signature{}), o.raw) {
			t.Fatalf("accepted %x", got)
		}
		if !ed25519.Verify(takerAddress[:], o.raw[1+2*signatureSize:], slotOf(got, o.slot)) {
			t.Fatalf("accepted a signature %x", slotOf(got, o.slot))
		}
	})
}
