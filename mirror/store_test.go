package mirror_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
	"blockdesk/mirror"
)

// savedAccount reads an account from testdata, in hex, which is available on every
// machine.
func savedAccount(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for line := range strings.Lines(string(b)) {
		if !strings.HasPrefix(line, "#") {
			text.WriteString(strings.TrimSpace(line))
		}
	}
	data, err := hex.DecodeString(text.String())
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestKeptManifest decodes a stored USDT/USDC market, whose best prices differ by ten
// millionths.
func TestKeptManifest(t *testing.T) {
	data := savedAccount(t, "manifest_market.hex")
	l := listing(mirror.Manifest)
	l.Instrument = pair("USDT", "USDC", 6, 6)
	l.Base = mirror.Coin{Mint: solana.Address(data[16:48]), Decimals: 6}
	l.Quote = mirror.Coin{Mint: solana.Address(data[48:80]), Decimals: 6}
	a := &rpc.Account{Address: l.Market, Owner: l.Program, Data: data}
	m := made{listing: l, accounts: []*rpc.Account{a}, quoteLot: 1, baseLot: 1}
	at := mirror.Clock{Slot: 330_620_981, Unix: 1}
	var d mirror.Depth
	if err := m.decode(&d, at); err != nil {
		t.Fatal(err)
	}
	if want := m.naive(scanManifest(a), at); !sameDepth(&d, &want) || d.Orders != 21+22 {
		t.Errorf("decoded %+v\nwant    %+v", d, want)
	}
	// Bids of 0.99983666 and a few 10^-18 are one level of 0.999836; the best ask
	// of 0.9998466… is one of 0.999847.
	if d.Bids[0].Price != 999_836 || d.Asks[0].Price != 999_847 {
		t.Errorf("the best bid is %v, the best ask %v", d.Bids[0], d.Asks[0])
	}
	lots, err := l.AppendLots(nil, d.Bids[:1])
	if err != nil || lots[0] != (market.Level{Price: 999_836, Qty: market.Qty(d.Bids[0].Size)}) {
		t.Errorf("a lot is an atom: %v, %v", lots, err)
	}
}

// TestKeptPool opens a pool of the real program.
func TestKeptPool(t *testing.T) {
	data := savedAccount(t, "cpmm_pool.hex")
	l := mirror.PoolListing{
		Pool: atPool, Program: solana.RaydiumCPMMProgram,
		Base: mirror.Coin{Mint: solana.Address(data[200:232]), Decimals: 9}, Quote: mirror.Coin{Mint: solana.Address(data[168:200]), Decimals: 6},
	}
	accounts := []*rpc.Account{nil, nil, {Address: atPool, Owner: solana.RaydiumCPMMProgram, Data: data}}
	p, err := mirror.OpenPool(l, accounts[2])
	if err != nil {
		t.Fatal(err)
	}
	v := p.Vaults()
	accounts[0] = vaultAccount(v.Base.Account, v.Base.Mint, 2_006_028_719_585)
	accounts[1] = vaultAccount(v.Quote.Account, v.Quote.Mint, 997_002_268_327_025)
	s, err := p.Decode(now, accounts)
	if err != nil || s.BaseFees != 2_422_800 || s.QuoteFees != 5_653_200 || s.Stopped {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestKeptAreRecorded: testdata equals the recordings.
func TestKeptAreRecorded(t *testing.T) {
	const address = "8sjV1AqBFvFuADBCQHhotaRq5DFFYSjjg1jMyVWMqXvZ"
	a, _ := recordedAccount(t, "manifest/"+address+".json", address)
	pool, _ := recordedAccount(t, "cpmm/pool.json", address)
	if !bytes.Equal(a.Data, savedAccount(t, "manifest_market.hex")) || !bytes.Equal(pool.Data, savedAccount(t, "cpmm_pool.hex")) {
		t.Error("a kept account is not the recorded one")
	}
}

// TestKeptParents: the program maintains the parent links by which live orders are
// checked.
func TestKeptParents(t *testing.T) {
	const header, none = 256, 1<<32 - 1
	data := savedAccount(t, "manifest_market.hex")
	link := func(at int) uint32 { return binary.LittleEndian.Uint32(data[at:]) }
	seen := 0
	var visit func(at, parent uint32)
	visit = func(at, parent uint32) {
		if at == none {
			return
		}
		seen++
		if got := link(header + int(at) + 8); got != parent {
			t.Errorf("node %d: its parent is %d, not %d", at, got, parent)
		}
		visit(link(header+int(at)), at)
		visit(link(header+int(at)+4), at)
	}
	visit(link(156), none)
	visit(link(164), none)
	if seen != 21+22 {
		t.Errorf("%d orders", seen)
	}
}
