package rpc_test

import (
	"crypto/ed25519"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"blockdesk/internal/sandbox"
	"blockdesk/internal/sandbox/sandboxtest"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/build"
	"blockdesk/internal/solana/eddsa"
	"blockdesk/internal/solana/ledger"
	"blockdesk/internal/solana/payment"
	"blockdesk/internal/solana/rpc"
	"blockdesk/internal/solana/token"
	"blockdesk/internal/solana/tx"
	"blockdesk/market"
)

// chain is a real Solana runtime behind our client.
type chain struct {
	*rpc.Client
	t                         testing.TB
	local                     *sandboxtest.Chain
	accounts                  solana.AccountCache
	desk, treasury, taker     solana.Address
	deskKey, takerKey, second ed25519.PrivateKey
	mints                     map[string]token.Checked
	claims                    int
}

func startChain(t testing.TB) *chain {
	t.Helper()
	local := sandboxtest.Start(t, sandbox.Options{ManualSlots: true, ConfirmSlots: 1, FinalizeSlots: 2, Seed: "rpc"})
	setup := local.Setup
	c := &chain{Client: local.Client(rpc.Options{}), t: t, local: local, mints: map[string]token.Checked{}}
	c.desk, c.treasury, c.taker = local.Address(setup.Desk.Address), local.Address(setup.Treasury.Address), local.Address(setup.Wallets[0].Address)
	c.deskKey, c.takerKey, c.second = local.Key(setup.Desk), local.Key(setup.Wallets[0]), local.Key(setup.Wallets[1])
	for symbol, m := range setup.Mints {
		c.mints[symbol] = local.Mint(c.Client, local.Address(m.Address), token.Harmless())
	}
	return c
}

func (c *chain) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *chain) common() build.Common {
	c.t.Helper()
	b, err := c.Blockhash(c.t.Context())
	c.must(err)
	c.claims++
	return build.Common{
		Blockhash: b.Hash, Budget: build.Budget{Units: 200_000, MicroLamports: 1000},
		Memo: string(market.AppendClaimID(nil, market.ClaimID(c.claims))), Reference: solana.Address{0xfe, byte(c.claims), byte(c.claims >> 8)},
	}
}

// sign fills the slots of some keys.
func (c *chain) sign(raw []byte, keys ...ed25519.PrivateKey) []byte {
	c.t.Helper()
	t, err := tx.Decode(raw)
	c.must(err)
	for _, k := range keys {
		slot, ok := t.Message.Slot(solana.Address(k.Public().(ed25519.PublicKey)))
		if !ok {
			c.t.Fatal("a key that does not sign")
		}
		t.Signatures[slot] = solana.Signature(ed25519.Sign(k, t.Signed))
	}
	out, err := t.Append(nil)
	c.must(err)
	return out
}

// land sends, finalizes, and reads the transaction.
func (c *chain) land(raw []byte, o rpc.SendOptions) *ledger.Confirmed {
	c.t.Helper()
	s, err := c.Send(c.t.Context(), raw, o)
	c.must(err)
	c.advance(4)
	status, _, err := c.Statuses(c.t.Context(), []solana.Signature{s, {1}}, true)
	c.must(err)
	if !status[0].Known || status[0].Level != rpc.Finalized || status[1].Known {
		c.t.Fatalf("%+v", status)
	}
	t, found, err := c.Transaction(c.t.Context(), s, rpc.Finalized)
	c.must(err)
	if !found || t.Slot != status[0].Slot || t.Failed != status[0].Failed {
		c.t.Fatalf("found %t, %+v, %+v", found, t, status[0])
	}
	return t
}

func (c *chain) advance(slots int) {
	c.t.Helper()
	c.local.Advance(slots)
}

// atoms is a wallet's balance of a token, by its account, 0 without one.
func (c *chain) atoms(wallet solana.Address, symbol string) market.Amount {
	c.t.Helper()
	m := c.mints[symbol]
	list, _, err := c.TokenAccounts(c.t.Context(), wallet, m.Address(), solana.Address{}, rpc.Finalized)
	c.must(err)
	var sum market.Amount
	for _, a := range list {
		account, err := token.ParseAccount(a.Owner, a.Data)
		c.must(err)
		sum += account.Amount
	}
	return sum
}

