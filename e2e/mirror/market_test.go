package mirror

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	sol "github.com/gagliardetto/solana-go"
	ata "github.com/gagliardetto/solana-go/programs/associated-token-account"
	"github.com/gagliardetto/solana-go/programs/token"

	"blockdesk/e2e/chaintest"
	"blockdesk/e2e/programtest"
	"blockdesk/internal/sandbox"
	"blockdesk/internal/solana"
	"blockdesk/mirror"
	"blockdesk/mirror/mirrortest"
)

const (
	slotPause     = 120 * time.Millisecond // between two slots
	finalizeSlots = 8
	lookupProgram = "AddressLookupTab1e1111111111111111111111111"
	budgetProgram = "ComputeBudget111111111111111111111111111111"
	rentExempt    = 10_000_000_000 // lamports: enough for any account here
)

// tokenVault is one side of an on-chain pool with its ledger entry.
type tokenVault struct {
	symbol  string
	coin    mirror.Coin
	program solana.Address
	account solana.Address
	atoms   uint64 // in it
	fees    uint64 // of them, that are not the pool's
}

// doneSwap is the effect of one transaction on a pool.
type doneSwap struct {
	slot        uint64
	unix        int64 // of its block
	signature   string
	payer       string
	buy         bool // the taker got the base asset
	base, quote uint64
}

// chainPool is a pool on chain.
type chainPool struct {
	symbol      string
	cpmm        bool // it has an account of Raydium's layout
	at          solana.Address
	authority   sol.PrivateKey
	base, quote tokenVault
	swaps       []doneSwap // in the order of the chain
	payers      map[string]bool
}

// reserves returns the balances that determine the price.
func (p *chainPool) reserves() (base, quote uint64) {
	return p.base.atoms - p.base.fees, p.quote.atoms - p.quote.fees
}

// sentMove is a transaction of the open slot with its expected effect.
type sentMove struct {
	signature string
	payer     string
	fails     bool
	parts     []poolMove
}

// poolMove is the vaults' gain; negative = loss.
type poolMove struct {
	pool        *chainPool
	base, quote int64
}

// chainMarket is two pools and a book on a local chain, with a ledger of the expected
// effects. Swaps are real transactions of an independent client. The accounts of the pool
// and the book are written as their programs would. The test opens slots explicitly, so
// that each is a bank of its own: the accounts at its close are what all nodes return for
// it.
type chainMarket struct {
	t       testing.TB
	rng     *rand.Rand
	node    *sandbox.Node
	setup   *sandbox.Setup
	traders []sol.PrivateKey
	pools   []*chainPool
	book    *chainBook
	table   sol.PublicKey // an address table with all vaults
	cluster *chainCluster

	unique uint32 // numbers transactions
	slot   uint64 // the open one
	hash   sol.Hash
	moves  []sentMove
	counts map[string]int // of what was done, by its name
}

// newChainMarket starts the chain, or skips the test with the reason.
func newChainMarket(t *testing.T, seed uint64) *chainMarket {
	t.Helper()
	m := &chainMarket{t: t, rng: rand.New(rand.NewPCG(seed, 7)), counts: map[string]int{}}
	m.node, m.setup = chaintest.StartChain(t, sandbox.Options{
		SetupDir: t.TempDir(), Wallets: 4, ManualSlots: true, FinalizeSlots: finalizeSlots, History: 100_000,
	})
	// By hand, and as fast as the test's clock.
	m.control("setSlotMs", map[string]any{"slotMs": slotPause.Milliseconds()})
	m.control("pause", map[string]any{})
	m.control("setTime", map[string]any{"unixTimestamp": time.Now().Unix()})
	m.control("advance", map[string]any{"slots": 1})
	for _, w := range m.setup.Wallets {
		m.traders = append(m.traders, sol.PrivateKey(programtest.Must(m.setup.Key(w))))
		for _, symbol := range []string{"SLUSD", "92C"} {
			m.control("fund", map[string]any{"wallet": w.Address, "symbol": symbol, "amount": 40_000_000_000_000})
		}
	}
	m.pools = []*chainPool{m.newPool("SLUSD/USDC", "SLUSD", "USDC", true), m.newPool("92C/SLUSD", "92C", "SLUSD", false)}
	m.book = &chainBook{at: m.derived("book"), pool: m.pools[0]}
	m.writeTable()
	m.cluster = newCluster(m.node.URL(), m.watched())
	m.begin()
	for _, p := range m.pools {
		m.open(p)
	}
	m.book.fill(m.rng)
	if err := errors.Join(m.writeAccounts(), m.close()); err != nil {
		t.Fatal(err)
	}
	return m
}

