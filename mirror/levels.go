package mirror

import (
	"fmt"
	"math"
	"math/bits"

	"blockdesk/internal/solana"
	"blockdesk/market"
)

// scale converts a market's prices to the instrument's ticks.
type scale struct {
	price    market.Ratio
	maxPrice market.Price
	levels   int
}

// scale returns the scale of a market with prices in quote lots a base lot × 10^exp10;
// the lots are in atoms.
func (l *Listing) scale(quoteLot, baseLot uint64, exp10 int) (scale, error) {
	in := l.Instrument
	exp10 += int(in.PriceDecimals) + int(l.Base.Decimals) - int(l.Quote.Decimals)
	price, err := market.NewRatio([]uint64{quoteLot}, []uint64{baseLot, in.Tick}, exp10)
	if err != nil {
		return scale{}, fmt.Errorf("%w: %s on %s: price: %w", ErrListing, in.Symbol, solana.Base58(l.Market), err)
	}
	return scale{price, in.MaxPrice, l.Levels}, nil
}

// AppendLots appends levels with their sizes in lots of the instrument, rounded down. It
// omits a level of less than a lot, or of more lots than a Qty holds. It allocates only
// if dst is full. Errors: [ErrListing].
func (l *Listing) AppendLots(dst []market.Level, levels []Level) ([]market.Level, error) {
	in := l.Instrument
	lots, err := market.NewRatio(nil, []uint64{in.Lot}, int(in.QtyDecimals)-int(l.Base.Decimals))
	if err != nil {
		return dst, fmt.Errorf("%w: %s on %s: size: %w", ErrListing, in.Symbol, solana.Base58(l.Market), err)
	}
	for _, level := range levels {
		n, err := lots.Floor(market.Uint128{Lo: uint64(level.Size)})
		if err == nil && n > 0 && n <= math.MaxInt64 {
			dst = append(dst, market.Level{Price: level.Price, Qty: market.Qty(n)})
		}
	}
	return dst, nil
}

// levelBuilder joins one side's orders, which come best first, into levels.
type levelBuilder struct {
	scale  *scale
	side   market.Side
	levels []Level
	// raw is the price of the order before in the market's units, and price the same in
	// ticks, 0 if it cannot be expressed; started: there was an order before.
	raw     market.Uint128
	price   market.Price
	started bool

	orders, omitted int
}

// add adds the next live order, of size base atoms. more is false if it begins a level
// after the last one wanted. ok is false if it is better than the order before: then the
// tree is broken.
func (g *levelBuilder) add(raw, size market.Uint128) (more, ok bool) {
	if !g.started || raw != g.raw {
		if g.started && (raw.Cmp(g.raw) > 0) == (g.side == market.Buy) {
			return false, false
		}
		g.started, g.raw, g.price = true, raw, g.ticks(raw)
	}
	if g.price == 0 || size.Hi != 0 {
		g.omitted++
		return true, true
	}
	n := len(g.levels)
	if n == 0 || g.levels[n-1].Price != g.price {
		if n == g.scale.levels {
			return false, true
		}
		g.levels = append(g.levels, Level{g.price, market.Amount(size.Lo)})
		g.orders++
		return true, true
	}
	sum, carry := bits.Add64(uint64(g.levels[n-1].Size), size.Lo, 0)
	if carry != 0 {
		g.omitted++
		return true, true
	}
	g.levels[n-1].Size = market.Amount(sum)
	g.orders++
	return true, true
}

// ticks converts a price to ticks, rounded away from the other side; 0 if the
// instrument cannot express it.
func (g *levelBuilder) ticks(raw market.Uint128) market.Price {
	round := g.scale.price.Ceil
	if g.side == market.Buy {
		round = g.scale.price.Floor
	}
	n, err := round(raw)
	if err != nil || n > uint64(g.scale.maxPrice) {
		return 0
	}
	return market.Price(n)
}
