package proof

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/ledger"
	"blockdesk/internal/solana/payment"
	"blockdesk/internal/solana/rpc"
	"blockdesk/internal/solana/token"
	"blockdesk/internal/solana/tx"
	"blockdesk/market"
	"blockdesk/settle/binding"
)

// fakeNode is a node of which a test says what it knows, in what order, and how
// it fails. It is one account's history: that of the treasury's USDC account.
type fakeNode struct {
	mu    sync.Mutex
	known map[solana.Signature]*ledger.Confirmed
	// list is the history from old to new.
	list  []rpc.SignatureInfo
	reads map[solana.Signature]int
	pages int
	// listed is the number of listed signatures.
	listed int
	// fail answers in place of the node, where it is set and returns an error.
	fail func(s solana.Signature) error
	// wait is called in each read, without the lock.
	wait func(ctx context.Context, s solana.Signature)
	// lost: the node does not know what until names. circles: nor what before does.
	lost, circles bool
}

func newFake() *fakeNode {
	return &fakeNode{known: map[solana.Signature]*ledger.Confirmed{}, reads: map[solana.Signature]int{}}
}

func (f *fakeNode) Transaction(ctx context.Context, s solana.Signature, _ rpc.Commitment) (*ledger.Confirmed, bool, error) {
	f.mu.Lock()
	f.reads[s]++
	c, fail, wait := f.known[s], f.fail, f.wait
	f.mu.Unlock()
	if wait != nil {
		wait(ctx, s)
	}
	if err := ctx.Err(); err != nil {
		return nil, false, &rpc.Error{Kind: rpc.Down, Err: err}
	}
	if fail != nil {
		if err := fail(s); err != nil {
			return nil, false, err
		}
	}
	return c, c != nil, nil
}

func (f *fakeNode) TransactionByQuorum(ctx context.Context, s solana.Signature, level rpc.Commitment) (*ledger.Confirmed, bool, error) {
	return f.Transaction(ctx, s, level)
}

func (f *fakeNode) FindTransaction(ctx context.Context, s solana.Signature, level rpc.Commitment) (*ledger.Confirmed, bool, error) {
	return f.Transaction(ctx, s, level)
}

func (f *fakeNode) TransactionFromEach(ctx context.Context, s solana.Signature, level rpc.Commitment) ([]rpc.NodeTransaction, error) {
	c, _, err := f.Transaction(ctx, s, level)
	return []rpc.NodeTransaction{{Upstream: "fake", Err: err, Transaction: c}}, nil
}

func (f *fakeNode) Signatures(_ context.Context, a solana.Address, page rpc.Page, _ rpc.Commitment) ([]rpc.SignatureInfo, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pages++
	if f.fail != nil {
		if err := f.fail(solana.Signature{}); err != nil {
			return nil, err
		}
	}
	if a != fakeCoin.of(fakeTreasury.addr) {
		return nil, nil
	}
	position := func(s solana.Signature) int {
		return slices.IndexFunc(f.list, func(x rpc.SignatureInfo) bool { return x.Signature == s })
	}
	from, to := 0, len(f.list)
	if at := position(page.Until); at >= 0 && !f.lost {
		from = at + 1
	}
	if at := position(page.Before); at >= 0 && !f.circles {
		to = at
	}
	got := slices.Clone(f.list[min(from, to):to])
	slices.Reverse(got)
	got = got[:min(len(got), rpc.MaxSignaturesPerCall)]
	f.listed += len(got)
	return got, nil
}

func (f *fakeNode) SignaturesInTurn(ctx context.Context, a solana.Address, page rpc.Page, level rpc.Commitment) ([]rpc.SignatureInfo, error) {
	return f.Signatures(ctx, a, page, level)
}

func (f *fakeNode) SignaturePageFromEach(ctx context.Context, a solana.Address, page rpc.Page, level rpc.Commitment) ([]rpc.NodeSignatures, error) {
	list, err := f.Signatures(ctx, a, page, level)
	return []rpc.NodeSignatures{{Upstream: "fake", Err: err, List: list[:min(len(list), page.Limit)]}}, nil
}

func (f *fakeNode) FirstBlockFromEach(context.Context) ([]rpc.NodeFirstBlock, error) {
	return make([]rpc.NodeFirstBlock, 1), nil
}

func (f *fakeNode) Upstreams() int { return 1 }

func (f *fakeNode) set(change func(f *fakeNode)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func (f *fakeNode) count() (reads int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range f.reads {
		reads += n
	}
	return reads
}

func (f *fakeNode) readsOf(s solana.Signature) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reads[s]
}

// lands enters a transaction at the end of the history, in a slot of its own.
func (f *fakeNode) lands(c *ledger.Confirmed) solana.Signature {
	f.mu.Lock()
	defer f.mu.Unlock()
	c.Slot = uint64(1000 + len(f.list))
	f.known[c.Signature()] = c
	f.list = append(f.list, rpc.SignatureInfo{Signature: c.Signature(), Slot: c.Slot, BlockTime: c.BlockTime, Failed: c.Failed})
	return c.Signature()
}

