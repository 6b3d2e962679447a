package settle_test

import (
	"crypto/ed25519"
	"path/filepath"
	"testing"
	"time"

	"blockdesk/internal/sandbox"
	"blockdesk/internal/sandbox/sandboxtest"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/internal/solana/tx"
	"blockdesk/market"
)

const (
	slotTime = 25 * time.Millisecond
	// blockhashLife is so long that nothing expires but where a test lets as many
	// slots pass.
	blockhashLife = 5000
)

// chain is a real Solana runtime. It finalizes after two slots.
type chain struct {
	t      testing.TB
	local  *sandboxtest.Chain
	client *rpc.Client // the test's own, not the service's
	desk   solana.Address
	// treasury is paid on both rails.
	treasury solana.Address
	began    uint64 // slot: what came before is the chain's own setup
	mints    map[string]solana.Address
	programs map[string]solana.Address
}

// wallet is a client's wallet.
type wallet struct {
	address solana.Address
	key     ed25519.PrivateKey
}

// startChain starts one whose slots pass by themselves, or skips the test with
// the reason.
func startChain(t testing.TB) *chain {
	t.Helper()
	local := sandboxtest.Start(t, sandbox.Options{
		SlotTime: slotTime, BlockhashSlots: blockhashLife, ConfirmSlots: 1, FinalizeSlots: 2, Seed: t.Name(), Wallets: 12,
	})
	c := &chain{t: t, local: local, client: local.Client(rpc.Options{}), mints: map[string]solana.Address{}, programs: map[string]solana.Address{}}
	var err error
	c.began, err = c.client.Slot(t.Context(), rpc.Processed)
	c.must(err)
	c.advance(1)
	c.desk, c.treasury = c.address(local.Setup.Desk.Address), c.address(local.Setup.Treasury.Address)
	for symbol, m := range local.Setup.Mints {
		c.mints[symbol], c.programs[symbol] = c.address(m.Address), c.address(m.Program)
	}
	return c
}

func (c *chain) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *chain) address(text string) solana.Address {
	c.t.Helper()
	return c.local.Address(text)
}

func (c *chain) wallet(i int) wallet {
	c.t.Helper()
	p := c.local.Setup.Wallets[i]
	return wallet{c.address(p.Address), c.local.Key(p)}
}

// freshWallet is one without any account on the chain.
func freshWallet(t testing.TB) wallet {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return wallet{addressOf(key), key}
}

// keyFile is the desk's.
func (c *chain) keyFile() string { return filepath.Join(c.local.Dir, c.local.Setup.Desk.Keypair) }

// control sends the chain a control request, sandbox_method.
func (c *chain) control(method string, params map[string]any) {
	c.t.Helper()
	c.local.Control(method, params)
}

// advance lets slots pass at once, and next to no time.
func (c *chain) advance(slots int) {
	c.t.Helper()
	c.control("setSlotMs", map[string]any{"slotMs": 1})
	c.local.Advance(slots)
	c.control("setSlotMs", map[string]any{"slotMs": slotTime.Milliseconds()})
}

// fill returns the transaction with the wallet's signature in its slot.
func (w wallet) fill(t testing.TB, raw []byte) []byte {
	t.Helper()
	d, err := tx.Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	slot, ok := d.Message.Slot(w.address)
	if !ok {
		t.Fatalf("%s does not sign it", solana.Base58(w.address))
	}
	d.Signatures[slot] = w.sign(d.Signed)
	out, err := d.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (w wallet) sign(message []byte) solana.Signature {
	return solana.Signature(ed25519.Sign(w.key, message))
}

// send gives a whole transaction to the chain.
func (c *chain) send(raw []byte) solana.Signature {
	c.t.Helper()
	s, err := c.client.Send(c.t.Context(), raw, rpc.SendOptions{})
	c.must(err)
	return s
}

// holdings are token atoms and lamports by wallet and symbol.
type holdings map[string]uint64

// holdings reads what some wallets have.
func (c *chain) holdings(wallets map[string]solana.Address) holdings {
	c.t.Helper()
	h := holdings{}
	for name, w := range wallets {
		lamports, _, err := c.client.Balance(c.t.Context(), w, rpc.Confirmed)
		c.must(err)
		h[name+" SOL"] = uint64(lamports)
		for symbol := range c.mints {
			h[name+" "+symbol] = c.tokens(w, symbol)
		}
	}
	return h
}

// tokens are the atoms that a wallet has of a token.
func (c *chain) tokens(w solana.Address, symbol string) (sum uint64) {
	c.t.Helper()
	list, _, err := c.client.TokenAccounts(c.t.Context(), w, c.mints[symbol], solana.Address{}, rpc.Confirmed)
	c.must(err)
	for _, a := range list {
		sum += amountOf(c.t, a)
	}
	return sum
}

// minus is what has changed since.
func (h holdings) minus(before holdings) map[string]int64 {
	out := map[string]int64{}
	for key := range h {
		if d := int64(h[key] - before[key]); d != 0 {
			out[key] = d
		}
	}
	return out
}

// fee is what a transaction cost its payer.
func (c *chain) fee(s solana.Signature) int64 {
	c.t.Helper()
	t, ok, err := c.client.Transaction(c.t.Context(), s, rpc.Finalized)
	c.must(err)
	if !ok {
		c.t.Fatalf("%s is not finalized", s)
	}
	return int64(t.Fee)
}

// rent is what a token account of the size must hold.
func (c *chain) rent(size int) int64 {
	c.t.Helper()
	n, err := c.client.Rent(c.t.Context(), size)
	c.must(err)
	return int64(n)
}

// symbols of the pairs that tests sell, by instrument.
var symbols = map[market.InstrumentID]string{1: "SLUSD", 2: "92C"}

// messageOf is what is signed of a transaction.
func messageOf(t testing.TB, raw []byte) []byte {
	t.Helper()
	d, err := tx.Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	return d.Signed
}

// sendPlainly leaves out the preflight: what has landed before is no error.
var sendPlainly = rpc.SendOptions{SkipPreflight: true}

// signatureOf names a signed transaction.
func signatureOf(t testing.TB, raw []byte) solana.Signature {
	t.Helper()
	d, err := tx.Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	return d.Signatures[0]
}
