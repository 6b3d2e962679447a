package mirror

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"

	sol "github.com/gagliardetto/solana-go"

	"blockdesk/e2e/feedtest"
	"blockdesk/e2e/programtest"
	"blockdesk/internal/solana"
	"blockdesk/market"
	"blockdesk/mirror/mirrortest"
)

// step makes the transactions of one slot and closes it.
func (m *chainMarket) step() error {
	for range m.rng.IntN(3) {
		if err := m.act(); err != nil {
			return err
		}
	}
	m.book.move(m.rng, m.slot)
	return m.close()
}

// act sends one transaction.
func (m *chainMarket) act() error {
	p := m.pools[0]
	if m.rng.IntN(4) == 0 {
		p = m.pools[1]
	}
	trader := m.traders[m.rng.IntN(len(m.traders))]
	form := txForm{legacy: m.rng.IntN(3) == 0, memo: m.rng.IntN(3) == 0}
	form.tabled = !form.legacy && m.rng.IntN(2) == 0
	one := func(moves ...poolMove) []poolMove { return moves }
	var name string
	var parts []poolMove
	switch n := m.rng.IntN(100); {
	case n < 55:
		name, parts = "swap", one(m.swap(p, 10_000_000, 900_000_000))
	case n < 63:
		name, parts = "swap of less than a lot", one(m.swap(p, 40, 8_000))
	case n < 71:
		name, parts = "swap of both pools", one(m.swap(m.pools[0], 1_000_000, 9_000_000), m.swap(m.pools[1], 1_000_000, 9_000_000))
	case n < 76:
		name, parts = "deposit", one(poolMove{p, m.some(1_000_000), m.some(1_000_000)})
	case n < 81:
		name, parts = "withdrawal", one(poolMove{p, -m.some(1_000_000), -m.some(1_000_000)})
	case n < 84:
		name, parts = "gift", one(poolMove{p, m.some(1_000_000), 0})
	case n < 92:
		name, parts = failedSwap, one(poolMove{p, 1 << 60, -m.some(1_000_000)})
	default:
		return m.twice(p, trader, form)
	}
	m.counts[name]++
	return m.send(trader, form, name == failedSwap, parts, m.legs(trader.PublicKey(), parts)...)
}

// exchange swaps with one pool.
func (m *chainMarket) exchange(p *chainPool) error {
	parts, trader := []poolMove{m.swap(p, 10_000_000, 900_000_000)}, m.traders[0]
	m.counts["swap"]++
	return m.send(trader, txForm{}, false, parts, m.legs(trader.PublicKey(), parts)...)
}

// failedSwap pays more than the balance.
const failedSwap = "failed swap"

// twice swaps twice with one pool in a transaction. No program separates the two, so they
// are one swap with the sum of the effects.
func (m *chainMarket) twice(p *chainPool, trader sol.PrivateKey, form txForm) error {
	m.counts["two exchanges"]++
	base, quote := p.reserves()
	in := uint64(m.some(50_000_000))
	first, second := poolMove{p, -int64(priced(in, quote, base)), int64(in)}, poolMove{p, -m.some(5_000), m.some(6_000)}
	both := poolMove{p, first.base + second.base, first.quote + second.quote}
	list := append(m.legs(trader.PublicKey(), []poolMove{first}), m.legs(trader.PublicKey(), []poolMove{second})...)
	return m.send(trader, form, false, []poolMove{both}, list...)
}

// some returns a number of atoms, at least 1.
func (m *chainMarket) some(most int64) int64 { return 1 + m.rng.Int64N(most) }

// swap pays from..to atoms at the pool's price.
func (m *chainMarket) swap(p *chainPool, from, to int64) poolMove {
	base, quote := p.reserves()
	in := from + m.rng.Int64N(to-from)
	if m.rng.IntN(2) == 0 {
		return poolMove{p, -int64(priced(uint64(in), quote, base)), in}
	}
	return poolMove{p, in, -int64(priced(uint64(in), base, quote))}
}

// legs returns the transfers of some moves, inputs first.
func (m *chainMarket) legs(trader sol.PublicKey, parts []poolMove) (list []sol.Instruction) {
	for _, in := range []bool{true, false} {
		for _, part := range parts {
			if part.base != 0 && part.base > 0 == in {
				list = append(list, m.leg(part.pool, &part.pool.base, trader, part.base))
			}
			if part.quote != 0 && part.quote > 0 == in {
				list = append(list, m.leg(part.pool, &part.pool.quote, trader, part.quote))
			}
		}
	}
	return list
}

// chainBook is the orders of the first pool's pair on a Manifest market.
type chainBook struct {
	at     solana.Address
	pool   *chainPool
	orders []mirrortest.Order
}

// pricedAt is a price in millionths as the market has it, and a few of its own
// digits more, which no tick of the instrument's expresses.
func pricedAt(millionths, more uint64) market.Uint128 {
	return programtest.Must(market.Mul(millionths, 1_000_000_000_000).Add(market.Uint128{Lo: more}))
}

// order draws an order at a price around 1.
func (b *chainBook) order(rng *rand.Rand, bid bool) mirrortest.Order {
	millionths := 1_000_100 + rng.Uint64N(40_000)
	if bid {
		millionths = 999_900 - rng.Uint64N(40_000)
	}
	return mirrortest.Order{Bid: bid, Price: pricedAt(millionths, rng.Uint64N(1_000_000_000)), Size: 1 + rng.Uint64N(50_000_000_000)}
}