func (c *chain) lamports(a solana.Address) market.Amount {
	c.t.Helper()
	n, _, err := c.Balance(c.t.Context(), a, rpc.Finalized)
	c.must(err)
	return n
}

func (c *chain) target(rail market.Rail) *payment.Target {
	c.t.Helper()
	if rail == market.RailSOL {
		return &payment.Target{Rail: rail, PayTo: c.treasury, Treasury: []solana.Address{c.treasury, c.desk}}
	}
	usdc := c.mints["USDC"]
	at, err := c.accounts.TokenAccount(c.treasury, usdc.Address(), usdc.Program())
	c.must(err)
	return &payment.Target{Rail: rail, Mint: usdc.Address(), Program: usdc.Program(), PayTo: at, Treasury: []solana.Address{c.treasury, c.desk}}
}

func (c *chain) leg(rail market.Rail, amount market.Amount) build.Leg {
	if rail == market.RailSOL {
		return build.Leg{Rail: rail, Amount: amount, To: c.treasury}
	}
	return build.Leg{Rail: rail, Mint: c.mints["USDC"], Amount: amount, To: c.treasury}
}

func (c *chain) pay(rail market.Rail, amount market.Amount) *build.Payment {
	c.t.Helper()
	return &build.Payment{Common: c.common(), Wallet: c.taker, Leg: c.leg(rail, amount)}
}

func (c *chain) judge(got *ledger.Confirmed, rail market.Rail, t *payment.Terms) (*payment.Facts, payment.Verdict) {
	c.t.Helper()
	f, err := payment.Extract(got, c.target(rail))
	c.must(err)
	return f, payment.Decide(f, t)
}

// TestChainPayments: what we build is paid on a real runtime, to the atom, and judged
// by the node's answer; a payment that differs is refused.
func TestChainPayments(t *testing.T) {
	c := startChain(t)
	const amount = 250_000_001
	for _, rail := range []market.Rail{market.RailUSDC, market.RailSOL} {
		p := c.pay(rail, amount)
		u, err := p.Build(&c.accounts)
		c.must(err)
		tokens, lamports := c.atoms(c.treasury, "USDC"), c.lamports(c.treasury)
		raw := c.sign(u.Bytes(), c.takerKey)
		s, err := c.Simulate(t.Context(), raw, rpc.SimulateOptions{Verify: true})
		c.must(err)
		if s.Failed || s.Units == 0 || s.Units > 200_000 {
			t.Errorf("%v simulated: %+v", rail, s)
		}
		got := c.land(raw, rpc.SendOptions{})
		if !eddsa.Verify(c.taker, got.Tx.Signed, got.Signature()) || tx.MessageHash(got.Tx.Signed) != u.Hash() {
			t.Errorf("%v: another message landed", rail)
		}
		paid := (c.atoms(c.treasury, "USDC") - tokens) + (c.lamports(c.treasury) - lamports)
		terms := payment.Terms{Payer: c.taker, Amount: amount, Reference: p.Reference, Memo: p.Memo, NotBefore: got.BlockTime - 60, NotBeforeSlot: 1}
		f, v := c.judge(got, rail, &terms)
		if v.Reason != "" || f.Credited != amount || v.Surplus != 0 || paid != amount || f.Payer() != c.taker || len(f.Memos) != 1 || f.Memos[0].Text != p.Memo {
			t.Errorf("%v: %+v, paid %d, %+v", rail, v, paid, f)
		}
		c.refusals(got, rail, terms)
		history, err := c.Signatures(t.Context(), p.Reference, rpc.Page{}, rpc.Finalized)
		if err != nil || len(history) != 1 || history[0].Signature != got.Signature() || history[0].Slot != got.Slot {
			t.Errorf("%v: found by reference: %+v, %v", rail, history, err)
		}
	}
}

