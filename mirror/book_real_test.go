package mirror_test

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/internal/solana/token"
	"blockdesk/market"
	"blockdesk/mirror"
)

// recordedFile reads a recorded file, or skips the test.
func recordedFile(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(recordedPath(name))
	if os.IsNotExist(err) {
		t.Skipf("skipped: no recorded accounts here: solana/%s is absent (set BLOCKDESK_TESTDATA)", name)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// recordedPath returns the path of a recorded file, if it exists.
func recordedPath(name string) string {
	root := os.Getenv("BLOCKDESK_TESTDATA")
	if root == "" {
		root = filepath.Join("..", "..", "shared", "data")
	}
	return filepath.Join(root, "solana", filepath.FromSlash(name))
}

// recordedAccount reads a getAccountInfo answer of the account at an address.
func recordedAccount(t testing.TB, name, address string) (*rpc.Account, uint64) {
	t.Helper()
	var answer struct {
		Result struct {
			Context struct{ Slot uint64 }
			Value   struct {
				Data  []string
				Owner string
			}
		}
	}
	if err := json.Unmarshal(recordedFile(t, name), &answer); err != nil {
		t.Fatal(err)
	}
	value := answer.Result.Value
	if len(value.Data) != 2 || value.Data[1] != "base64" {
		t.Fatalf("%s: not in base64", name)
	}
	data, err := base64.StdEncoding.DecodeString(value.Data[0])
	if err != nil {
		t.Fatal(err)
	}
	return &rpc.Account{Address: addressOf(t, address), Owner: addressOf(t, value.Owner), Data: data}, answer.Result.Context.Slot
}

func addressOf(t testing.TB, text string) solana.Address {
	t.Helper()
	a, err := solana.ParseAddress(text)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// pair makes an instrument with a tick and a lot of one unit of their decimals.
func pair(base, quote string, priceDecimals, qtyDecimals uint8) *market.Instrument {
	in := instrument()
	in.Symbol, in.Base, in.Quote, in.PriceDecimals, in.QtyDecimals = base+"/"+quote, base, quote, priceDecimals, qtyDecimals
	return in
}

const usdcMint = "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v"

// recordedManifest returns one of the two recorded markets and the slot of its
// answer.
func recordedManifest(t testing.TB, address string, in *market.Instrument) (mirror.Listing, *rpc.Account, uint64) {
	t.Helper()
	a, slot := recordedAccount(t, "manifest/"+address+".json", address)
	return mirror.Listing{
		Instrument: in, Layout: mirror.Manifest, Program: solana.ManifestProgram, Market: a.Address, Levels: mirror.MaxLevels,
		Base: mirror.Coin{Mint: solana.Address(a.Data[16:48]), Decimals: a.Data[9]}, Quote: mirror.Coin{Mint: solana.Address(a.Data[48:80]), Decimals: a.Data[10]},
	}, a, slot
}

const manifestSOL = "ENhU8LsaR7vDD2G1CsWcsuSGNrih9Cv5WZEk7q9kPapQ"

// TestManifestOnMainnet: recorded SOL/USDC. Of its 71 orders 6 are empty: reverse orders
// that wait for their other side. Others expire some slots later.
func TestManifestOnMainnet(t *testing.T) {
	l, a, slot := recordedManifest(t, manifestSOL, pair("SOL", "USDC", 6, 9))
	if l.Base.Mint != solana.NativeMint || l.Quote.Mint != addressOf(t, usdcMint) {
		t.Fatalf("the market trades %s for %s", solana.Base58(l.Base.Mint), solana.Base58(l.Quote.Mint))
	}
	book, err := mirror.Open(l, a)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ slot, orders uint64 }{{slot, 65}, {330_442_408, 65}, {330_442_409, 64}, {330_442_808, 64}, {330_442_809, 58}} {
		var d mirror.Depth
		if err := book.Decode(&d, mirror.Clock{Slot: c.slot, Unix: 1}, []*rpc.Account{a}); err != nil {
			t.Fatal(err)
		}
		if d.Orders != int(c.orders) || d.Omitted != 0 {
			t.Errorf("at slot %d: %d orders, %d unshown; want %d", c.slot, d.Orders, d.Omitted, c.orders)
		}
		if c.slot == slot {
			checkManifest(t, &l, a, slot, &d)
		}
	}
}

// checkManifest compares the decoded SOL/USDC book with every node of the account, read
// in memory order.
func checkManifest(t *testing.T, l *mirror.Listing, a *rpc.Account, slot uint64, d *mirror.Depth) {
	t.Helper()
	orders := scanManifest(a)
	if bids := len(bestFirst(orders, true)); bids != 21 || len(orders) != 21+50 {
		t.Errorf("the account holds %d bids of %d orders", bids, len(orders))
	}
	m := made{listing: *l, quoteLot: 1, baseLot: 1}
	if want := m.naive(orders, mirror.Clock{Slot: slot}); !sameDepth(d, &want) {
		t.Errorf("decoded %+v\nwant    %+v", d, want)
	}
	if d.Bids[0] != (mirror.Level{Price: 125_527_191, Size: 1_967_941_262}) || d.Asks[0] != (mirror.Level{Price: 125_897_856, Size: 198_573_674}) {
		t.Errorf("the best bid is %v, the best ask %v", d.Bids[0], d.Asks[0])
	}
}

// scanManifest reads every order of the account without its trees.
func scanManifest(a *rpc.Account) (orders []order) {
	for b := a.Data[256:]; len(b) >= 80; b = b[80:] {
		if b[13] == 2 {
			orders = append(orders, order{
				bid: b[56] == 1, size: binary.LittleEndian.Uint64(b[32:]), last: binary.LittleEndian.Uint32(b[52:]),
				price: market.Uint128{Lo: binary.LittleEndian.Uint64(b[16:]), Hi: binary.LittleEndian.Uint64(b[24:])},
			})
		}
	}
	return orders
}

// TestManifestIsBacked: the vaults of both recorded markets hold exactly what their asks
// sell and their bids pay, to the atom.
func TestManifestIsBacked(t *testing.T) {
	for _, address := range []string{manifestSOL, "8sjV1AqBFvFuADBCQHhotaRq5DFFYSjjg1jMyVWMqXvZ"} {
		l, a, slot := recordedManifest(t, address, pair("AAA", "BBB", 12, 9))
		book, err := mirror.Open(l, a)
		if err != nil {
			t.Fatal(err)
		}
		var d mirror.Depth
		if err := book.Decode(&d, mirror.Clock{Slot: slot, Unix: 1}, []*rpc.Account{a}); err != nil || len(d.Bids) == 0 || len(d.Asks) == 0 {
			t.Fatalf("%s: %+v, %v", address, d, err)
		}
		var sold, paid big.Int
		for _, level := range d.Asks {
			sold.Add(&sold, new(big.Int).SetUint64(uint64(level.Size)))
		}
		for _, level := range d.Bids {
			paid.Add(&paid, new(big.Int).Mul(new(big.Int).SetUint64(uint64(level.Size)), big.NewInt(int64(level.Price))))
		}
		// A price is in 10^-12 quote units a base unit.
		exp := 12 + int(l.Base.Decimals) - int(l.Quote.Decimals)
		paid.Div(&paid, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(exp)), nil))
		for i, want := range []*big.Int{&sold, &paid} {
			vault := solana.Base58(solana.Address(a.Data[80+32*i:]))
			held, _ := recordedAccount(t, "manifest/"+vault+".json", vault)
			v, err := token.ParseAccount(held.Owner, held.Data)
			if err != nil || v.Mint != []solana.Address{l.Base.Mint, l.Quote.Mint}[i] {
				t.Fatalf("vault %s: %+v, %v", vault, v, err)
			}
			if want.Cmp(new(big.Int).SetUint64(uint64(v.Amount))) > 0 {
				t.Errorf("%s shows %v atoms and vault %s holds %d", address, want, vault, v.Amount)
			}
		}
	}
}