// control sends a command to the chain.
func (m *chainMarket) control(method string, params map[string]any) {
	m.t.Helper()
	if err := m.call("sandbox_"+method, nil, params); err != nil {
		m.t.Fatal(err)
	}
}

func (m *chainMarket) call(method string, result any, params any) error {
	return m.node.Call(context.WithoutCancel(m.t.Context()), method, params, result)
}

// derived returns a test address.
func (m *chainMarket) derived(name string) solana.Address {
	return sha256.Sum256([]byte(name + m.setup.GenesisHash))
}

func (m *chainMarket) newPool(symbol, base, quote string, cpmm bool) *chainPool {
	seed := m.derived("authority of " + symbol)
	key := ed25519.NewKeyFromSeed(seed[:])
	p := &chainPool{symbol: symbol, cpmm: cpmm, at: m.derived(symbol), authority: sol.PrivateKey(key), payers: map[string]bool{}}
	p.base, p.quote = m.vault(p, base), m.vault(p, quote)
	return p
}

func (m *chainMarket) vault(p *chainPool, symbol string) tokenVault {
	mint := m.setup.Mints[symbol]
	coin := mirror.Coin{Mint: programtest.Must(solana.ParseAddress(mint.Address)), Decimals: mint.Decimals}
	v := tokenVault{symbol: symbol, coin: coin, program: programtest.Must(solana.ParseAddress(mint.Program))}
	v.account = m.account(solana.Address(p.authority.PublicKey()), &v)
	return v
}

// account returns a holder's account of a vault's token.
func (m *chainMarket) account(holder solana.Address, v *tokenVault) solana.Address {
	return programtest.Must(solana.TokenAccount(holder, v.coin.Mint, v.program))
}