// refusals breaks one term at a time of a payment that was accepted.
func (c *chain) refusals(got *ledger.Confirmed, rail market.Rail, good payment.Terms) {
	c.t.Helper()
	for want, spoil := range map[payment.Reason]func(*payment.Terms){
		payment.AmountShort:        func(t *payment.Terms) { t.Amount++ },
		payment.WrongPayer:         func(t *payment.Terms) { t.Payer = solana.Address{9} },
		payment.MissingReference:   func(t *payment.Terms) { t.Reference, t.Memo = solana.Address{9}, "C0000000000099" },
		payment.AmbiguousReference: func(t *payment.Terms) { t.Memo = "C0000000000099" },
		payment.TooOld:             func(t *payment.Terms) { t.NotBeforeSlot = got.Slot + 1 },
	} {
		terms := good
		spoil(&terms)
		if _, v := c.judge(got, rail, &terms); v.Reason != want {
			c.t.Errorf("%v: %q, want %q", rail, v.Reason, want)
		}
	}
	other := market.RailUSDC + market.RailSOL - rail
	if _, v := c.judge(got, other, &good); v.Reason != payment.WrongMint {
		c.t.Errorf("%v judged as %v: %q", rail, other, v.Reason)
	}
}

// TestChainAtomic settles on both rails, with either fee payer and rent payer and
// both token programs: every balance moves by the terms, or none does.
func TestChainAtomic(t *testing.T) {
	c := startChain(t)
	for _, rail := range []market.Rail{market.RailUSDC, market.RailSOL} {
		for _, base := range []string{"SLUSD", "92C"} {
			for _, party := range []build.Party{build.Desk, build.Taker} {
				t.Run(fmt.Sprintf("%v %s party %d", rail, base, party), func(t *testing.T) { c.settle(t, rail, base, party) })
			}
		}
	}
}

func (c *chain) settle(t *testing.T, rail market.Rail, base string, party build.Party) {
	const paid, delivered = 1_000_003, 777_777
	a := build.Atomic{
		Common: c.common(), Taker: c.taker, Desk: c.desk, Payment: c.leg(rail, paid),
		Base: c.mints[base], BaseAmount: delivered, FeePayer: party, RentPayer: party,
	}
	a.Reference = solana.Address{}
	u, err := a.Build(&c.accounts)
	c.must(err)
	if len(u.Bytes()) > 700 {
		t.Errorf("%d bytes", len(u.Bytes()))
	}
	before := [...]market.Amount{c.atoms(c.treasury, "USDC"), c.lamports(c.treasury), c.atoms(c.desk, base), c.atoms(c.taker, base)}
	// Half signed, it goes nowhere.
	if _, err := c.Send(t.Context(), c.sign(u.Bytes(), c.firstKey(party)), rpc.SendOptions{}); rpc.KindOf(err) == 0 {
		t.Errorf("half signed: %v", err)
	}
	got := c.land(c.sign(u.Bytes(), c.takerKey, c.deskKey), rpc.SendOptions{})
	if got.Failed || got.Tx.Message.FeePayer() != a.Desk && party == build.Desk {
		t.Errorf("%s", got.Error)
	}
	after := [...]market.Amount{c.atoms(c.treasury, "USDC"), c.lamports(c.treasury), c.atoms(c.desk, base), c.atoms(c.taker, base)}
	rails := map[market.Rail][2]market.Amount{market.RailUSDC: {paid, 0}, market.RailSOL: {0, paid}}[rail]
	if after[0]-before[0] != rails[0] || after[1]-before[1] != rails[1] || before[2]-after[2] != delivered || after[3]-before[3] != delivered {
		t.Errorf("before %v, after %v", before, after)
	}
	f, v := c.judge(got, rail, &payment.Terms{Payer: c.taker, Amount: paid, Memo: a.Memo})
	if v.Reason != "" || f.Credited != paid {
		t.Errorf("%+v, %+v", v, f)
	}
}

