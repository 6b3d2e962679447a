package mirror_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
	"blockdesk/mirror"
)

// soundDepth checks what is true of every decoded book.
func soundDepth(t testing.TB, l *mirror.Listing, accounts []*rpc.Account, d *mirror.Depth) {
	t.Helper()
	bytes := 0
	for _, a := range accounts {
		bytes += len(a.Data)
	}
	// Every layout needs at least 72 bytes an order.
	if shown := len(d.Bids) + len(d.Asks); d.Orders < shown || d.Orders > bytes/72 || d.Omitted > bytes/72 {
		t.Fatalf("%d orders and %d unshown in %d levels, from %d bytes", d.Orders, d.Omitted, shown, bytes)
	}
	for i, side := range [][]mirror.Level{d.Bids, d.Asks} {
		if len(side) > l.Levels {
			t.Fatalf("%d levels, %d are wanted", len(side), l.Levels)
		}
		for j, level := range side {
			if level.Price < 1 || level.Price > l.Instrument.MaxPrice || level.Size == 0 {
				t.Fatalf("level %v", level)
			}
			if j > 0 && (level.Price == side[j-1].Price || (level.Price > side[j-1].Price) == (i == 0)) {
				t.Fatalf("side %d: %v after %v", i, level, side[j-1])
			}
		}
	}
}

// soundError checks that an error is a documented one.
func soundError(t testing.TB, err error) {
	t.Helper()
	for _, known := range []error{mirror.ErrListing, mirror.ErrAccount, mirror.ErrMalformed, mirror.ErrClosed} {
		if errors.Is(err, known) {
			return
		}
	}
	t.Fatalf("an error of no kind: %v", err)
}

// tryBook decodes accounts of any content. The sides get the addresses that the market
// names, so that a corrupted market's sides are read too.
func tryBook(t testing.TB, l mirror.Listing, accounts []*rpc.Account, at mirror.Clock, d *mirror.Depth) {
	t.Helper()
	b, err := mirror.Open(l, accounts[0])
	if err != nil {
		soundError(t, err)
		return
	}
	for i, address := range b.Accounts() {
		accounts[i].Address = address
	}
	if err := b.Decode(d, at, accounts); err != nil {
		soundError(t, err)
		if len(d.Bids)+len(d.Asks)+d.Orders+d.Omitted != 0 {
			t.Fatalf("%+v beside the error %v", d, err)
		}
		return
	}
	soundDepth(t, &l, accounts, d)
}

// spoil changes some bytes, mostly fields, to misleading values.
func spoil(r *rand.Rand, data []byte) {
	for range 1 + r.IntN(4) {
		span := len(data)
		if r.IntN(2) == 0 {
			span = min(span, 4096)
		}
		at := r.IntN(span)
		switch r.IntN(4) {
		case 0:
			data[at] ^= 1 << r.IntN(8)
		case 1:
			data[at] = byte(r.Uint32())
		default: // a word, aligned as the programs do it
			word := [...]uint32{0, 1, 2, 3, 80, 72, 88, 1 << 31, 1<<32 - 1, r.Uint32(), r.Uint32N(2000)}[r.IntN(11)]
			if at &^= 3; at+4 <= len(data) {
				u32(data, at, word)
			}
		}
	}
}

// spoilBooks decodes corrupted copies of a market.
func spoilBooks(t *testing.T, m *made, at mirror.Clock, rounds int) {
	t.Helper()
	const seed = 7
	r := rand.New(rand.NewPCG(seed, uint64(m.listing.Layout)))
	work := m.clone()
	var d mirror.Depth
	for range rounds {
		for i, a := range work.accounts {
			a.Address = m.accounts[i].Address
			copy(a.Data, m.accounts[i].Data)
		}
		spoil(r, work.accounts[r.IntN(len(work.accounts))].Data)
		tryBook(t, work.listing, work.accounts, at, &d)
	}
}

// TestSpoiledBooks: 5,000 corrupted copies of a market of each layout give an error
// or a sound book.
func TestSpoiledBooks(t *testing.T) {
	for _, layout := range layouts {
		spoilBooks(t, makeBook(layout, someOrders(layout, 40)), now, 5000)
	}
}