// watched returns the accounts that nodes return.
func (m *chainMarket) watched() []string {
	list := []solana.Address{solana.ClockSysvar, m.book.at}
	for _, p := range m.pools {
		list = append(list, p.at, p.base.account, p.quote.account, p.base.coin.Mint, p.quote.coin.Mint)
	}
	names := []string{m.setup.Treasury.Accounts["USDC"], m.setup.Desk.Accounts["SLUSD"]}
	for _, a := range list {
		if name := solana.Base58(a); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// writeTable writes an address table of all vaults and mints, as its program would.
func (m *chainMarket) writeTable() {
	m.table = sol.PublicKey(m.derived("table"))
	data := make([]byte, 56)
	data[0] = 1 // a table
	binary.LittleEndian.PutUint64(data[4:], 1<<64-1)
	for _, a := range m.tabled() {
		data = append(data, a[:]...)
	}
	m.control("setAccount", accountParams(solana.Address(m.table), programtest.Must(solana.ParseAddress(lookupProgram)), data))
}

func (m *chainMarket) tabled() (list sol.PublicKeySlice) {
	for _, p := range m.pools {
		for _, v := range []*tokenVault{&p.base, &p.quote} {
			list = append(list, sol.PublicKey(v.account))
		}
		list = append(list, sol.PublicKey(p.at))
	}
	return list
}

func accountParams(at, owner solana.Address, data []byte) map[string]any {
	return map[string]any{
		"pubkey": solana.Base58(at), "owner": solana.Base58(owner), "lamports": rentExempt, "data": base64.StdEncoding.EncodeToString(data),
	}
}

// begin opens a slot for transactions.
func (m *chainMarket) begin() {
	m.t.Helper()
	if err := m.fresh(); err != nil {
		m.t.Fatal(err)
	}
}

// fresh asks for the open slot and its blockhash.
func (m *chainMarket) fresh() error {
	var answer struct {
		Context struct{ Slot uint64 }
		Value   struct{ Blockhash string }
	}
	if err := m.call("getLatestBlockhash", &answer, []any{map[string]string{"commitment": "processed"}}); err != nil {
		return err
	}
	hash, err := sol.HashFromBase58(answer.Value.Blockhash)
	m.slot, m.hash, m.moves = answer.Context.Slot, hash, nil
	return err
}

// transfer moves tokens between an account of its owner's and a vault.
func (m *chainMarket) transfer(v *tokenVault, p *chainPool, from, to solana.Address, owner sol.PublicKey, atoms uint64) sol.Instruction {
	in := token.NewTransferCheckedInstruction(atoms, v.coin.Decimals, sol.PublicKey(from), sol.PublicKey(v.coin.Mint), sol.PublicKey(to), owner, nil).Build()
	accounts := in.Accounts()
	if p.cpmm { // its program would have named it, which is how its history is found
		accounts = append(accounts, sol.Meta(sol.PublicKey(p.at)))
	}
	return sol.NewInstruction(sol.PublicKey(v.program), accounts, programtest.Must(in.Data()))
}

// leg moves tokens into a vault, or, below zero, out of it.
func (m *chainMarket) leg(p *chainPool, v *tokenVault, trader sol.PublicKey, atoms int64) sol.Instruction {
	theirs := m.account(solana.Address(trader), v)
	if atoms < 0 {
		return m.transfer(v, p, v.account, theirs, p.authority.PublicKey(), uint64(-atoms))
	}
	return m.transfer(v, p, theirs, v.account, trader, uint64(atoms))
}

// open makes a pool's vaults and puts the first liquidity into them, all by one
// transaction, as the program does.
func (m *chainMarket) open(p *chainPool) {
	m.t.Helper()
	maker := m.traders[0]
	var list []sol.Instruction
	for _, v := range []*tokenVault{&p.base, &p.quote} {
		created := ata.NewCreateInstruction(maker.PublicKey(), p.authority.PublicKey(), sol.PublicKey(v.coin.Mint)).Build()
		accounts := slices.Clone(created.Accounts())
		accounts[1] = sol.Meta(sol.PublicKey(v.account)).WRITE()
		accounts[5] = sol.Meta(sol.PublicKey(v.program))
		list = append(list, sol.NewInstruction(sol.SPLAssociatedTokenAccountProgramID, accounts, []byte{0}))
	}
	const atoms = 2_000_000_000_000
	list = append(list, m.leg(p, &p.base, maker.PublicKey(), atoms), m.leg(p, &p.quote, maker.PublicKey(), atoms))
	if err := m.send(maker, txForm{}, false, []poolMove{{p, atoms, atoms}}, list...); err != nil {
		m.t.Fatal(err)
	}
}

// txForm is how a transaction is written.
type txForm struct {
	legacy, tabled, memo bool
}

// send lands a transaction in the open slot; settle checks its effect.
func (m *chainMarket) send(payer sol.PrivateKey, form txForm, fails bool, parts []poolMove, list ...sol.Instruction) error {
	m.unique++
	limit := binary.LittleEndian.AppendUint32([]byte{2}, 300_000+m.unique) // no two transactions are the same
	list = append(list, sol.NewInstruction(sol.MustPublicKeyFromBase58(budgetProgram), nil, limit))
	if form.memo {
		text := fmt.Sprintf("move %d", m.unique)
		list = append([]sol.Instruction{sol.NewInstruction(sol.PublicKey(solana.MemoProgram), nil, []byte(text))}, list...)
	}
	options := []sol.TransactionOption{sol.TransactionPayer(payer.PublicKey())}
	if !form.legacy {
		options = append(options, sol.TransactionMessageVersion(sol.MessageVersionV0))
	}
	if form.tabled {
		options = append(options, sol.TransactionAddressTables(map[sol.PublicKey]sol.PublicKeySlice{m.table: m.tabled()}))
	}
	x, err := sol.NewTransaction(list, m.hash, options...)
	if err != nil {
		return err
	}
	signers := append([]sol.PrivateKey{m.pools[0].authority, m.pools[1].authority}, m.traders...)
	if _, err := x.Sign(func(key sol.PublicKey) *sol.PrivateKey {
		i := slices.IndexFunc(signers, func(k sol.PrivateKey) bool { return k.PublicKey() == key })
		if i < 0 {
			return nil
		}
		return &signers[i]
	}); err != nil {
		return err
	}
	raw, err := x.MarshalBinary()
	if err != nil {
		return err
	}
	var signature string
	err = m.call("sendTransaction", &signature, []any{base64.StdEncoding.EncodeToString(raw), map[string]any{"encoding": "base64", "skipPreflight": true}})
	m.moves = append(m.moves, sentMove{signature, payer.PublicKey().String(), fails, parts})
	m.cluster.land(signature, landing{m.slot, parts})
	return err
}

// settle compares the open slot's transactions with their expected effects and enters
// them in the ledger.
func (m *chainMarket) settle(unix int64) error {
	if len(m.moves) == 0 {
		return nil
	}
	var names []string
	for i := range m.moves {
		names = append(names, m.moves[i].signature)
	}
	var answer struct {
		Value []*struct {
			Slot uint64
			Err  json.RawMessage
		}
	}
	if err := m.call("getSignatureStatuses", &answer, []any{names}); err != nil {
		return err
	}
	for i, v := range answer.Value {
		x := &m.moves[i]
		if v == nil || v.Slot != m.slot || (string(v.Err) != "null") != x.fails {
			return fmt.Errorf("transaction %s of slot %d: %+v", x.signature, m.slot, v)
		}
		for _, part := range x.parts {
			if !x.fails {
				part.pool.enter(&part, x, m.slot, unix)
				if list := part.pool.swaps; len(list) > 0 && list[len(list)-1].signature == x.signature {
					if _, ok := list[len(list)-1].trade(); ok {
						m.cluster.enter(part.pool.symbol, x.signature, m.slot)
					}
				}
			}
		}
	}
	return nil
}

// enter enters a transaction's effect on the pool. A swap's fee stays in the vault and
// then belongs to others.
func (p *chainPool) enter(part *poolMove, x *sentMove, slot uint64, unix int64) {
	p.base.atoms += uint64(part.base)
	p.quote.atoms += uint64(part.quote)
	switch {
	case part.base < 0 && part.quote > 0:
		p.swaps = append(p.swaps, doneSwap{slot, unix, x.signature, x.payer, true, uint64(-part.base), uint64(part.quote)})
		p.quote.collect(part.quote, p.cpmm)
	case part.base > 0 && part.quote < 0:
		p.swaps = append(p.swaps, doneSwap{slot, unix, x.signature, x.payer, false, uint64(part.base), uint64(-part.quote)})
		p.base.collect(part.base, p.cpmm)
	default:
		return
	}
	p.payers[x.payer] = true
}

func (v *tokenVault) collect(in int64, cpmm bool) {
	if cpmm {
		v.fees += uint64(in) / 2_500
	}
}

// writeAccounts writes the pool's account and the book's.
func (m *chainMarket) writeAccounts() error {
	p := m.pools[0]
	side := func(v *tokenVault) mirrortest.Reserve {
		// The three kinds of fees are distinguished by the program, and added by readers.
		return mirrortest.Reserve{Vault: v.account, Coin: v.coin, Program: v.program, Protocol: v.fees / 2, Fund: v.fees / 4, Creator: v.fees - v.fees/2 - v.fees/4}
	}
	pool := mirrortest.CPMM([2]mirrortest.Reserve{side(&p.quote), side(&p.base)})
	book := mirrortest.Manifest(p.base.coin, p.quote.coin, m.book.orders)
	return errors.Join(
		m.call("sandbox_setAccount", nil, accountParams(p.at, solana.RaydiumCPMMProgram, pool)),
		m.call("sandbox_setAccount", nil, accountParams(m.book.at, solana.ManifestProgram, book)),
	)
}

// close ends the open slot: nodes return the accounts as they are now.
func (m *chainMarket) close() error {
	unix, err := m.chainTime()
	if err != nil {
		return err
	}
	if err := m.settle(unix); err != nil {
		return err
	}
	if err := m.writeAccounts(); err != nil {
		return err
	}
	b, err := m.cluster.read(m, m.cluster.watched)
	if err != nil {
		return err
	}
	if err := m.check(b); err != nil {
		return fmt.Errorf("slot %d: %w", b.slot, err)
	}
	m.cluster.add(b, [2]string{b.atoms(m.pools[0].base.account), b.atoms(m.pools[0].quote.account)})
	if behind := time.Since(time.Unix(b.unix, 0)); behind > 2*time.Second {
		if err := m.call("sandbox_setTime", nil, map[string]any{"unixTimestamp": time.Now().Unix()}); err != nil {
			return err
		}
	}
	if err := m.call("sandbox_advance", nil, map[string]any{"slots": 1}); err != nil {
		return err
	}
	return m.fresh()
}

// chainTime is the open slot's, by its clock.
func (m *chainMarket) chainTime() (unix int64, err error) {
	b, err := m.cluster.read(m, []string{solana.Base58(solana.ClockSysvar)})
	if err != nil {
		return 0, err
	}
	return b.unix, nil
}

// check compares the chain with the ledger, because a wrong ledger would prove nothing.
func (m *chainMarket) check(b *bank) error {
	for _, p := range m.pools {
		for _, v := range []*tokenVault{&p.base, &p.quote} {
			data, err := b.data(solana.Base58(v.account))
			if err != nil {
				return err
			}
			if n := binary.LittleEndian.Uint64(data[64:]); n != v.atoms {
				return fmt.Errorf("%s: the vault of %s has %d atoms, the ledger says %d", p.symbol, v.symbol, n, v.atoms)
			}
		}
	}
	if b.slot != m.slot {
		return fmt.Errorf("read as slot %d, open is %d", b.slot, m.slot)
	}
	return nil
}

// priced returns the constant product's output for an input, less a fee of a quarter
// percent.
func priced(in, reserveIn, reserveOut uint64) uint64 {
	after := new(big.Int).Mul(new(big.Int).SetUint64(in), big.NewInt(9975))
	up := new(big.Int).Mul(after, new(big.Int).SetUint64(reserveOut))
	down := new(big.Int).Add(after, new(big.Int).Mul(new(big.Int).SetUint64(reserveIn), big.NewInt(10_000)))
	return up.Quo(up, down).Uint64()
}
