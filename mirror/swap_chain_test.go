package mirror_test

import (
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"testing"
	"time"

	"blockdesk/internal/sandbox"
	"blockdesk/internal/sandbox/sandboxtest"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/internal/solana/tx"
	"blockdesk/market"
	"blockdesk/mirror"
)

// tradedPair is a pair of vaults on a real runtime: the desk's base tokens, and
// the treasury's quote tokens.
type tradedPair struct {
	t      *testing.T
	local  *sandboxtest.Chain
	client *rpc.Client
	pair   mirror.VaultPair
	base   string
}

func startPair(t *testing.T, base string) *tradedPair {
	t.Helper()
	local := sandboxtest.Start(t, sandbox.Options{ManualSlots: true, ConfirmSlots: 1, FinalizeSlots: 2, Seed: "mirror"})
	setup := local.Setup
	p := &tradedPair{t: t, local: local, client: local.Client(rpc.Options{}), base: base}
	// The taker has none of the base yet, and no account for it.
	taker, mint := &setup.Wallets[0], setup.Mints[base]
	local.Control("fund", map[string]any{"wallet": taker.Address, "symbol": base, "amount": 1000})
	account, err := solana.TokenAccount(addressOf(t, taker.Address), addressOf(t, mint.Address), addressOf(t, mint.Program))
	if err != nil {
		t.Fatal(err)
	}
	taker.Accounts[base] = solana.Base58(account)
	p.pair = mirror.VaultPair{
		Base:  mirror.Vault{Account: addressOf(t, setup.Desk.Accounts[base]), Mint: addressOf(t, setup.Mints[base].Address)},
		Quote: mirror.Vault{Account: addressOf(t, setup.Treasury.Accounts["USDC"]), Mint: addressOf(t, setup.Mints["USDC"].Address)},
	}
	return p
}

// leg is a transfer between a taker and a vault.
type leg struct {
	symbol   string
	from, to *sandbox.Party
	atoms    market.Amount
}

func (p *tradedPair) buy(base, quote market.Amount) []leg {
	taker := &p.local.Setup.Wallets[0]
	return []leg{{"USDC", taker, &p.local.Setup.Treasury, quote}, {p.base, &p.local.Setup.Desk, taker, base}}
}

func (p *tradedPair) sell(base, quote market.Amount) []leg {
	taker := &p.local.Setup.Wallets[0]
	return []leg{{p.base, taker, &p.local.Setup.Desk, base}, {"USDC", &p.local.Setup.Treasury, taker, quote}}
}

