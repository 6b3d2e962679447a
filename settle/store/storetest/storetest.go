// Package storetest makes what the tests of settlement need: deterministic keys, unsigned
// builds, and transactions with all their signatures, made by the same code that the
// service uses.
//
// Its Desk accepts and signs everything, without the guards of package cosign, so it
// belongs in tests only. Forge makes a record of a transaction as the service would have
// stored it, with chosen claim, kind and number, for stores that must refuse or recover
// it.
package storetest

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"testing"

	voi "github.com/oasisprotocol/curve25519-voi/primitives/ed25519"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/build"
	"blockdesk/internal/solana/token"
	"blockdesk/market"
	"blockdesk/settle/binding"
	"blockdesk/settle/cosign"
)

// Key returns a key that is derived from a number.
func Key(n byte) ed25519.PrivateKey {
	seed := make([]byte, ed25519.SeedSize)
	seed[0] = n
	return ed25519.NewKeyFromSeed(seed)
}

// AddressOf returns a key's address.
func AddressOf(key ed25519.PrivateKey) solana.Address {
	return solana.Address(key.Public().(ed25519.PublicKey))
}

// Desk is a desk that accepts and signs everything.
type Desk struct{ Key ed25519.PrivateKey }

// Address implements cosign.Signer.
func (d Desk) Address() solana.Address { return AddressOf(d.Key) }

// Sign implements cosign.Signer.
func (d Desk) Sign(_ context.Context, j cosign.Job) (solana.Signature, error) {
	return solana.Signature(ed25519.Sign(d.Key, j.Message())), nil
}

// Do implements cosign.Authorizer.
func (d Desk) Do(r rfq.Request) (*desk.Result, error) {
	return &desk.Result{Outcome: rfq.Outcome{Kind: r.Kind()}}, nil
}

// Deliver signs a delivery.
func (d Desk) Deliver(t testing.TB, claim market.ClaimID, u *build.Unsigned) cosign.Signed {
	t.Helper()
	a, err := cosign.AuthorizeDelivery(d, claim, u)
	if err != nil {
		t.Fatal(err)
	}
	return d.sign(t, a)
}

// Cosign signs an atomic transaction after its taker.
func (d Desk) Cosign(t testing.TB, claim market.ClaimID, u *build.Unsigned, taker ed25519.PrivateKey) cosign.Signed {
	t.Helper()
	return d.CosignBy(t, claim, u, AddressOf(taker), solana.Signature(ed25519.Sign(taker, u.Message())))
}

// CosignBy signs an atomic transaction after its taker has.
func (d Desk) CosignBy(t testing.TB, claim market.ClaimID, u *build.Unsigned, taker solana.Address, sig solana.Signature) cosign.Signed {
	t.Helper()
	c, err := cosign.Countersign(claim, u.Bytes(), taker, cosign.Submission{Signature: sig})
	if err != nil {
		t.Fatal(err)
	}
	a, err := c.Authorize(d)
	if err != nil {
		t.Fatal(err)
	}
	return d.sign(t, a)
}

// Resign signs a message with randomness: unlike an ordinary signer it returns
// another valid signature each time.
func Resign(t testing.TB, key ed25519.PrivateKey, message []byte) solana.Signature {
	t.Helper()
	sig, err := voi.PrivateKey(key).Sign(rand.Reader, message, &voi.Options{AddedRandomness: true})
	if err != nil {
		t.Fatal(err)
	}
	return solana.Signature(sig)
}

func (d Desk) sign(t testing.TB, a cosign.Authorized) cosign.Signed {
	t.Helper()
	x, err := a.Sign(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// The keys of the stock transactions.
const (
	DeskKey  = 1
	TakerKey = 2
)

// Common binds a transaction to a claim, by a made-up blockhash.
func Common(claim market.ClaimID, blockhash byte) build.Common {
	return build.Common{
		Blockhash: solana.Hash{blockhash, 1}, Budget: build.Budget{Units: 120_000, MicroLamports: 50_000},
		Memo: binding.Memo(claim), Reference: binding.Reference(claim),
	}
}

// Delivery returns a stock delivery, signed. Another blockhash gives another
// message.
func Delivery(t testing.TB, claim market.ClaimID, blockhash byte) cosign.Signed {
	t.Helper()
	d := build.Delivery{
		Common: Common(claim, blockhash), Desk: AddressOf(Key(DeskKey)), Wallet: AddressOf(Key(TakerKey)), Base: Mint(t), Amount: 251_256_281_407,
	}
	return Desk{Key(DeskKey)}.Deliver(t, claim, Build(t, &d))
}

// Atomic returns a stock atomic transaction, signed by both.
func Atomic(t testing.TB, claim market.ClaimID, blockhash byte, feePayer build.Party) cosign.Signed {
	t.Helper()
	a := build.Atomic{
		Common: Common(claim, blockhash), Taker: AddressOf(Key(TakerKey)), Desk: AddressOf(Key(DeskKey)),
		Payment: build.Leg{Rail: market.RailSOL, Amount: 7, To: AddressOf(Key(3))},
		Base:    Mint(t), BaseAmount: 251_256_281_407, FeePayer: feePayer, RentPayer: build.Taker,
	}
	return Desk{Key(DeskKey)}.Cosign(t, claim, Build(t, &a), Key(TakerKey))
}

// Builder is a transaction of package build.
type Builder interface {
	Build(accounts *solana.AccountCache) (*build.Unsigned, error)
}

// Build builds a transaction.
func Build(t testing.TB, b Builder) *build.Unsigned {
	t.Helper()
	u, err := b.Build(&solana.AccountCache{})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// Mint returns the stock base asset.
func Mint(t testing.TB) token.Checked {
	t.Helper()
	m := token.Mint{Address: solana.Address{7, 7}, Program: solana.TokenProgram, Decimals: 9}
	c, err := m.Check(0)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
