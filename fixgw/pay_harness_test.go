package fixgw

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go/base58"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// till is a Settlement whose chain the test holds in its hands.
type till struct {
	mu      sync.Mutex
	away    error                     // what every call returns; nil = the chain is there
	refused error                     // of Package alone
	known   map[[64]byte]desk.Verdict // by signature; the others are pending
	packed  map[market.ClaimID]int    // calls of Package
	proved  map[desk.PaymentProof]int // calls of Verify
	held    chan struct{}             // calls wait for its end; nil = they do not
}

var errAway = errors.New("no node answers, says 10.0.0.1")

func newTill() *till {
	return &till{known: map[[64]byte]desk.Verdict{}, packed: map[market.ClaimID]int{}, proved: map[desk.PaymentProof]int{}}
}

func (b *till) Ready() error { return nil }

func (b *till) Package(ctx context.Context, c *rfq.Claim, _ desk.FeePayer) (desk.Package, error) {
	if err := b.enter(ctx, func() { b.packed[c.ID]++ }); err != nil {
		return desk.Package{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return desk.Package{
		Transaction: bytes.Repeat([]byte{byte(c.ID)}, 300), Reference: testAccount(byte(c.ID)), Memo: string(market.AppendClaimID(nil, c.ID)),
	}, b.refused
}

func (b *till) Verify(ctx context.Context, p *desk.PaymentProof) (desk.Verdict, error) {
	if err := b.enter(ctx, func() { b.proved[*p]++ }); err != nil {
		return desk.Verdict{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if v, ok := b.known[p.Signature]; ok {
		return v, nil
	}
	return desk.Verdict{Pending: 10 * time.Millisecond}, nil
}

func (b *till) enter(ctx context.Context, note func()) error {
	b.mu.Lock()
	note()
	held, away := b.held, b.away
	b.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return away
}

// set changes the till.
func (b *till) set(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

// calls is how often the till was asked, for packages and for payments.
func (b *till) calls() (packages, proofs int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, n := range b.packed {
		packages += n
	}
	for _, n := range b.proved {
		proofs += n
	}
	return packages, proofs
}

// newTillShop is newShop with a till.
func newTillShop(t testing.TB, compIDs []string, change func(*Options)) (*harness, *till) {
	d, b := newShop(t, compIDs, change), newTill()
	d.till = b
	d.gateway.quoteEntry.Settlement = b
	return d, b
}

// paidBy is a signature and its text.
func paidBy(n byte) (signature [64]byte, text string) {
	signature = [64]byte{0: n, 63: 1}
	return signature, base58.Encode(signature[:])
}
