package proof

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"log/slog"
	"testing"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/internal/runtest"
	"blockdesk/internal/sandbox"
	"blockdesk/internal/sandbox/sandboxtest"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/internal/solana/token"
	"blockdesk/market"
	"blockdesk/settle/binding"
	"blockdesk/settle/store"
)

// chain is a real Solana runtime behind our client, with its cast.
type chain struct {
	*rpc.Client
	t     testing.TB
	local *sandboxtest.Chain
	// payer takes the claims; friend and thief are others with money.
	payer, friend, thief, treasury, desk, issuer person
	usdc, slusd, wrapped                         coin
	checked                                      token.Checked // USDC
	people                                       []person
	fresh                                        int
}

// startChain starts a chain whose slots move by hand.
func startChain(t testing.TB) *chain {
	t.Helper()
	local := sandboxtest.Start(t, sandbox.Options{ManualSlots: true, ConfirmSlots: 1, FinalizeSlots: 2, Seed: "proof"})
	c, setup := &chain{t: t, local: local}, local.Setup
	c.Client = local.Client(rpc.Options{Attempts: 3, Timeout: runtest.HangTimeout, AttemptTimeout: runtest.HangTimeout})
	for _, p := range []struct {
		at *person
		of sandbox.Party
	}{
		{&c.payer, setup.Wallets[0]},
		{&c.friend, setup.Wallets[1]},
		{&c.thief, setup.Wallets[2]},
		{&c.treasury, setup.Treasury},
		{&c.desk, setup.Desk},
		{&c.issuer, setup.MintAuthority},
	} {
		*p.at = personOf(local.Key(p.of))
		c.people = append(c.people, *p.at)
	}
	coinOf := func(symbol string) coin {
		m := setup.Mints[symbol]
		return coin{program(m.Address), program(m.Program), m.Decimals}
	}
	c.usdc, c.slusd = coinOf("USDC"), coinOf("SLUSD")
	c.wrapped = coin{solana.NativeMint, solana.TokenProgram, 9}
	c.checked = c.check(c.usdc, token.Harmless())
	// The mint of wrapped SOL, which every cluster has and a bare runtime has not.
	c.writes(solana.NativeMint, solana.TokenProgram, 1_461_600, append(append(make([]byte, 44), 9, 1), make([]byte, 36)...))
	return c
}

func (c *chain) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *chain) control(method string, params map[string]any) {
	c.t.Helper()
	c.must(c.local.Call(c.t.Context(), "sandbox_"+method, params, nil)) // t may be a part of the chain's test
}

func (c *chain) advance(slots int) {
	c.t.Helper()
	c.control("advance", map[string]any{"slots": slots})
}

// check reads a mint from the chain, as the service does at its start.
func (c *chain) check(m coin, allowed token.Extensions) token.Checked {
	c.t.Helper()
	return c.local.Mint(c.Client, m.mint, allowed)
}

// somebody returns a person with a key and no money.
func (c *chain) somebody() person {
	c.fresh++
	seed := sha256.Sum256(fmt.Appendf(nil, "somebody %d", c.fresh))
	p := personOf(ed25519.NewKeyFromSeed(seed[:]))
	c.people = append(c.people, p)
	return p
}

// sealed is a draft's bytes, signed by all its signers.
func (c *chain) sealed(l *draft) []byte {
	c.t.Helper()
	hash := l.nonce
	if hash == (solana.Hash{}) {
		b, err := c.Blockhash(c.t.Context())
		c.must(err)
		hash = b.Hash
	}
	if l.payer == (solana.Address{}) {
		l.payer = c.payer.addr
	}
	raw, err := seal(l.compile(hash), c.people)
	c.must(err)
	return raw
}

// post sends a draft without a preflight and finalizes its slot.
func (c *chain) post(l *draft) solana.Signature {
	c.t.Helper()
	return c.sends(c.sealed(l))
}

// sends broadcasts bytes and finalizes their slot.
func (c *chain) sends(raw []byte) solana.Signature {
	c.t.Helper()
	s, err := c.Send(c.t.Context(), raw, rpc.SendOptions{SkipPreflight: true})
	c.must(err)
	c.advance(4)
	return s
}

// lands posts a draft that must succeed.
func (c *chain) lands(l *draft) solana.Signature {
	c.t.Helper()
	s := c.post(l)
	got, found, err := c.Transaction(c.t.Context(), s, rpc.Finalized)
	if err != nil || !found || got.Failed {
		if found {
			c.t.Fatalf("%s: %s %v", s, got.Error, got.Logs)
		}
		c.t.Fatalf("%s: found %t, %v", s, found, err)
	}
	return s
}

