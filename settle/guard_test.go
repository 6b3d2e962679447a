package settle_test

import (
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/internal/await"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
	"blockdesk/settle"
	"blockdesk/settle/cosign"
)

// hookedSigner counts the signatures that it is asked for, and does what a test
// wants before it gives one.
type hookedSigner struct {
	cosign.Signer
	calls atomic.Int64
	hook  atomic.Pointer[func(j cosign.Job) error]
	other atomic.Pointer[solana.Address] // whose key it says that it has
}

func newHookedSigner(t testing.TB, c *chain) *hookedSigner {
	t.Helper()
	key, err := cosign.OpenKeyFile(c.keyFile())
	c.must(err)
	return &hookedSigner{Signer: key}
}

func (s *hookedSigner) Address() solana.Address {
	if other := s.other.Load(); other != nil {
		return *other
	}
	return s.Signer.Address()
}

func (s *hookedSigner) on(hook func(j cosign.Job) error) { s.hook.Store(&hook) }

func (s *hookedSigner) Sign(ctx context.Context, j cosign.Job) (solana.Signature, error) {
	s.calls.Add(1)
	if hook := s.hook.Load(); hook != nil {
		if err := (*hook)(j); err != nil {
			return solana.Signature{}, err
		}
	}
	if err := ctx.Err(); err != nil { // as one in another process
		return solana.Signature{}, err
	}
	return s.Signer.Sign(ctx, j)
}

// setTokens makes a wallet's account of a token hold so many atoms, and returns
// how many it held.
func (c *chain) setTokens(w solana.Address, symbol string, atoms uint64) (was uint64) {
	c.t.Helper()
	list, _, err := c.client.TokenAccounts(context.WithoutCancel(c.t.Context()), w, c.mints[symbol], solana.Address{}, rpc.Confirmed)
	c.must(err)
	a := list[0]
	was = amountOf(c.t, a)
	for i := range 8 {
		a.Data[64+i] = byte(atoms >> (8 * i))
	}
	c.control("setAccount", map[string]any{
		"pubkey": solana.Base58(a.Address), "lamports": uint64(a.Lamports), "owner": solana.Base58(a.Owner),
		"data": base64.StdEncoding.EncodeToString(a.Data),
	})
	return was
}

// guarded is a submission that some guard must refuse.
type guarded struct {
	name   string
	rail   market.Rail   // 0 = USDC
	payer  desk.FeePayer // 0 = the desk
	wallet func(l *life) wallet
	// spoil makes the guard trip, and returns what undoes it.
	spoil func(l *life, w wallet) (undo func())
	// key is what the desk's has become meanwhile; zero = the same.
	key solana.Address
	// submit is what is submitted; nil = what the taker signed, by the taker.
	submit func(l *life, w wallet, p *desk.Package) (by solana.Address, s desk.Submission)
	want   desk.RefusalReason
	// lost: the claim cannot be saved by undoing.
	lost bool
}

func submission(raw []byte) desk.Submission { return desk.Submission{Transaction: raw} }

// spoiled returns the taker's transaction after a change.
func spoiled(change func(raw []byte) []byte) func(*life, wallet, *desk.Package) (solana.Address, desk.Submission) {
	return func(l *life, w wallet, p *desk.Package) (solana.Address, desk.Submission) {
		return w.address, submission(change(w.fill(l.t, p.Transaction)))
	}
}

// newWallet has a key and nothing else.
func newWallet(l *life) wallet {
	l.t.Helper()
	return freshWallet(l.t)
}

func reason(r rfq.Request, undo rfq.Request) func(l *life, _ wallet) func() {
	return func(l *life, _ wallet) func() {
		l.must(r)
		return func() { l.must(undo) }
	}
}

func pairOf(l *life, in market.InstrumentID) rfq.Pair { return *l.desk.View().Pair(in) }