func (c *chain) firstKey(p build.Party) ed25519.PrivateKey {
	if p == build.Desk {
		return c.deskKey
	}
	return c.takerKey
}

// TestChainFailed: a transaction that lands and fails moves nothing but the fee,
// and is judged so; with preflight it does not land, and the logs say why.
func TestChainFailed(t *testing.T) {
	c := startChain(t)
	p := c.pay(market.RailUSDC, 1<<60) // more than there is
	u, err := p.Build(&c.accounts)
	c.must(err)
	raw := c.sign(u.Bytes(), c.takerKey)
	_, err = c.Send(t.Context(), raw, rpc.SendOptions{})
	if rpc.KindOf(err) != rpc.Preflight {
		t.Errorf("%v", err)
	}
	got := c.land(raw, rpc.SendOptions{SkipPreflight: true})
	_, v := c.judge(got, market.RailUSDC, &payment.Terms{Payer: c.taker, Amount: 1 << 60, Reference: p.Reference, Memo: p.Memo})
	if !got.Failed || v.Reason != payment.FailedOnChain {
		t.Errorf("%+v, %q", v, got.Error)
	}
}

// TestChainChanged: a payment whose bytes the payer has changed before signing lands,
// and is refused for the change.
func TestChainChanged(t *testing.T) {
	c := startChain(t)
	const amount = 5_000_000
	for name, x := range map[string]struct {
		change func(m *tx.Message)
		want   payment.Reason
	}{
		"nothing": {func(*tx.Message) {}, ""},
		"legacy":  {func(m *tx.Message) { m.Version = tx.Legacy }, ""},
		"version 1": {func(m *tx.Message) {
			m.Version, m.Config = tx.V1, tx.Config{Mask: tx.HasUnits | tx.HasLoadedBytes, Units: 200_000, LoadedBytes: 1 << 20}
		}, ""},
		"memo":         {func(m *tx.Message) { m.Instructions[2].Data[13] = 'z' }, payment.AmbiguousReference},
		"no memo":      {func(m *tx.Message) { m.Instructions = slices.Delete(m.Instructions, 2, 3) }, ""},
		"amount short": {func(m *tx.Message) { binary.LittleEndian.PutUint64(m.Instructions[3].Data[1:], amount-1) }, payment.AmountShort},
		"paid twice":   {func(m *tx.Message) { m.Instructions = append(m.Instructions, m.Instructions[3]) }, ""},
		"to itself":    {func(m *tx.Message) { a := m.Instructions[3].Accounts; a[2] = a[0] }, payment.WrongDestination},
		"not at all":   {func(m *tx.Message) { m.Instructions = m.Instructions[:3] }, payment.WrongDestination},
		"reference another": {func(m *tx.Message) {
			m.Keys[m.Instructions[3].Accounts[4]] = solana.Address{0xdd}
			m.Instructions = slices.Delete(m.Instructions, 2, 3)
		}, payment.MissingReference},
		"fee payer another": {func(m *tx.Message) {
			m.Header.Required++
			m.Keys = append([]solana.Address{solana.Address(c.second.Public().(ed25519.PublicKey))}, m.Keys...)
			for i := range m.Instructions {
				m.Instructions[i].Program++
				for j := range m.Instructions[i].Accounts {
					m.Instructions[i].Accounts[j]++
				}
			}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := c.pay(market.RailUSDC, amount)
			u, err := p.Build(&c.accounts)
			c.must(err)
			changed, err := tx.Decode(u.Bytes())
			c.must(err)
			x.change(&changed.Message)
			changed.Signatures = make([]solana.Signature, changed.Message.Header.Required)
			raw, err := changed.Append(nil)
			c.must(err)
			keys := []ed25519.PrivateKey{c.takerKey}
			if changed.Message.Header.Required == 2 {
				keys = append(keys, c.second)
			}
			got := c.land(c.sign(raw, keys...), rpc.SendOptions{})
			_, v := c.judge(got, market.RailUSDC, &payment.Terms{Payer: c.taker, Amount: amount, Reference: p.Reference, Memo: p.Memo, NotBeforeSlot: 1})
			if got.Failed || v.Reason != x.want || name == "paid twice" && v.Surplus != amount {
				t.Errorf("%+v, failed %q", v, got.Error)
			}
		})
	}
}

