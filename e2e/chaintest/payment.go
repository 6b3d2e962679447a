package chaintest

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"

	"github.com/gagliardetto/solana-go/base58"

	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/internal/sandbox"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/build"
	"blockdesk/internal/solana/token"
	"blockdesk/market"
)

// SignedPayment is a transaction that only its payer has signed, and its signature in
// base58.
type SignedPayment struct {
	Raw       []byte
	Signature string
}

// Sign signs an unsigned transaction whose only signer is the buyer.
func (b *Buyer) Sign(raw []byte) SignedPayment {
	signed := slices.Clone(raw)
	copy(signed[1:], ed25519.Sign(b.Key, raw[1+64:]))
	return SignedPayment{signed, base58.Encode(signed[1:65])}
}

// Broadcast sends a transaction to the chain without the desk. It retries while the
// chain has a transient fault.
func (r *Rig) Broadcast(ctx context.Context, raw []byte) error {
	text := base64.StdEncoding.EncodeToString(raw)
	var last error
	return cmp.Or(await.Poll(ctx, "the chain to take a transaction", func() bool {
		last = r.Chain.Call(ctx, "sendTransaction", []any{text, map[string]any{"encoding": "base64", "preflightCommitment": "confirmed"}}, nil)
		return last == nil || ctx.Err() != nil || !isTransient(last)
	}), last)
}

func isTransient(err error) bool {
	var refused *sandbox.Error
	if !errors.As(err, &refused) {
		return true
	}
	const preflight, invalid = -32002, -32602
	return refused.Code != preflight && refused.Code != invalid
}

// MustBroadcast is Broadcast that must succeed.
func (r *Rig) MustBroadcast(raw []byte) {
	r.T.Helper()
	ctx, cancel := context.WithTimeout(r.T.Context(), runtest.HangTimeout)
	defer cancel()
	if err := r.Broadcast(ctx, raw); err != nil {
		r.T.Fatal(err)
	}
}

// TryBlockhash returns the chain's newest confirmed blockhash.
func (r *Rig) TryBlockhash(ctx context.Context) (solana.Hash, error) {
	var got struct {
		Value struct {
			Blockhash string `json:"blockhash"`
		} `json:"value"`
	}
	if err := r.Chain.Call(ctx, "getLatestBlockhash", []any{map[string]any{"commitment": "confirmed"}}, &got); err != nil {
		return solana.Hash{}, err
	}
	return solana.ParseHash(got.Value.Blockhash)
}

// OwnPayment is a payment that a wallet makes by itself, with any memo and reference.
type OwnPayment struct {
	Memo      string
	Reference string
	Rail      market.Rail
	Atoms     uint64
}

// Pays signs such a payment.
func (b *Buyer) Pays(p OwnPayment) SignedPayment {
	b.Rig.T.Helper()
	hash, err := b.Rig.TryBlockhash(b.Rig.T.Context())
	if err != nil {
		b.Rig.T.Fatal(err)
	}
	return b.Payment(p, hash)
}

// Payment is Pays with a blockhash.
func (b *Buyer) Payment(p OwnPayment, hash solana.Hash) SignedPayment {
	leg := build.Leg{Rail: p.Rail, Amount: market.Amount(p.Atoms), To: b.Rig.address(b.Rig.Setup.Treasury.Address)}
	if p.Rail == market.RailUSDC {
		m := token.Mint{
			Address: b.Rig.address(b.Rig.Setup.Mints["USDC"].Address), Program: b.Rig.address(b.Rig.Setup.Mints["USDC"].Program), Decimals: 6,
		}
		leg.Mint = programtest.Must(m.Check(0))
	}
	payment := build.Payment{
		Common: build.Common{
			Blockhash: hash, Budget: build.Budget{Units: 200_000, MicroLamports: 1_000}, Memo: p.Memo,
			Reference: b.Rig.address(p.Reference),
		},
		Wallet: b.Address, Leg: leg,
	}
	return b.Sign(programtest.Must(payment.Build(&solana.AccountCache{})).Bytes())
}

// ParseAtoms parses a number of atoms, and panics if there is none.
func ParseAtoms(text string) (n uint64) {
	if _, err := fmt.Sscan(text, &n); err != nil {
		panic(err)
	}
	return n
}