var guards = []guarded{
	{name: "nothing", want: desk.RefusalEmptyCounterparty, submit: func(_ *life, w wallet, _ *desk.Package) (solana.Address, desk.Submission) {
		return w.address, desk.Submission{}
	}},
	{name: "nobody has signed", want: desk.RefusalEmptyCounterparty, submit: func(_ *life, w wallet, p *desk.Package) (solana.Address, desk.Submission) {
		return w.address, submission(p.Transaction)
	}},
	{name: "another taker", want: desk.RefusalTakerMismatch, submit: func(l *life, w wallet, p *desk.Package) (solana.Address, desk.Submission) {
		return l.chain.wallet(11).address, submission(w.fill(l.t, p.Transaction))
	}},
	{name: "a byte more", want: desk.RefusalMessageMismatch, submit: spoiled(func(raw []byte) []byte { return append(raw, 0) })},
	{name: "a byte less", want: desk.RefusalMessageMismatch, submit: spoiled(func(raw []byte) []byte { return raw[:len(raw)-1] })},
	{name: "another amount", want: desk.RefusalMessageMismatch, submit: spoiled(func(raw []byte) []byte { raw[len(raw)-40]++; return raw })},
	{name: "another's signature", want: desk.RefusalBadSignature, submit: func(l *life, w wallet, p *desk.Package) (solana.Address, desk.Submission) {
		return w.address, desk.Submission{Signature: l.chain.wallet(11).sign(messageOf(l.t, p.Transaction))}
	}},
	{name: "another USDC", want: desk.RefusalExpired, spoil: func(l *life, _ wallet) func() {
		old := l.desk.View().Policy
		other := old
		other.USDCMint = l.chain.mints[symbols[2]]
		l.must(&rfq.SetPolicy{Policy: other})
		return func() {
			l.must(&rfq.SetPolicy{Policy: old})
			l.ready()
		}
	}},
	{name: "another key", want: desk.RefusalExpired, key: solana.Address{7}},
	{name: "another key, and SOL", rail: market.RailSOL, want: desk.RefusalExpired, key: solana.Address{7}},
	{name: "a lock", want: desk.RefusalLocked, spoil: reason(
		&rfq.SetLock{Scope: rfq.LockAll, Locked: true, Reason: "drill"}, &rfq.SetLock{Scope: rfq.LockAll})},
	{name: "a price far off", want: desk.RefusalPriceCorridor, spoil: reason(
		&rfq.SetAnchor{Instrument: 1, Price: 2_000_000_000}, &rfq.SetAnchor{Instrument: 1, Price: 1_000_000_000})},
	{name: "SOL fell", rail: market.RailSOL, want: desk.RefusalPriceCorridor, spoil: reason(
		&rfq.SetRailPrice{Rail: market.RailSOL, Price: 75_000_000_000}, &rfq.SetRailPrice{Rail: market.RailSOL, Price: 150_000_000_000})},
	{name: "an old price", want: desk.RefusalPriceStale, spoil: func(l *life, _ wallet) func() {
		old := pairOf(l, 1)
		stale := old
		stale.MaxAge = 1
		l.must(&rfq.SetPair{Pair: stale})
		return func() { l.must(&rfq.SetPair{Pair: old}) }
	}},
	{name: "inventory lowered", want: desk.RefusalInventory, spoil: reason(
		&rfq.SetInventory{Instrument: 1, Atoms: 1}, &rfq.SetInventory{Instrument: 1, Atoms: 50_000_000_000_000})},
	{name: "the desk has no tokens", want: desk.RefusalInventory, spoil: func(l *life, _ wallet) func() {
		was := l.chain.setTokens(l.chain.desk, "SLUSD", 0)
		return func() { l.chain.setTokens(l.chain.desk, "SLUSD", was) }
	}},
	{name: "too little USDC", want: desk.RefusalTakerFunds, spoil: func(l *life, w wallet) func() {
		was := l.chain.setTokens(w.address, "USDC", 249_999_999)
		return func() { l.chain.setTokens(w.address, "USDC", was) }
	}},
	{name: "no USDC at all", want: desk.RefusalTakerFunds, wallet: newWallet, lost: true},
	{name: "no SOL to pay", rail: market.RailSOL, want: desk.RefusalTakerFunds, wallet: newWallet, lost: true},
	{name: "no SOL for the fee", payer: desk.TakerPays, want: desk.RefusalTakerFunds, wallet: newWallet, lost: true},
	{name: "no SOL for the rent", want: desk.RefusalTakerFunds, lost: true, wallet: func(l *life) wallet {
		w := newWallet(l)
		l.chain.control("fund", map[string]any{"wallet": solana.Base58(w.address), "symbol": "USDC", "amount": "300000000"})
		return w
	}},
	{name: "a blockhash near its end", want: desk.RefusalExpired, lost: true, spoil: func(l *life, _ wallet) func() {
		l.advance(blockhashLife - settle.MinLife + 1)
		return func() {}
	}},
}

