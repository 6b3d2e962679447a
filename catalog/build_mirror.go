package catalog

import (
	"math"
	"time"

	"blockdesk/engine"
	"blockdesk/internal/solana"
	"blockdesk/market"
	"blockdesk/mirror"
)

// TradeFinder finds the transaction of a mirrored instrument's trade; *mirror.Service is
// one.
type TradeFinder interface {
	Signature(in market.InstrumentID, ordinal uint64) (sig solana.Signature, ok bool, err error)
}

// mirroredPair is the configuration and state of one mirrored instrument. The zero value
// is an instrument that the mirror does not read.
type mirroredPair struct {
	config *MirrorPair
	state  *mirror.PairState
	// accounts are the observed ones that hold a mint of their role. wrongAccount: an
	// account with another mint was left out.
	accounts     []observedAccount
	wrongAccount bool
}

// pairs returns the configured pairs that have a state.
func (m *Mirror) pairs() (all []mirroredPair) {
	if m.State == nil {
		return nil
	}
	states := m.State.Pairs
	for i := range m.Pairs {
		for j := range states {
			if states[j].Instrument.Symbol == m.Pairs[i].Symbol {
				k := mirroredPair{config: &m.Pairs[i], state: &states[j]}
				k.observe()
				all = append(all, k)
			}
		}
	}
	return all
}

// mirroredPair returns the pair of an instrument; the zero value if it is not read.
func (b *builder) mirroredPair(symbol string) *mirroredPair {
	for i := range b.mirrored {
		if b.mirrored[i].config.Symbol == symbol {
			return &b.mirrored[i]
		}
	}
	return &mirroredPair{}
}

// wasRead reports whether the pair was read from the chain since the start.
func (k *mirroredPair) wasRead() bool { return k.state != nil && !k.state.Reasons.Has(mirror.NotRead) }

// fresh reports whether the reading is current. Only a current reading prices the pair.
func (k *mirroredPair) fresh() bool { return k.state != nil && k.state.Fresh() }

// hasBook reports whether the engine's book is the chain's current book.
func (k *mirroredPair) hasBook() bool {
	return k.fresh() && k.state.Price == mirror.BookPrice && !k.state.Reasons.Has(mirror.EngineRefuses)
}

// spot returns the price of the pool's reserves in dollars, rounded down, at the price
// quote of the quote asset; 0 if there is none.
func (k *mirroredPair) spot(quote market.USDPrice) market.USDPrice {
	if !k.fresh() || k.state.Pool == nil {
		return 0
	}
	pool := k.state.Pool
	base, held := pool.Reserves()
	return spotFloor(base, held, int(pool.Base.Decimals)-int(pool.Quote.Decimals), quote)
}

// spotFloor returns held ÷ base at the quote asset's price, rounded down; 0 if it is out
// of range. scale is the base token's decimals less the quote token's.
func spotFloor(base, held market.Amount, scale int, quote market.USDPrice) market.USDPrice {
	if base == 0 {
		return 0
	}
	ratio, err := market.NewRatio([]uint64{uint64(quote)}, []uint64{uint64(base)}, scale)
	if err != nil {
		return 0
	}
	price, err := ratio.Floor(market.Uint128{Lo: uint64(held)})
	if err != nil || price > uint64(market.MaxUSDPrice) {
		return 0
	}
	return market.USDPrice(price)
}

// reasonPoolStopped is a degradation reason beside the mirror's own.
const reasonPoolStopped = "onchain_pool_stopped"

// reasons returns why the pair's chain data is degraded. mirror.VaultPrice is not among
// them: it follows from the price source, which may be the operator's anchor.
func (k *mirroredPair) reasons() []string {
	if k.state == nil {
		return []string{mirror.NotRead.String()}
	}
	set := k.state.Reasons
	if k.wrongAccount {
		set = set.With(mirror.BadAccount)
	}
	words := (set &^ mirror.Reasons(0).With(mirror.VaultPrice)).Words()
	if k.state.Pool != nil && k.state.Pool.Stopped {
		words = append(words, reasonPoolStopped)
	}
	return words
}

// describe fills in the chain state of a mirrored pair that already has its price. quote
// is the price of its quote asset; 0 = none.
func (k *mirroredPair) describe(p *Pair, quote market.USDPrice) {
	p.Reasons, p.Pool = k.reasons(), k.pool(quote)
	if k.state != nil {
		p.ReadAt = timeOf(k.state.ReadAt)
	}
	last := p.Windows.LastAt
	p.Windows = k.windows(quote)
	p.Windows.LastAt = max(p.Windows.LastAt, last)
	p.Totals, p.GuaranteeUSD = k.totals(p.PriceUSD, quote), k.guarantee(p.PriceUSD, quote)
}

// signature returns the transaction of the view's newest trade; empty if unknown. The
// mirror itself reports a failing store.
func (m *Mirror) signature(v *engine.View) string {
	if m.Trades == nil || len(v.Trades) == 0 || v.Trades[0].Ordinal == 0 {
		return ""
	}
	signature, ok, err := m.Trades.Signature(v.Instrument, v.Trades[0].Ordinal)
	if err != nil || !ok {
		return ""
	}
	return solana.Text(signature)
}

// blockTime converts a block's time, in seconds; an impossible one becomes 0.
func blockTime(seconds int64) Time {
	if seconds <= 0 || seconds > math.MaxInt64/int64(time.Second) {
		return 0
	}
	return Time(seconds * int64(time.Second))
}