// TestSpoiledMainnet is the same for the recorded markets.
func TestSpoiledMainnet(t *testing.T) {
	for _, address := range []string{manifestSOL, "8sjV1AqBFvFuADBCQHhotaRq5DFFYSjjg1jMyVWMqXvZ"} {
		l, a, slot := recordedManifest(t, address, pair("AAA", "BBB", 6, 6))
		spoilBooks(t, &made{listing: l, accounts: []*rpc.Account{a}}, mirror.Clock{Slot: slot, Unix: 1}, 5000)
	}
	for name, decimals := range map[string]uint8{"sol_usdc": 9, "srm_usdc": 6} {
		l, accounts := recordedSerum(t, name, pair("AAA", "USDC", 3, 3), decimals)
		spoilBooks(t, &made{listing: l, accounts: accounts}, now, 5000)
	}
}

// TestCutBooks: a truncated account is refused, or is the same book if its end does not
// matter.
func TestCutBooks(t *testing.T) {
	for _, layout := range layouts {
		m := makeBook(layout, someOrders(layout, 5))
		for i := range m.accounts {
			for _, keep := range []int{0, 1, 7, 8, 12, 13, 44, 45, 51, 52, 80, 255, 256, 335, 336, 380, 387, 840, 847, 1000, len(m.accounts[i].Data) - 1} {
				c := m.clone()
				c.accounts[i].Data = c.accounts[i].Data[:min(keep, len(c.accounts[i].Data))]
				var d mirror.Depth
				tryBook(t, c.listing, c.accounts, now, &d)
				if d.Orders != 0 && keep < len(m.accounts[i].Data) {
					t.Errorf("%s: account %d of %d bytes: %+v", layout, i, keep, d)
				}
			}
		}
	}
}

// TestCritBitTooDeep: a chain of more inner nodes than a key has bits, each with a
// sibling on the stack.
func TestCritBitTooDeep(t *testing.T) {
	for _, depth := range []int{128, 129} {
		m := makeBook(mirror.Serum, nil)
		d := m.accounts[2].Data
		nodes := d[45:]
		for i := range depth {
			b := nodes[72*i:]
			b[0] = 1
			u32(b, 24, uint32(i+1))
			u32(b, 28, uint32(depth+1+i))
		}
		for i := range depth + 1 { // the leaves: the deepest one is the best
			b := nodes[72*(depth+i):]
			b[0] = 2
			u64(b, 16, uint64(depth-i+1))
			if i == 0 {
				u64(b, 16, 1)
			}
			u64(b, 56, 1)
		}
		u64(d, 13, uint64(2*depth+1))
		u64(d, 37, uint64(depth+1))
		var got mirror.Depth
		err := m.decode(&got, now)
		if depth == 128 && (err != nil || got.Orders != depth+1) {
			t.Errorf("%d deep: %d orders, %v", depth, got.Orders, err)
		}
		if depth == 129 && !errors.Is(err, mirror.ErrMalformed) {
			t.Errorf("%d deep: %d orders, %v", depth, got.Orders, err)
		}
	}
}

// TestManifestTooHigh: a degenerate tree of 65 nodes cannot be a red-black tree, although
// every link is valid.
func TestManifestTooHigh(t *testing.T) {
	for _, height := range []int{64, 65} {
		m := makeBook(mirror.Manifest, nil)
		d := append(m.accounts[0].Data, make([]byte, 80*height)...)
		for i := range height {
			b := d[256+80*i:]
			b[13], b[56] = 2, 1
			u64(b, 16, uint64(1+i)*1_000_000_000_000_000)
			u64(b, 32, 1)
			u32(b, 0, 1<<32-1)
			u32(b, 4, uint32(80*(i+1)))
		}
		u32(d, 256+80*(height-1)+4, 1<<32-1)
		u32(d, 152, uint32(80*height))
		u32(d, 156, 0)
		u32(d, 160, uint32(80*(height-1)))
		m.accounts[0].Data = d
		var got mirror.Depth
		err := m.decode(&got, now)
		if height == 64 && (err != nil || got.Orders != height) || height == 65 && !errors.Is(err, mirror.ErrMalformed) {
			t.Errorf("%d high: %d orders, %v", height, got.Orders, err)
		}
	}
}

// TestManifestEmptyRing: a ring of empty orders, which the price order does not end.
func TestManifestEmptyRing(t *testing.T) {
	m := makeBook(mirror.Manifest, []order{{bid: true, price: market.Uint128{Lo: 5}}})
	u32(m.accounts[0].Data, 256, 0) // its own left child
	var d mirror.Depth
	if err := m.decode(&d, now); !errors.Is(err, mirror.ErrMalformed) {
		t.Errorf("%+v, %v", d, err)
	}
}