// TestGuards: each guard refuses by its word; no signature is made, and the claim
// can still be settled when the cause has ended.
func TestGuards(t *testing.T) {
	c := startChain(t)
	signer := newHookedSigner(t, c)
	l := begin(t, c, lifeOptions{signer: signer}).open()
	for _, g := range guards {
		t.Run(g.name, func(t *testing.T) { g.run(t, l, signer) })
	}
}

func (g *guarded) run(t *testing.T, l *life, signer *hookedSigner) {
	w := l.chain.wallet(0)
	if g.wallet != nil {
		w = g.wallet(l)
	}
	rail := g.rail
	if rail == 0 {
		rail = market.RailUSDC
	}
	claim := l.take(rfq.Atomic, 1, rail, w)
	p := l.pack(claim, g.payer)
	undo, before := func() {}, signer.calls.Load()
	if g.spoil != nil {
		undo = g.spoil(l, w)
	}
	if g.key != (solana.Address{}) {
		signer.other.Store(&g.key)
	}
	by, sub := w.address, submission(w.fill(t, p.Transaction))
	if g.submit != nil {
		by, sub = g.submit(l, w, &p)
	}
	got, err := l.submit(t.Context(), claim.ID, by, sub)
	refusal := (*desk.Refusal)(nil)
	if !errors.As(err, &refusal) || refusal.Reason != g.want || refusal.Claim != claim.ID {
		t.Errorf("%+v, %v; want %s", got, err, g.want)
	}
	undo()
	signer.other.Store(nil)
	if _, ok, err := l.settle.Delivery(claim.ID); ok || err != nil || signer.calls.Load() != before {
		t.Fatalf("a signature exists: %v, %v", ok, err)
	}
	if state := l.claim(claim.ID).State; state != rfq.ClaimReserved {
		t.Errorf("the claim is %d", state)
	}
	if g.lost {
		return
	}
	await.True(l.t, "a submission once the cause is gone", func() bool {
		_, err := l.submit(t.Context(), claim.ID, w.address, submission(w.fill(t, p.Transaction)))
		if err != nil && !errors.Is(err, settle.ErrNotReady) { // a survey may end that began before
			t.Fatal(err)
		}
		return err == nil
	})
	l.becomes(claim.ID, rfq.ClaimSettled)
}

// shownDesk shows another view than the desk's where a test wants that.
type shownDesk struct {
	settle.Desk
	view atomic.Pointer[rfq.View]
}

func (d *shownDesk) View() *rfq.View {
	if v := d.view.Load(); v != nil {
		return v
	}
	return d.Desk.View()
}

// TestOtherBase: a build that delivers another mint than the pair's of today is
// refused, and so is one whose pair is not shown; no signature is made. The engine
// lets no pair change its mint while anything of it is permitted.
func TestOtherBase(t *testing.T) {
	c := startChain(t)
	shown := new(shownDesk)
	signer := newHookedSigner(t, c)
	l := begin(t, c, lifeOptions{signer: signer, desk: func(d settle.Desk) settle.Desk {
		shown.Desk = d
		return shown
	}}).open()
	w := c.wallet(0)
	claim := l.take(rfq.Atomic, 1, market.RailUSDC, w)
	p := l.pack(claim, 0)
	submit := func() error {
		_, err := l.submit(t.Context(), claim.ID, w.address, submission(w.fill(t, p.Transaction)))
		return err
	}
	other := *l.desk.View()
	other.Pairs = slices.Clone(other.Pairs)
	other.Pair(1).BaseMint = c.mints[symbols[2]]
	shown.view.Store(&other)
	refusal := (*desk.Refusal)(nil)
	if err := submit(); !errors.As(err, &refusal) || refusal.Reason != desk.RefusalExpired {
		t.Errorf("another mint: %v", err)
	}
	none := other
	none.Pairs = nil
	shown.view.Store(&none)
	if err := submit(); !errors.Is(err, settle.ErrNotReady) {
		t.Errorf("no pair: %v", err)
	}
	if state := l.claim(claim.ID).State; state != rfq.ClaimReserved || signer.calls.Load() != 0 {
		t.Fatalf("permitted: %d", state)
	}
	shown.view.Store(nil)
	l.ready()
	if err := submit(); err != nil {
		t.Fatalf("as it was: %v", err)
	}
	l.becomes(claim.ID, rfq.ClaimSettled)
}

