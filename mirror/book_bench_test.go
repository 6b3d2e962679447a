package mirror_test

import (
	"testing"

	"blockdesk/internal/solana/rpc"
	"blockdesk/mirror"
)

// largest makes the largest market of a layout: 10 MiB of Manifest nodes, the runtime's
// limit, or as many orders as both sides' accounts hold. The orders are stored in random
// order, as on an old market.
func largest(layout mirror.Layout) *made {
	orders := map[mirror.Layout]int{
		mirror.Manifest: (mirror.MaxBookAccount - 256) / 80 / 2, mirror.Serum: (serumSideSize - 52) / 72 / 2, mirror.OpenBook: 512,
	}[layout]
	m := makeBook(layout, someOrders(layout, orders))
	if layout == mirror.Manifest {
		m.accounts[0].Data = scatter(m.accounts[0].Data)
		m.listing.Instrument.PriceDecimals = 6
	}
	return m
}

// scatter moves the nodes of a Manifest account to random places and fixes their links.
func scatter(data []byte) []byte {
	const header, node, step = 256, 80, 65_537 // a prime, so that each place is met once
	n := (len(data) - header) / node
	moved := func(at uint32) uint32 {
		if at == 1<<32-1 {
			return at
		}
		return uint32(uint64(at/node) * step % uint64(n) * node)
	}
	d := make([]byte, len(data))
	copy(d, data[:header])
	relink := func(b []byte, at int) {
		u32(b, at, moved(uint32(b[at])|uint32(b[at+1])<<8|uint32(b[at+2])<<16|uint32(b[at+3])<<24))
	}
	for at := 156; at < 172; at += 4 {
		relink(d, at)
	}
	for i := range n {
		b := d[header+int(moved(uint32(i*node))):][:node]
		copy(b, data[header+i*node:])
		relink(b, 0)
		relink(b, 4)
		relink(b, 8)
	}
	return d
}

// dead expires every order of a Manifest account, so that a walk visits all nodes.
func dead(data []byte) {
	for b := data[256:]; len(b) >= 80; b = b[80:] {
		u32(b, 52, 1)
	}
}

// open opens the market or fails.
func (m *made) open(t testing.TB) mirror.Book {
	t.Helper()
	b, err := mirror.Open(m.listing, m.accounts[0])
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestDecodeAllocatesNothing: decoding the largest markets repeatedly into one Depth does
// not allocate.
func TestDecodeAllocatesNothing(t *testing.T) {
	for _, layout := range layouts {
		m := largest(layout)
		b := m.open(t)
		var d mirror.Depth
		read := func() {
			if err := b.Decode(&d, now, m.accounts); err != nil {
				t.Fatal(err)
			}
		}
		read()
		if want := min(mirror.MaxLevels, len(m.accounts[0].Data)); layout == mirror.Manifest && (len(d.Bids) != want || len(d.Asks) != want) {
			t.Errorf("%s: %d and %d levels", layout, len(d.Bids), len(d.Asks))
		}
		if layout == mirror.OpenBook && d.Orders != 1024 || layout == mirror.Serum && d.Orders != 908 {
			t.Errorf("%s: %d orders", layout, d.Orders)
		}
		if n := testing.AllocsPerRun(5, read); n != 0 {
			t.Errorf("%s: %v allocations", layout, n)
		}
	}
}

// BenchmarkDecode decodes the largest account of each layout with all levels, and
// Manifest's with the service's 100 and with no live order.
func BenchmarkDecode(b *testing.B) {
	for _, c := range []struct {
		name   string
		layout mirror.Layout
		levels int
		dead   bool
	}{
		{"manifest-10MiB/levels=1000", mirror.Manifest, mirror.MaxLevels, false},
		{"manifest-10MiB/levels=100", mirror.Manifest, 100, false},
		{"manifest-10MiB/all-expired", mirror.Manifest, 100, true},
		{"serum-2x65kB", mirror.Serum, mirror.MaxLevels, false},
		{"openbook-2x91kB", mirror.OpenBook, mirror.MaxLevels, false},
	} {
		b.Run(c.name, func(b *testing.B) {
			m := largest(c.layout)
			m.listing.Levels = c.levels
			if c.dead {
				dead(m.accounts[0].Data)
			}
			decodeLoop(b, m.open(b), m.accounts, now)
		})
	}
}

// BenchmarkDecodeMainnet reads the recorded SOL/USDC market of Manifest.
func BenchmarkDecodeMainnet(b *testing.B) {
	l, a, slot := recordedManifest(b, manifestSOL, pair("SOL", "USDC", 6, 9))
	m := made{listing: l, accounts: []*rpc.Account{a}}
	decodeLoop(b, m.open(b), m.accounts, mirror.Clock{Slot: slot, Unix: 1})
}

func decodeLoop(b *testing.B, book mirror.Book, accounts []*rpc.Account, at mirror.Clock) {
	b.Helper()
	b.ReportAllocs()
	var d mirror.Depth
	for b.Loop() {
		if err := book.Decode(&d, at, accounts); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(d.Bids)+len(d.Asks)), "levels")
}