// TestManifestBetweenNodes: a valid order that is not at a node's offset.
func TestManifestBetweenNodes(t *testing.T) {
	m := makeBook(mirror.Manifest, []order{{bid: true, price: market.Uint128{Lo: 1_000_000_000_000_000}, size: 1}})
	a := m.accounts[0]
	a.Data = append(a.Data[:256:256], append(make([]byte, 8), append(a.Data[256:], make([]byte, 72)...)...)...)
	u32(a.Data, 152, 160)
	u32(a.Data, 156, 8)
	u32(a.Data, 160, 8)
	var d mirror.Depth
	if err := m.decode(&d, now); !errors.Is(err, mirror.ErrMalformed) {
		t.Errorf("%+v, %v", d, err)
	}
}

// FuzzBook decodes accounts of any bytes as each layout.
func FuzzBook(f *testing.F) {
	for i, layout := range layouts {
		m := makeBook(layout, someOrders(layout, 5))
		m.accounts = append(m.accounts, &rpc.Account{}, &rpc.Account{})
		f.Add(uint8(i), now.Slot, now.Unix, m.accounts[0].Data, m.accounts[1].Data, m.accounts[2].Data)
	}
	f.Fuzz(func(t *testing.T, which uint8, slot uint64, unix int64, a, b, c []byte) {
		l := listing(layouts[int(which)%len(layouts)])
		accounts := []*rpc.Account{{Data: a}}
		if l.Layout != mirror.Manifest {
			accounts = append(accounts, &rpc.Account{Data: b}, &rpc.Account{Data: c})
		}
		accounts[0].Address = l.Market
		for _, account := range accounts {
			account.Owner = l.Program
		}
		var first, second mirror.Depth
		tryBook(t, l, accounts, mirror.Clock{Slot: slot, Unix: unix}, &first)
		tryBook(t, l, accounts, mirror.Clock{Slot: slot, Unix: unix}, &second)
		if !sameDepth(&first, &second) {
			t.Fatalf("once %+v\nthen %+v", first, second)
		}
	})
}

// FuzzManifest decodes a market of mainnet with a part overwritten.
func FuzzManifest(f *testing.F) {
	whole := savedAccount(f, "manifest_market.hex")
	f.Add(0, []byte{1}, uint64(1000))
	f.Add(156, []byte{0, 0, 0, 0, 80}, uint64(1000))
	f.Add(256, whole[256:336], uint64(330_442_809))
	l := listing(mirror.Manifest)
	l.Base = mirror.Coin{Mint: [32]byte(whole[16:48]), Decimals: whole[9]}
	l.Quote = mirror.Coin{Mint: [32]byte(whole[48:80]), Decimals: whole[10]}
	f.Fuzz(func(t *testing.T, at int, part []byte, slot uint64) {
		data := bytes.Clone(whole)
		if at < 0 || at > len(data) {
			return
		}
		copy(data[at:], part)
		var d mirror.Depth
		tryBook(t, l, []*rpc.Account{{Address: l.Market, Owner: l.Program, Data: data}}, mirror.Clock{Slot: slot, Unix: 1}, &d)
	})
}

// FuzzPool reads a pool and its vaults of any bytes.
func FuzzPool(f *testing.F) {
	_, accounts := makePool()
	f.Add(accounts[0].Data, accounts[1].Data, accounts[2].Data)
	f.Add(accounts[0].Data, accounts[1].Data, savedAccount(f, "cpmm_pool.hex"))
	f.Fuzz(func(t *testing.T, base, quote, pool []byte) {
		l, accounts := makePool()
		for i, data := range [][]byte{base, quote, pool} {
			accounts[i].Data = data
		}
		p, err := mirror.OpenPool(l, accounts[2])
		if err != nil {
			soundError(t, err)
			return
		}
		accounts[0].Address, accounts[1].Address = p.Accounts()[0], p.Accounts()[1]
		s, err := p.Decode(now, accounts)
		if err != nil {
			soundError(t, err)
			return
		}
		b, q := s.Reserves()
		if b > s.BaseBalance || q > s.QuoteBalance {
			t.Fatalf("reserves %d and %d of %+v", b, q, s)
		}
		for _, decimals := range []int{0, 6, market.MaxDecimals} {
			s.Spot(decimals)
		}
		s.Proof()
	})
}

// FuzzClock reads a clock of any bytes.
func FuzzClock(f *testing.F) {
	f.Add(make([]byte, 40), uint64(0))
	f.Fuzz(func(t *testing.T, data []byte, slot uint64) {
		a := clockAccount(slot, 1)
		a.Data = data
		c, err := mirror.ParseClock(a, slot)
		if err != nil {
			soundError(t, err)
		} else if c.Slot != slot || c.Unix <= 0 {
			t.Fatalf("%+v as of slot %d", c, slot)
		}
	})
}
