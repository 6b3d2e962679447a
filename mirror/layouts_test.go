package mirror_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math/big"
	"math/bits"
	"slices"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
	"blockdesk/mirror"
	"blockdesk/mirror/mirrortest"
)

// order is an order of a built book in the market's units, with its expiry.
type order struct {
	bid   bool
	price market.Uint128 // Manifest: × 10^18; else in lots
	size  uint64         // Manifest: base atoms; else base lots
	// Manifest: the last valid slot. OpenBook: placed and lifetime, in seconds.
	last   uint32
	placed uint64
	life   uint16
}

// made is a market built by a test.
type made struct {
	listing           mirror.Listing
	accounts          []*rpc.Account // as the Book asks for them
	quoteLot, baseLot uint64
}

var (
	baseCoin  = mirror.Coin{Mint: solana.Address{1, 1}, Decimals: 9}
	quoteCoin = mirror.Coin{Mint: solana.Address{2, 2}, Decimals: 6}
	atMarket  = solana.Address{3, 3}
	atBids    = solana.Address{4, 4}
	atAsks    = solana.Address{5, 5}
)

// instrument has a tick of 0.0001 and a lot of 0.001.
func instrument() *market.Instrument {
	return &market.Instrument{
		Symbol: "AAA/BBB", Base: "AAA", Quote: "BBB", PriceDecimals: 4, QtyDecimals: 3, Tick: 1, Lot: 1,
		MinQty: 1, MaxQty: market.MaxQty, MaxPrice: market.MaxPrice, Source: market.Mirrored,
	}
}

func listing(l mirror.Layout) mirror.Listing {
	program := map[mirror.Layout]solana.Address{mirror.Manifest: solana.ManifestProgram, mirror.Serum: solana.SerumProgram, mirror.OpenBook: solana.OpenBookV2Program}[l]
	return mirror.Listing{Instrument: instrument(), Layout: l, Program: program, Market: atMarket, Base: baseCoin, Quote: quoteCoin, Levels: mirror.MaxLevels}
}

// bestFirst sorts one side's orders by price-time priority.
func bestFirst(orders []order, bid bool) (side []order) {
	for _, o := range orders {
		if o.bid == bid {
			side = append(side, o)
		}
	}
	slices.SortStableFunc(side, func(a, b order) int {
		if bid {
			return b.price.Cmp(a.price)
		}
		return a.price.Cmp(b.price)
	})
	return side
}

// makeBook writes orders as the program would.
func makeBook(l mirror.Layout, orders []order) *made {
	m := &made{listing: listing(l), quoteLot: 1, baseLot: 1}
	switch l {
	case mirror.Manifest:
		m.accounts = []*rpc.Account{{Address: atMarket, Data: manifestData(orders)}}
	case mirror.Serum:
		m.quoteLot, m.baseLot = 100, 100_000_000
		m.accounts = []*rpc.Account{
			{Address: atMarket, Data: serumMarketData(m)},
			{Address: atBids, Data: serumSideData(bestFirst(orders, true), 33)},
			{Address: atAsks, Data: serumSideData(bestFirst(orders, false), 65)},
		}
	case mirror.OpenBook:
		m.quoteLot, m.baseLot = 10, 1_000_000
		m.accounts = []*rpc.Account{
			{Address: atMarket, Data: openBookMarketData(m)},
			{Address: atBids, Data: openBookSideData(bestFirst(orders, true), 0)},
			{Address: atAsks, Data: openBookSideData(bestFirst(orders, false), 1)},
		}
	}
	for _, a := range m.accounts {
		a.Owner = m.listing.Program
	}
	return m
}

func u32(b []byte, at int, v uint32) { binary.LittleEndian.PutUint32(b[at:], v) }
func u64(b []byte, at int, v uint64) { binary.LittleEndian.PutUint64(b[at:], v) }

// manifestData writes a market with these orders.
func manifestData(orders []order) []byte {
	list := make([]mirrortest.Order, len(orders))
	for i, o := range orders {
		list[i] = mirrortest.Order{Bid: o.bid, Price: o.price, Size: o.size, LastSlot: o.last}
	}
	return mirrortest.Manifest(baseCoin, quoteCoin, list)
}

// critData writes a tree of orders, sorted best first, into nodes of stride bytes and
// returns its root and its number of nodes. Bids of one price count their sequence
// downwards, so that the earlier one is further right.
func critData(nodes []byte, stride int, orders []order, bids bool, leaf func(node []byte, o order)) (root uint32, used int) {
	type key struct{ hi, lo uint64 }
	keys := make([]key, len(orders))
	for i, o := range orders {
		keys[i] = key{o.price.Lo, uint64(i)}
		if bids {
			keys[i].lo = ^uint64(i)
		}
	}
	index := make([]int, len(orders))
	for i := range index {
		index[i] = i
	}
	slices.SortFunc(index, func(a, b int) int {
		return cmp.Or(cmp.Compare(keys[a].hi, keys[b].hi), cmp.Compare(keys[a].lo, keys[b].lo))
	})
	take := func() (uint32, []byte) { used++; return uint32(used - 1), nodes[(used-1)*stride:][:stride] }
	var build func(in []int) uint32
	build = func(in []int) uint32 {
		at, b := take()
		first, last := keys[in[0]], keys[in[len(in)-1]]
		u64(b, 8, first.lo)
		u64(b, 16, first.hi)
		if len(in) == 1 {
			b[0] = 2
			leaf(b, orders[in[0]])
			return at
		}
		prefix := bits.LeadingZeros64(first.hi ^ last.hi)
		if first.hi == last.hi {
			prefix = 64 + bits.LeadingZeros64(first.lo^last.lo)
		}
		right, _ := slices.BinarySearchFunc(in, true, func(i int, _ bool) int {
			k := keys[i]
			if prefix < 64 {
				return int(k.hi>>(63-prefix)&1)*2 - 1
			}
			return int(k.lo>>(127-prefix)&1)*2 - 1
		})
		b[0] = 1
		u32(b, 4, uint32(prefix))
		u32(b, 24, build(in[:right]))
		u32(b, 28, build(in[right:]))
		return at
	}
	if len(orders) > 0 {
		root = build(index)
	}
	return root, used
}

