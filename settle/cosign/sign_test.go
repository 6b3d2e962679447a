package cosign

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/eddsa"
	"blockdesk/internal/solana/tx"
)

// TestEveryForm: all that package build makes can be signed, and what comes out is
// a whole transaction whose every signature verifies.
func TestEveryForm(t *testing.T) {
	for name, b := range variants(t) {
		t.Run(name, func(t *testing.T) {
			u := built(t, b)
			x := signedBy(t, authorized(t, b), deskSigner())
			got, err := tx.Decode(x.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			for i, key := range got.Message.Signers() {
				if !eddsa.Verify(key, got.Signed, got.Signatures[i]) {
					t.Errorf("slot %d does not verify", i)
				}
			}
			if !bytes.Equal(got.Signed, u.Message()) || x.Hash() != u.Hash() || x.Claim() != testClaim || x.Signature() != got.Signatures[0] {
				t.Errorf("hash %s, claim %d, signature %s", x.Hash(), x.Claim(), x.Signature())
			}
			want := Cosign
			if len(u.Signers()) == deskSignsAlone {
				want = Deliver
			}
			if x.Kind() != want {
				t.Errorf("kind %s, want %s", x.Kind(), want)
			}
		})
	}
}

// TestSameAgain: signing is deterministic, so that what was lost in a crash can be
// signed again.
func TestSameAgain(t *testing.T) {
	for name, b := range variants(t) {
		first := signedBy(t, authorized(t, b), deskSigner())
		for range 3 {
			if again := signedBy(t, authorized(t, b), deskSigner()); !bytes.Equal(first.Bytes(), again.Bytes()) {
				t.Errorf("%s: other bytes the second time", name)
			}
		}
	}
}

// TestWhatIsAsked: the desk is asked about the hash of the message, for the claim.
func TestWhatIsAsked(t *testing.T) {
	atomic, delivery := atomicOf(t, testClaim), deliveryOf(t, testClaim)
	u, v := built(t, &atomic), built(t, &delivery)
	desk := &agreeing{}
	a, err := countersigned(t, u).Authorize(desk)
	if err != nil || a.Claim() != testClaim || a.Hash() != u.Hash() {
		t.Errorf("claim %d, hash %s, %v", a.Claim(), a.Hash(), err)
	}
	if a, err = AuthorizeDelivery(desk, testClaim, v); err != nil || a.Claim() != testClaim || a.Hash() != v.Hash() {
		t.Errorf("claim %d, hash %s, %v", a.Claim(), a.Hash(), err)
	}
	if len(desk.asked) != 2 {
		t.Fatalf("asked %d times", len(desk.asked))
	}
	if r, ok := desk.asked[0].(*rfq.CosignClaim); !ok || *r != (rfq.CosignClaim{Claim: testClaim, Proof: u.Hash()}) {
		t.Errorf("asked %+v", desk.asked[0])
	}
	if r, ok := desk.asked[1].(*rfq.BeginDelivery); !ok || *r != (rfq.BeginDelivery{Claim: testClaim, Proof: v.Hash()}) {
		t.Errorf("asked %+v", desk.asked[1])
	}
}

// TestNotAuthorized: every answer but the desk's durable yes to this request gives
// nothing.
func TestNotAuthorized(t *testing.T) {
	atomic, delivery := atomicOf(t, testClaim), deliveryOf(t, testClaim)
	c, v := countersigned(t, built(t, &atomic)), built(t, &delivery)
	machinery := errors.New("no journal")
	for name, do := range map[string]struct {
		kind, other rfq.RequestKind
		authorize   func(a Authorizer) (Authorized, error)
	}{
		"cosign":  {rfq.KindCosignClaim, rfq.KindBeginDelivery, c.Authorize},
		"deliver": {rfq.KindBeginDelivery, rfq.KindCosignClaim, func(a Authorizer) (Authorized, error) { return AuthorizeDelivery(a, testClaim, v) }},
	} {
		a, err := do.authorize(refusing(do.kind, event.ReasonLocked))
		var refused *Refused
		if !errors.As(err, &refused) || refused.Outcome.Reason != event.ReasonLocked || refused.Claim != testClaim || a != (Authorized{}) {
			t.Errorf("%s: %v", name, err)
		}
		for what, c := range map[string]struct {
			a    answering
			want error
		}{
			"machinery":       {answering{err: machinery}, machinery},
			"yes and error":   {answering{rfq.Outcome{Kind: do.kind}, machinery}, machinery},
			"zero outcome":    {answering{}, ErrOutcome},
			"another request": {answering{outcome: rfq.Outcome{Kind: do.other}}, ErrOutcome},
			"another's no":    {refusing(do.other, event.ReasonLocked), ErrOutcome},
		} {
			if a, err := do.authorize(c.a); !errors.Is(err, c.want) || a != (Authorized{}) {
				t.Errorf("%s: %s: %v", name, what, err)
			}
		}
	}
}

// TestNoDelivery: what is no delivery of the claim is not even asked about.
func TestNoDelivery(t *testing.T) {
	delivery, atomic := deliveryOf(t, testClaim), atomicOf(t, testClaim)
	desk := &agreeing{}
	if a, err := AuthorizeDelivery(desk, testClaim+1, built(t, &delivery)); !errors.Is(err, ErrShape) || a != (Authorized{}) {
		t.Errorf("another claim: %v", err)
	}
	if a, err := AuthorizeDelivery(desk, testClaim, built(t, &atomic)); !errors.Is(err, ErrShape) || a != (Authorized{}) {
		t.Errorf("an atomic transaction: %v", err)
	}
	if len(desk.asked) != 0 {
		t.Errorf("asked %d times", len(desk.asked))
	}
}

// scripted is a signer with a prepared result.
type scripted struct {
	address   solana.Address
	signature solana.Signature
	err       error
	asked     int
}

func (s *scripted) Address() solana.Address { return s.address }

func (s *scripted) Sign(context.Context, Job) (solana.Signature, error) {
	s.asked++
	return s.signature, s.err
}

// TestBadSigner: a signer is not believed.
func TestBadSigner(t *testing.T) {
	for name, b := range variants(t) {
		a, message := authorized(t, b), built(t, b).Message()
		broken := errors.New("broken")
		good := signatureOf(deskKey, message)
		for what, c := range map[string]struct {
			s     scripted
			want  error
			asked int
		}{
			"the taker":           {scripted{address: takerAddress, signature: good}, ErrSigner, 0},
			"nobody":              {scripted{signature: good}, ErrSigner, 0},
			"error":               {scripted{address: deskAddress, signature: good, err: broken}, broken, 1},
			"nothing":             {scripted{address: deskAddress}, ErrSigner, 1},
			"another's signature": {scripted{address: deskAddress, signature: signatureOf(otherKey, message)}, ErrSigner, 1},
			"of another message":  {scripted{address: deskAddress, signature: signatureOf(deskKey, message[1:])}, ErrSigner, 1},
			"malleated":           {scripted{address: deskAddress, signature: malleated(good)}, ErrSigner, 1},
		} {
			x, err := a.Sign(context.Background(), &c.s)
			if !errors.Is(err, c.want) || !x.IsZero() || c.s.asked != c.asked {
				t.Errorf("%s: %s: %v, asked %d times", name, what, err, c.s.asked)
			}
		}
	}
	// The key itself refuses a job that is another's.
	delivery := deliveryOf(t, testClaim)
	job := Job{authorized(t, &delivery).authorized}
	other := newFileSigner((*[64]byte)(otherKey))
	if got, err := other.Sign(context.Background(), job); !errors.Is(err, ErrSigner) || got != (solana.Signature{}) {
		t.Errorf("another key: %v", err)
	}
}