// fakePerson is made of a name.
func fakePerson(name string) person {
	seed := sha256.Sum256([]byte(name))
	return personOf(ed25519.NewKeyFromSeed(seed[:]))
}

// The cast without a chain.
var (
	fakePayer, fakeFriend, fakeTreasury = fakePerson("payer"), fakePerson("friend"), fakePerson("treasury")
	fakeCoin                            = coin{solana.Address{0xcc}, solana.TokenProgram, 6}
)

// fakeMint is the checked mint of fakeCoin.
func fakeMint(t testing.TB) token.Checked {
	t.Helper()
	m := token.Mint{Address: fakeCoin.mint, Program: fakeCoin.program, Decimals: fakeCoin.decimals}
	checked, err := m.Check(token.Harmless())
	if err != nil {
		t.Fatal(err)
	}
	return checked
}

// transfer is a finalized transaction that pays the treasury USDC, with these memos.
// No two are alike.
func (f *fakeNode) transfer(t testing.TB, from person, atoms uint64, memos ...string) *ledger.Confirmed {
	t.Helper()
	f.mu.Lock()
	n := len(f.list)
	f.mu.Unlock()
	l := draft{payer: from.addr, calls: []call{fakeCoin.give(from.addr, fakeTreasury.addr, atoms)}}
	for _, text := range memos {
		l.calls = append(l.calls, memo(text))
	}
	m := l.compile(solana.Hash(sha256.Sum256(fmt.Appendf(nil, "block %d %d", n, atoms))))
	raw, err := seal(m, []person{from})
	if err != nil {
		t.Fatal(err)
	}
	whole, err := tx.Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	c := &ledger.Confirmed{
		Tx: whole, BlockTime: time.Now().Unix(), Fee: 5000, Keys: m.Keys,
		Before: make([]market.Amount, len(m.Keys)), After: make([]market.Amount, len(m.Keys)),
	}
	for i := range m.Keys {
		c.Before[i], c.After[i] = 1e9, 1e9
	}
	c.After[0] -= 5000
	holds := func(wallet solana.Address, before, after uint64) {
		b := ledger.TokenBalance{
			Account: slices.Index(m.Keys, fakeCoin.of(wallet)), Mint: fakeCoin.mint, Owner: wallet, Program: fakeCoin.program,
			Amount: market.Amount(before), Decimals: fakeCoin.decimals,
		}
		c.TokensBefore = append(c.TokensBefore, b)
		b.Amount = market.Amount(after)
		c.TokensAfter = append(c.TokensAfter, b)
	}
	holds(from.addr, plenty, plenty-atoms)
	holds(fakeTreasury.addr, 7, 7+atoms)
	return c
}

// pays lands the honest payment of a claim.
func (f *fakeNode) pays(t testing.TB, c *rfq.Claim) solana.Signature {
	t.Helper()
	return f.lands(f.transfer(t, fakePayer, due(c), binding.Memo(c.ID)))
}

// table is a prover, its desk and store, over a fake node.
type table struct {
	t     testing.TB
	node  *fakeNode
	desk  *machineDesk
	store *memStore
	*Prover
	// start and clock make the prover's time, which passes when a test says so.
	start time.Time
	clock time.Duration
}

func newTable(t testing.TB, change func(o *Options)) *table {
	t.Helper()
	x := &table{t: t, node: newFake(), store: newMemStore(), start: time.Now()}
	x.desk = newDesk(t, fakeCoin.mint, [market.RailCount]solana.Address{market.RailUSDC: fakeTreasury.addr, market.RailSOL: fakeTreasury.addr})
	x.restart(change)
	return x
}

// restart makes the prover anew, over what is durable.
func (x *table) restart(change func(o *Options)) {
	x.t.Helper()
	var o Options
	o.Rails[market.RailUSDC] = Rail{Mint: fakeMint(x.t), Treasury: []solana.Address{fakeTreasury.addr}}
	o.Logger = slog.New(slog.DiscardHandler)
	o.Now = func() time.Time { return x.start.Add(x.clock) }
	if change != nil {
		change(&o)
	}
	p, err := New(o, x.node, x.desk, x.store)
	if err != nil {
		x.t.Fatal(err)
	}
	x.Prover = p
}

// desk2 puts another desk behind the prover.
func (x *table) desk2(d Desk) { x.Prover.desk = d }

func (x *table) take() *rfq.Claim {
	x.t.Helper()
	return x.desk.take(x.t, fakePayer.addr, market.RailUSDC, rfq.Modular, 1)
}

func (x *table) state(c *rfq.Claim) rfq.ClaimState {
	x.t.Helper()
	now, ok, err := x.desk.Claim(c.ID)
	if err != nil || !ok {
		x.t.Fatalf("claim %d: %t, %v", c.ID, ok, err)
	}
	return now.Claim.State
}

// wants checks a verdict.
func (x *table) wants(r *desk.PaymentProof, w verdictWord, word payment.Reason) *desk.Verdict {
	x.t.Helper()
	v, err := x.Verify(x.t.Context(), r)
	if err != nil || wordOf(&v) != w || v.Mismatch != string(word) {
		x.t.Errorf("%+v (%s), %v", v, v.Refused, err)
	}
	return &v
}