func serumMarketData(m *made) []byte {
	d := make([]byte, 388)
	copy(d, "serum")
	copy(d[381:], "padding")
	u64(d, 5, 3)
	copy(d[13:], atMarket[:])
	copy(d[53:], baseCoin.Mint[:])
	copy(d[85:], quoteCoin.Mint[:])
	copy(d[285:], atBids[:])
	copy(d[317:], atAsks[:])
	u64(d, 349, m.baseLot)
	u64(d, 357, m.quoteLot)
	return d
}

// serumSideSize is the size of a side's account on mainnet.
const serumSideSize = 65548

func serumSideData(orders []order, flags uint64) []byte {
	size := max(serumSideSize, 45+7+72*2*len(orders))
	d := make([]byte, size)
	copy(d, "serum")
	copy(d[size-7:], "padding")
	u64(d, 5, flags)
	root, used := critData(d[45:], 72, orders, flags == 33, func(b []byte, o order) { u64(b, 56, o.size) })
	u64(d, 13, uint64(used))
	u32(d, 33, root)
	u64(d, 37, uint64(len(orders)))
	return d
}

func openBookMarketData(m *made) []byte {
	d := make([]byte, 848)
	u64(d, 0, 0x9ac6e30037d5bedb)
	d[9], d[10] = baseCoin.Decimals, quoteCoin.Decimals
	copy(d[200:], atBids[:])
	copy(d[232:], atAsks[:])
	u64(d, 448, m.quoteLot)
	u64(d, 456, m.baseLot)
	copy(d[576:], baseCoin.Mint[:])
	copy(d[608:], quoteCoin.Mint[:])
	return d
}

func openBookSideData(orders []order, kind byte) []byte {
	d := make([]byte, 840+1024*88)
	u64(d, 0, 0x396182b28de12c48)
	d[312] = kind
	root, used := critData(d[840:], 88, orders, kind == 0, func(b []byte, o order) {
		binary.LittleEndian.PutUint16(b[2:], o.life)
		u64(b, 56, o.size)
		u64(b, 64, o.placed)
	})
	u32(d, 8, root)
	u32(d, 12, uint32(len(orders)))
	u32(d, 316, uint32(used))
	return d
}

// clone copies the accounts, so that a test may corrupt them.
func (m *made) clone() *made {
	c := *m
	c.accounts = make([]*rpc.Account, len(m.accounts))
	for i, a := range m.accounts {
		b := *a
		b.Data = bytes.Clone(a.Data)
		c.accounts[i] = &b
	}
	return &c
}

// naive computes the result of Decode by rational arithmetic from the list of orders,
// without trees and bounds.
func (m *made) naive(orders []order, at mirror.Clock) (d mirror.Depth) {
	for _, bid := range []bool{true, false} {
		var levels []mirror.Level
		for _, o := range bestFirst(orders, bid) {
			expired := o.last != 0 && uint64(o.last) < at.Slot || o.life != 0 && uint64(at.Unix) >= o.placed+uint64(o.life)
			if expired || o.size == 0 {
				continue
			}
			price, atoms := m.ticks(o), new(big.Int).Mul(new(big.Int).SetUint64(o.size), new(big.Int).SetUint64(m.baseLot))
			n := len(levels)
			joins := n > 0 && price.IsInt64() && levels[n-1].Price == market.Price(price.Int64())
			sum := new(big.Int).Set(atoms)
			if joins {
				sum.Add(sum, new(big.Int).SetUint64(uint64(levels[n-1].Size)))
			}
			switch {
			case price.Sign() == 0 || price.Cmp(big.NewInt(int64(m.listing.Instrument.MaxPrice))) > 0 || !atoms.IsUint64() || !sum.IsUint64():
				d.Omitted++
				continue
			case joins:
				levels[n-1].Size = market.Amount(sum.Uint64())
			case n == m.listing.Levels:
				goto full
			default:
				levels = append(levels, mirror.Level{Price: market.Price(price.Int64()), Size: market.Amount(sum.Uint64())})
			}
			d.Orders++
		}
	full:
		if bid {
			d.Bids = levels
		} else {
			d.Asks = levels
		}
	}
	return d
}

// ticks rounds a bid's price down and an ask's up.
func (m *made) ticks(o order) *big.Int {
	power := func(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }
	up := new(big.Int).SetUint64(o.price.Hi)
	up.Or(up.Lsh(up, 64), new(big.Int).SetUint64(o.price.Lo))
	up.Mul(up, new(big.Int).SetUint64(m.quoteLot))
	up.Mul(up, power(int(m.listing.Base.Decimals)+int(m.listing.Instrument.PriceDecimals)))
	down := new(big.Int).Mul(new(big.Int).SetUint64(m.baseLot), new(big.Int).SetUint64(m.listing.Instrument.Tick))
	down.Mul(down, power(int(m.listing.Quote.Decimals)))
	if m.listing.Layout == mirror.Manifest {
		down.Mul(down, power(18))
	}
	q, rest := new(big.Int).QuoRem(up, down, new(big.Int))
	if !o.bid && rest.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	return q
}