// recordedSerum returns a recorded market. The recording lacks its address.
func recordedSerum(t testing.TB, name string, in *market.Instrument, baseDecimals uint8) (mirror.Listing, []*rpc.Account) {
	t.Helper()
	files := []string{"_dex_market.bin", "_dex_market_bids.bin", "_dex_market_asks.bin"}
	accounts := make([]*rpc.Account, len(files))
	for i, file := range files {
		accounts[i] = &rpc.Account{Owner: solana.SerumProgram, Data: recordedFile(t, "serum/"+name+file)}
	}
	d := accounts[0].Data
	for i, at := range []int{13, 285, 317} {
		accounts[i].Address = solana.Address(d[at:])
	}
	return mirror.Listing{
		Instrument: in, Layout: mirror.Serum, Program: solana.SerumProgram, Market: accounts[0].Address, Levels: mirror.MaxLevels,
		Base: mirror.Coin{Mint: solana.Address(d[53:85]), Decimals: baseDecimals}, Quote: mirror.Coin{Mint: solana.Address(d[85:117]), Decimals: 6},
	}, accounts
}

// TestSerumOnMainnet compares two recorded markets with every leaf of their accounts,
// read in memory order.
func TestSerumOnMainnet(t *testing.T) {
	for _, c := range []struct {
		name             string
		base             string
		decimals         uint8
		orders, unshown  int
		bid, ask         market.Price // in 0.001
		bidSize, askSize market.Amount
	}{
		{"sol_usdc", "SOL", 9, 22 + 23, 0, 13_988, 13_989, 300_000_000_000, 12_100_000_000},
		// One of the asks is above every instrument's maximum price.
		{"srm_usdc", "SRM", 6, 26 + 17, 1, 5_818, 5_822, 100_000_000, 20_000_000},
	} {
		l, accounts := recordedSerum(t, c.name, pair(c.base, "USDC", 3, 3), c.decimals)
		book, err := mirror.Open(l, accounts[0])
		if err != nil {
			t.Fatal(err)
		}
		for i, a := range book.Accounts() {
			if a != accounts[i].Address {
				t.Errorf("%s: account %d is %s", c.name, i, solana.Base58(a))
			}
		}
		var d mirror.Depth
		if err := book.Decode(&d, now, accounts); err != nil {
			t.Fatal(err)
		}
		m := made{listing: l, baseLot: binary.LittleEndian.Uint64(accounts[0].Data[349:]), quoteLot: binary.LittleEndian.Uint64(accounts[0].Data[357:])}
		orders := slices.Concat(scanSerum(accounts[1], true), scanSerum(accounts[2], false))
		if want := m.naive(orders, now); !sameDepth(&d, &want) || d.Orders != c.orders || d.Omitted != c.unshown {
			t.Errorf("%s: decoded %+v\nwant    %+v", c.name, d, want)
		}
		if d.Bids[0] != (mirror.Level{Price: c.bid, Size: c.bidSize}) || d.Asks[0] != (mirror.Level{Price: c.ask, Size: c.askSize}) {
			t.Errorf("%s: the best bid is %v, the best ask %v", c.name, d.Bids[0], d.Asks[0])
		}
	}
}

// scanSerum reads every leaf of a side without its tree.
func scanSerum(a *rpc.Account, bid bool) (orders []order) {
	used := binary.LittleEndian.Uint64(a.Data[13:])
	for b := a.Data[45:]; used > 0; b, used = b[72:], used-1 {
		if binary.LittleEndian.Uint32(b) == 2 {
			orders = append(orders, order{bid: bid, size: binary.LittleEndian.Uint64(b[56:]), price: market.Uint128{Lo: binary.LittleEndian.Uint64(b[16:])}})
		}
	}
	return orders
}