func (b *chainBook) fill(rng *rand.Rand) {
	for range 12 {
		b.orders = append(b.orders, b.order(rng, true), b.order(rng, false))
	}
}

// mostOrders is enough for a side to have more prices than are shown.
const mostOrders = 260

// move changes the book in a slot.
func (b *chainBook) move(rng *rand.Rand, slot uint64) {
	switch n := rng.IntN(100); {
	case n < 45 && len(b.orders) < mostOrders:
		o := b.order(rng, rng.IntN(2) == 0)
		if rng.IntN(3) == 0 {
			o.LastSlot = uint32(slot) + rng.Uint32N(12)
		}
		if rng.IntN(8) == 0 {
			o.Size = rng.Uint64N(10_000) // less than a lot, or what waits for its other side
		}
		b.orders = append(b.orders, o)
	case n < 65 && len(b.orders) > 0:
		i := rng.IntN(len(b.orders))
		b.orders = slices.Delete(b.orders, i, i+1)
	case n < 80 && len(b.orders) > 0:
		o := &b.orders[rng.IntN(len(b.orders))]
		o.Size += rng.Uint64N(1_000_000)
	case n < 82:
		// Orders that no instrument can express, as strangers may place.
		b.orders = append(b.orders,
			mirrortest.Order{Price: market.Uint128{Hi: 1 << 60, Lo: 7}, Size: 5},
			mirrortest.Order{Bid: true, Price: market.Uint128{Lo: 3}, Size: 1 << 63})
	case n < 84:
		// An order beyond the other side, as a program leaves where its owner was
		// not asked.
		o := b.order(rng, true)
		o.Price, o.LastSlot = pricedAt(1_000_900, 5), uint32(slot)+2
		b.orders = append(b.orders, o)
	case n < 86:
		b.orders = nil
	case n < 89:
		for len(b.orders) < mostOrders {
			b.orders = append(b.orders, b.order(rng, len(b.orders)%2 == 0))
		}
	case n < 92:
		b.orders = b.orders[:min(len(b.orders), 30)]
		b.fill(rng)
	}
}

// Figures of both instruments.
const (
	mirrorPriceDecimals, mirrorQtyDecimals = 6, 6
	mirrorTick, mirrorLot                  = 100, 10_000 // millionths: 0.0001 and 0.01
	mirrorMaxPrice                         = 1_000_000
	shownLevels                            = 100
)

// sixDigits writes n millionths.
func sixDigits(n *big.Int) string {
	whole, rest := new(big.Int).QuoRem(n, big.NewInt(1_000_000), new(big.Int))
	return fmt.Sprintf("%s.%06d", whole, rest.Uint64())
}

// divided is a/b, rounded up or down.
func divided(a, b *big.Int, up bool) *big.Int {
	q, rest := new(big.Int).QuoRem(a, b, new(big.Int))
	if up && rest.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	return q
}

// shown returns the levels of one side as they must be published for a slot, by rational
// arithmetic from the orders.
func (b *chainBook) shown(slot uint64, bid bool) [][2]string {
	type level struct{ ticks, size *big.Int }
	var levels []level
	perTick := new(big.Int).Mul(big.NewInt(mirrorTick), big.NewInt(1_000_000_000_000))
	for _, o := range mirrortest.BestFirst(b.orders, bid) {
		if o.Size == 0 || o.LastSlot != 0 && uint64(o.LastSlot) < slot {
			continue
		}
		raw := new(big.Int).SetUint64(o.Price.Hi)
		raw.Or(raw.Lsh(raw, 64), new(big.Int).SetUint64(o.Price.Lo))
		ticks, size := divided(raw, perTick, !bid), new(big.Int).SetUint64(o.Size)
		if ticks.Sign() == 0 || new(big.Int).Mul(ticks, big.NewInt(mirrorTick)).Cmp(big.NewInt(mirrorMaxPrice*1_000_000)) > 0 {
			continue
		}
		if n := len(levels); n > 0 && levels[n-1].ticks.Cmp(ticks) == 0 {
			levels[n-1].size.Add(levels[n-1].size, size)
			continue
		}
		if len(levels) == shownLevels {
			break
		}
		levels = append(levels, level{ticks, size})
	}
	out := [][2]string{}
	for _, l := range levels {
		lots := divided(l.size, big.NewInt(mirrorLot), false)
		if lots.Sign() > 0 {
			out = append(out, [2]string{sixDigits(l.ticks.Mul(l.ticks, big.NewInt(mirrorTick))), sixDigits(lots.Mul(lots, big.NewInt(mirrorLot)))})
		}
	}
	return out
}

// trade returns a swap as it must be published, without its ordinal; ok is false if it is
// too small for the instrument.
func (s *doneSwap) trade() (t feedtest.Journaled, ok bool) {
	up := new(big.Int).Mul(new(big.Int).SetUint64(s.quote), big.NewInt(1_000_000))
	down := new(big.Int).Mul(new(big.Int).SetUint64(s.base), big.NewInt(mirrorTick))
	t = feedtest.Journaled{Price: market.Price(divided(up, down, s.buy).Int64()), Qty: market.Qty(s.base / mirrorLot), Side: market.Sell, At: s.unix * 1e9}
	if s.buy {
		t.Side = market.Buy
	}
	return t, t.Qty > 0 && t.Price > 0
}