// TestChainFaults: the error kinds of a node's faults.
func TestChainFaults(t *testing.T) {
	c := startChain(t)
	call := func(method string, params map[string]any) {
		t.Helper()
		c.must(c.local.Call(t.Context(), method, params, nil))
	}
	p := c.pay(market.RailUSDC, 1000)
	u, err := p.Build(&c.accounts)
	c.must(err)
	raw := c.sign(u.Bytes(), c.takerKey)

	call("sandbox_setNode", map[string]any{"mode": "503"})
	if _, err := c.Slot(t.Context(), rpc.Confirmed); rpc.KindOf(err) != rpc.Down {
		t.Errorf("503: %v", err)
	}
	call("sandbox_setNode", map[string]any{"mode": "reset"})
	if _, err := c.Slot(t.Context(), rpc.Confirmed); rpc.KindOf(err) != rpc.Down {
		t.Errorf("reset: %v", err)
	}
	call("sandbox_heal", map[string]any{})
	call("sandbox_answerGarbage", map[string]any{"count": 2, "kind": "truncated"})
	if _, err := c.Slot(t.Context(), rpc.Confirmed); err != nil {
		t.Errorf("two wrong answers, then a good one: %v", err)
	}
	call("sandbox_failSends", map[string]any{"count": 3})
	if _, err := c.Send(t.Context(), raw, rpc.SendOptions{}); rpc.KindOf(err) != rpc.Behind {
		t.Errorf("unhealthy: %v", err)
	}
	// The answer is lost, and the same bytes are sent again: it lands once.
	call("sandbox_loseAnswers", map[string]any{"count": 1})
	before := c.atoms(c.treasury, "USDC")
	s, err := c.Send(t.Context(), raw, rpc.SendOptions{SkipPreflight: true})
	if err != nil {
		t.Errorf("answer lost once: %v", err)
	}
	c.advance(4)
	if got := c.atoms(c.treasury, "USDC") - before; got != 1000 {
		t.Errorf("landed for %d atoms", got)
	}
	if _, err := c.Send(t.Context(), raw, rpc.SendOptions{SkipPreflight: true}); err != nil {
		t.Errorf("sent again: %v", err)
	}
	c.advance(4)
	if got := c.atoms(c.treasury, "USDC") - before; got != 1000 {
		t.Errorf("landed twice: %d atoms", got)
	}
	if _, found, err := c.Transaction(t.Context(), solana.Signature{7}, rpc.Finalized); found || err != nil {
		t.Errorf("an unknown one: %t, %v", found, err)
	}
	if _, found, err := c.Transaction(t.Context(), s, rpc.Finalized); !found || err != nil {
		t.Errorf("%t, %v", found, err)
	}
}

// BenchmarkVerifyPayment reads and judges payments against the local chain, 16
// in flight on two cores. The chain runs on the same cores.
func BenchmarkVerifyPayment(b *testing.B) {
	c := startChain(b)
	p := c.pay(market.RailUSDC, 1000)
	u, err := p.Build(&c.accounts)
	c.must(err)
	got := c.land(c.sign(u.Bytes(), c.takerKey), rpc.SendOptions{})
	to, terms := c.target(market.RailUSDC), payment.Terms{Payer: c.taker, Amount: 1000, Reference: p.Reference, Memo: p.Memo}
	b.ReportAllocs()
	b.SetParallelism(8)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			t, found, err := c.Transaction(b.Context(), got.Signature(), rpc.Finalized)
			if err != nil || !found {
				b.Errorf("%t, %v", found, err)
				return
			}
			f, err := payment.Extract(t, to)
			if err != nil {
				b.Error(err)
				return
			}
			if v := payment.Decide(f, &terms); v.Reason != "" {
				b.Error(v)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "payments/s")
}