// do sends a transaction with some transfers and waits some slots. A failing one is sent
// too.
func (p *tradedPair) do(slots int, legs ...leg) {
	p.t.Helper()
	signers := []*sandbox.Party{&p.local.Setup.Wallets[0], &p.local.Setup.Desk, &p.local.Setup.Treasury}
	b, err := p.client.Blockhash(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	m := tx.Message{Version: tx.V0, Blockhash: b.Hash, Header: tx.Header{Required: uint8(len(signers))}}
	key := func(text string) uint8 {
		a := addressOf(p.t, text)
		for i := range m.Keys {
			if m.Keys[i] == a {
				return uint8(i)
			}
		}
		m.Keys = append(m.Keys, a)
		return uint8(len(m.Keys) - 1)
	}
	for _, s := range signers {
		key(s.Address)
	}
	for _, l := range legs {
		key(l.from.Accounts[l.symbol])
		key(l.to.Accounts[l.symbol])
	}
	written := len(m.Keys)
	for _, l := range legs {
		mint := p.local.Setup.Mints[l.symbol]
		data := append(binary.LittleEndian.AppendUint64([]byte{12}, uint64(l.atoms)), mint.Decimals)
		m.Instructions = append(m.Instructions, tx.Instruction{
			Accounts: []uint8{key(l.from.Accounts[l.symbol]), key(mint.Address), key(l.to.Accounts[l.symbol]), key(l.from.Address)},
			Data:     data, Program: key(mint.Program),
		})
	}
	m.Header.ReadonlyUnsigned = uint8(len(m.Keys) - written)
	signed, err := m.Append(nil)
	if err != nil {
		p.t.Fatal(err)
	}
	t := tx.Transaction{Message: m}
	for _, s := range signers {
		t.Signatures = append(t.Signatures, solana.Signature(ed25519.Sign(p.local.Key(*s), signed)))
	}
	raw, err := t.Append(nil)
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.client.Send(p.t.Context(), raw, rpc.SendOptions{SkipPreflight: true}); err != nil {
		p.t.Fatal(err)
	}
	if slots > 0 {
		p.local.Advance(slots)
	}
}

// TestMirrorChain trades on a real runtime while a backfill follows, through a restart
// and a downtime: it reports exactly the swaps. Transactions that are not final, failed
// ones and gifts are not reported.
func TestMirrorChain(t *testing.T) {
	for _, base := range []string{"SLUSD", "92C"} {
		p := startPair(t, base)
		w := newWindows(t, mirror.WindowOptions{})
		var cursor mirror.Cursor
		now := time.Now()
		var swaps int
		var volume [2]uint64
		follow := func() {
			t.Helper()
			b, err := mirror.NewBackfill(mirror.BackfillOptions{Pair: p.pair, Account: p.pair.Quote.Account, PageSize: 3}, cursor)
			if err != nil {
				t.Fatal(err)
			}
			slot, err := p.client.Slot(t.Context(), rpc.Finalized)
			if err != nil {
				t.Fatal(err)
			}
			b.Poll(now, slot)
			for b.Next().Kind != 0 {
				progress, err := b.Step(t.Context(), oneNode{p.client})
				if err != nil || progress.Err != nil {
					t.Fatal(err, progress.Err)
				}
				if _, err := w.Apply(&progress); err != nil {
					t.Fatal(err)
				}
			}
			cursor = b.Cursor()
			r := w.At(now)
			if r.Totals.Doubts != 0 || int(r.Totals.Swaps) != swaps || r.Totals.Base.Lo != volume[0] || r.Totals.Quote.Lo != volume[1] {
				t.Fatalf("%s: %+v; want %d swaps of %d", base, r, swaps, volume)
			}
			if r.Totals.Complete && (!r.Day.Status.Proven() || r.Day.Swaps != swaps) {
				t.Fatalf("%s: %+v", base, r.Day)
			}
		}
		done := func(base, quote uint64) { swaps, volume = swaps+1, [2]uint64{volume[0] + base, volume[1] + quote} }
		p.local.Advance(4)
		follow()
		p.do(4, p.buy(1_000_001, 2_000_003)...)
		done(1_000_001, 2_000_003)
		follow()
		p.do(0, p.sell(500, 900)...)
		follow() // it is not final yet
		p.local.Advance(4)
		done(500, 900)
		follow()
		for i := range market.Amount(7) { // more than a page, some in one slot
			p.do(int(i%2), p.buy(10+i, 20+i)...)
			done(uint64(10+i), uint64(20+i))
		}
		p.do(1, p.buy(1<<62, 5)...)        // fails: there is not as much
		p.do(1, p.buy(1, 11)[0])           // a gift
		p.do(4, p.sell(1<<20, 77)[1])      // a withdrawal of one asset
		p.do(4, p.sell(333, 1_000_000)...) // down while all this went on
		done(333, 1_000_000)
		follow()
		if r := w.At(now); !r.Totals.Complete || r.Day.Status != mirror.Exact {
			t.Errorf("%s: %+v", base, r)
		}
		if last := w.At(now).Last; last.Side != market.Sell || last.Base != 333 || last.Quote != 1_000_000 || last.Time == 0 {
			t.Errorf("%s: %+v", base, last)
		}
	}
}

// oneNode is a client of a single node.
type oneNode struct{ *rpc.Client }

func (n oneNode) List(ctx context.Context, a solana.Address, page rpc.Page) (mirror.List, error) {
	list, err := n.Signatures(ctx, a, page, rpc.Finalized)
	return listOf(list, page), err
}