// does lands calls of which the payer pays the fee.
func (c *chain) does(calls ...call) solana.Signature {
	c.t.Helper()
	return c.lands(&draft{calls: calls})
}

// writes sets an account's content.
func (c *chain) writes(at, owner solana.Address, lamports uint64, data []byte) {
	c.t.Helper()
	c.control("setAccount", map[string]any{
		"pubkey": solana.Base58(at), "lamports": lamports, "owner": solana.Base58(owner), "data": base64.StdEncoding.EncodeToString(data),
	})
}

// holdings are what all our wallets have on each rail.
func (c *chain) holdings(usdc coin) (sums [market.RailCount]uint64) {
	c.t.Helper()
	for _, w := range []solana.Address{c.treasury.addr, c.desk.addr} {
		n, _, err := c.Balance(c.t.Context(), w, rpc.Finalized)
		c.must(err)
		sums[market.RailSOL] += uint64(n)
		sums[market.RailUSDC] += c.atoms(w, usdc)
	}
	spilled, _, err := c.Balance(c.t.Context(), usdc.of(c.treasury.addr), rpc.Finalized)
	c.must(err)
	sums[market.RailSOL] += uint64(spilled)
	return sums
}

// atoms is what all of a wallet's accounts hold.
func (c *chain) atoms(wallet solana.Address, m coin) uint64 {
	c.t.Helper()
	list, _, err := c.TokenAccounts(c.t.Context(), wallet, m.mint, solana.Address{}, rpc.Finalized)
	c.must(err)
	sum := uint64(0)
	for _, a := range list {
		account, err := token.ParseAccount(a.Owner, a.Data)
		c.must(err)
		sum += uint64(account.Amount)
	}
	return sum
}

// stage is a chain with a desk and a prover over it.
type stage struct {
	*chain
	machine *machineDesk
	store   *memStore
	prover  *Prover
	usdc    coin
	props   *props
	// asked is the claim that a case asks for in place of the one it was given.
	asked *rfq.Claim
}

// options serve both rails, paid to the treasury.
func (c *chain) options(usdc token.Checked) Options {
	var o Options
	o.Rails[market.RailUSDC] = Rail{Mint: usdc, Treasury: []solana.Address{c.treasury.addr}}
	o.Rails[market.RailSOL] = Rail{Treasury: []solana.Address{c.treasury.addr}}
	o.Wallets, o.Known = []solana.Address{c.desk.addr}, []solana.Address{c.slusd.mint}
	o.Logger = slog.New(slog.DiscardHandler)
	return o
}

func (c *chain) stage(node Node, o Options) *stage {
	c.t.Helper()
	usdc := o.Rails[market.RailUSDC].Mint
	s := &stage{chain: c, store: newMemStore(), usdc: coin{usdc.Address(), usdc.Program(), usdc.Decimals()}}
	s.machine = newDesk(c.t, usdc.Address(), [market.RailCount]solana.Address{market.RailUSDC: c.treasury.addr, market.RailSOL: c.treasury.addr})
	if node == nil {
		node = c.Client
	}
	var err error
	s.prover, err = New(o, node, s.machine, s.store)
	c.must(err)
	return s
}

// take reserves a claim of the payer's on a rail.
func (s *stage) take(rail market.Rail) *rfq.Claim {
	s.t.Helper()
	return s.machine.take(s.t, s.payer.addr, rail, rfq.Modular, 1)
}

// pays is the honest payment of a claim, without what binds it.
func (s *stage) pays(c *rfq.Claim, atoms uint64) call {
	if c.Terms.Rail == market.RailSOL {
		return giveSOL(s.payer.addr, s.treasury.addr, atoms)
	}
	return s.usdc.give(s.payer.addr, s.treasury.addr, atoms)
}

// bound is the honest payment of a claim, with reference and memo.
func (s *stage) bound(c *rfq.Claim, atoms uint64) []call {
	return []call{s.pays(c, atoms).with(binding.Reference(c.ID)), memo(binding.Memo(c.ID))}
}

func (s *stage) unmatched(sig solana.Signature) (store.UnmatchedPayment, bool) {
	return s.store.unmatched(sig)
}

// verify asks with what every client sends.
func (s *stage) verify(sig solana.Signature, c *rfq.Claim) (desk.Verdict, error) {
	return s.prover.Verify(s.t.Context(), request(sig, c))
}

func request(sig solana.Signature, c *rfq.Claim) *desk.PaymentProof {
	return &desk.PaymentProof{Signature: sig, Ticket: c.Terms.Ticket, Tranche: c.Terms.Tranche}
}
