package cosign

import (
	"context"
	"crypto/ed25519"
	"testing"

	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/internal/runtest"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/build"
	"blockdesk/internal/solana/token"
	"blockdesk/market"
	"blockdesk/settle/binding"
)

// testClaim is the claim that these tests settle.
const testClaim = market.ClaimID(0x1234567)

// The parties. Keys are made from a number, so they are always the same.
var (
	deskKey, takerKey, otherKey = keyOf(1), keyOf(2), keyOf(3)

	deskAddress, takerAddress, otherAddress = addressOf(deskKey), addressOf(takerKey), addressOf(otherKey)

	treasury = addressOf(keyOf(4))
)

func keyOf(n byte) ed25519.PrivateKey {
	seed := make([]byte, ed25519.SeedSize)
	seed[0] = n
	return ed25519.NewKeyFromSeed(seed)
}

func addressOf(k ed25519.PrivateKey) solana.Address {
	return solana.Address(k.Public().(ed25519.PublicKey))
}

func signatureOf(k ed25519.PrivateKey, message []byte) solana.Signature {
	return solana.Signature(ed25519.Sign(k, message))
}

// deskSigner returns the desk's signer.
func deskSigner() *FileSigner { return newFileSigner((*[ed25519.PrivateKeySize]byte)(deskKey)) }

func checkedMint(t testing.TB, n byte, program solana.Address, decimals uint8) token.Checked {
	t.Helper()
	m := token.Mint{Address: solana.Address{n, n}, Program: program, Decimals: decimals}
	c, err := m.Check(0)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func commonOf(claim market.ClaimID) build.Common {
	return build.Common{
		Blockhash: solana.Hash{5, 5}, Budget: build.Budget{Units: 120_000, MicroLamports: 50_000},
		Memo: binding.Memo(claim), Reference: binding.Reference(claim),
	}
}

// atomicOf and deliveryOf are what the desk signs for a claim; a test may spoil
// them.
func atomicOf(t testing.TB, claim market.ClaimID) build.Atomic {
	t.Helper()
	return build.Atomic{
		Common: commonOf(claim), Taker: takerAddress, Desk: deskAddress,
		Payment: build.Leg{Rail: market.RailUSDC, Mint: checkedMint(t, 6, solana.TokenProgram, 6), Amount: 250_000_000, To: treasury},
		Base:    checkedMint(t, 7, solana.TokenProgram, 9), BaseAmount: 251_256_281_407,
		FeePayer: build.Desk, RentPayer: build.Taker,
	}
}

func deliveryOf(t testing.TB, claim market.ClaimID) build.Delivery {
	t.Helper()
	return build.Delivery{
		Common: commonOf(claim), Desk: deskAddress, Wallet: takerAddress,
		Base: checkedMint(t, 7, solana.TokenProgram, 9), Amount: 251_256_281_407,
	}
}

// builder is either of them.
type builder interface {
	Build(*solana.AccountCache) (*build.Unsigned, error)
}

func built(t testing.TB, b builder) *build.Unsigned {
	t.Helper()
	u, err := b.Build(&solana.AccountCache{})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// variants are all forms that package build gives the two transactions.
func variants(t testing.TB) map[string]builder {
	t.Helper()
	list := map[string]builder{}
	for name, spoil := range map[string]func(a *build.Atomic){
		"usdc":            func(*build.Atomic) {},
		"taker pays fee":  func(a *build.Atomic) { a.FeePayer = build.Taker },
		"desk pays rent":  func(a *build.Atomic) { a.RentPayer = build.Desk },
		"taker pays both": func(a *build.Atomic) { a.FeePayer, a.RentPayer = build.Taker, build.Taker },
		"paid to desk":    func(a *build.Atomic) { a.Payment.To = deskAddress },
		"token 2022":      func(a *build.Atomic) { a.Base = checkedMint(t, 8, solana.Token2022Program, 9) },
		"sol":             func(a *build.Atomic) { a.Payment = build.Leg{Rail: market.RailSOL, Amount: 7, To: treasury} },
		"sol to desk":     func(a *build.Atomic) { a.Payment = build.Leg{Rail: market.RailSOL, Amount: 7, To: deskAddress} },
		"sol, taker pays fee": func(a *build.Atomic) {
			a.Payment, a.FeePayer = build.Leg{Rail: market.RailSOL, Amount: 7, To: deskAddress}, build.Taker
		},
	} {
		a := atomicOf(t, testClaim)
		spoil(&a)
		list["atomic "+name] = &a
	}
	plain, other := deliveryOf(t, testClaim), deliveryOf(t, testClaim)
	other.Base = checkedMint(t, 8, solana.Token2022Program, 6)
	list["delivery"], list["delivery token 2022"] = &plain, &other
	return list
}

// countersigned returns a built transaction with the taker's signature.
func countersigned(t testing.TB, u *build.Unsigned) Countersigned {
	t.Helper()
	c, err := Countersign(testClaim, u.Bytes(), takerAddress, Submission{Signature: signatureOf(takerKey, u.Message())})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// agreeing is a desk that agrees with everything, and notes what it was asked.
type agreeing struct{ asked []rfq.Request }

func (a *agreeing) Do(r rfq.Request) (*desk.Result, error) {
	a.asked = append(a.asked, r)
	return &desk.Result{Outcome: rfq.Outcome{Kind: r.Kind()}}, nil
}

// answering is a desk with one answer.
type answering struct {
	outcome rfq.Outcome
	err     error
}

func (a answering) Do(rfq.Request) (*desk.Result, error) {
	return &desk.Result{Outcome: a.outcome}, a.err
}

func refusing(kind rfq.RequestKind, reason event.Reason) answering {
	return answering{outcome: rfq.Outcome{Kind: kind, Reason: reason}}
}

// authorized returns a built transaction that the desk has agreed to.
func authorized(t testing.TB, b builder) Authorized {
	t.Helper()
	u := built(t, b)
	var a Authorized
	var err error
	if len(u.Signers()) == deskSignsAlone {
		a, err = AuthorizeDelivery(&agreeing{}, testClaim, u)
	} else {
		a, err = countersigned(t, u).Authorize(&agreeing{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func signedBy(t testing.TB, a Authorized, s Signer) Signed {
	t.Helper()
	x, err := a.Sign(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), runtest.HangTimeout)
	t.Cleanup(cancel)
	return ctx
}