// TestUnknownBuild: what has no atomic build cannot be submitted.
func TestUnknownBuild(t *testing.T) {
	c := startChain(t)
	l := begin(t, c, lifeOptions{}).open()
	w := c.wallet(0)
	modular := l.take(rfq.Modular, 1, market.RailUSDC, w)
	p := l.pack(modular, 0)
	unpacked := l.take(rfq.Atomic, 1, market.RailUSDC, w)
	for name, id := range map[string]market.ClaimID{"no claim": 77, "the other way": modular.ID, "no package": unpacked.ID} {
		if _, err := l.submit(t.Context(), id, w.address, submission(w.fill(t, p.Transaction))); !errors.Is(err, desk.ErrUnknownBuild) {
			t.Errorf("%s: %v", name, err)
		}
		if _, ok, err := l.settle.Build(t.Context(), id); ok || err != nil {
			t.Errorf("%s: a build: %v", name, err)
		}
	}
}

// TestClaimExpired: a claim whose time is up gets no package and no signature.
func TestClaimExpired(t *testing.T) {
	c := startChain(t)
	clock := new(atomic.Int64)
	l := begin(t, c, lifeOptions{clock: clock}).open()
	w := c.wallet(0)
	packed, late := l.take(rfq.Atomic, 1, market.RailUSDC, w), l.take(rfq.Atomic, 1, market.RailUSDC, w)
	p := l.pack(packed, 0)
	clock.Store(int64(700 * time.Second))
	l.must(&rfq.SetAnchor{Instrument: 1, Price: 1_000_000_000}) // the time of a command is what ends it
	l.becomes(packed.ID, rfq.ClaimExpired)
	_, err := l.submit(t.Context(), packed.ID, w.address, submission(w.fill(t, p.Transaction)))
	refusal := (*desk.Refusal)(nil)
	if !errors.As(err, &refusal) || refusal.Reason != desk.RefusalExpired {
		t.Errorf("submitted: %v", err)
	}
	if _, err := l.settle.Package(t.Context(), late, 0); !errors.As(err, &refusal) || refusal.Reason != desk.RefusalExpired {
		t.Errorf("packed: %v", err)
	}
	if b, ok, err := l.settle.Build(t.Context(), packed.ID); !ok || err != nil || b.Stage != desk.BuildExpired {
		t.Errorf("the build is %v, %v, %v", b.Stage, ok, err)
	}
}

// TestSubmitAtOnce: many submit one build at the same time, in both forms: the
// desk signs once, and all get the same answer.
func TestSubmitAtOnce(t *testing.T) {
	c := startChain(t)
	signer := newHookedSigner(t, c)
	l := begin(t, c, lifeOptions{signer: signer}).open()
	w := c.wallet(0)
	claim := l.take(rfq.Atomic, 2, market.RailUSDC, w)
	p := l.pack(claim, desk.TakerPays)
	forms := []desk.Submission{submission(w.fill(t, p.Transaction)), {Signature: w.sign(messageOf(t, p.Transaction))}}
	answers := make([]desk.Submitted, 64)
	var group sync.WaitGroup
	for i := range answers {
		group.Go(func() {
			var err error
			if answers[i], err = l.submit(t.Context(), claim.ID, w.address, forms[i%2]); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for _, a := range answers {
		if a.Signature != answers[0].Signature || string(a.Transaction) != string(answers[0].Transaction) || a.Stage == desk.BuildOpen {
			t.Fatalf("other answers: %+v, %+v", a, answers[0])
		}
	}
	if n := signer.calls.Load(); n != 1 {
		t.Errorf("%d signatures", n)
	}
	l.becomes(claim.ID, rfq.ClaimSettled)
}
