package catalog

import (
	"math"
	"time"

	"blockdesk/engine"
	"blockdesk/internal/solana"
	"blockdesk/market"
	"blockdesk/mirror"
)

// TradeFinder returns the transaction of a mirrored instrument's trade:
// *mirror.Service.
type TradeFinder interface {
	Signature(in market.InstrumentID, ordinal uint64) (sig solana.Signature, ok bool, err error)
}

// mirroredPair is what is known of one mirrored instrument. The zero value is one
// of which nothing is read.
type mirroredPair struct {
	config *MirrorPair
	state  *mirror.PairState
	// accounts exist and hold what their role allows. wrongAccount: one that holds
	// something else was left out.
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

// mirroredPair returns the pair of an instrument, the zero value where nothing is
// read of it.
func (b *builder) mirroredPair(symbol string) *mirroredPair {
	for i := range b.mirrored {
		if b.mirrored[i].config.Symbol == symbol {
			return &b.mirrored[i]
		}
	}
	return &mirroredPair{}
}

// wasRead reports whether the pair was ever read from the chain.
func (k *mirroredPair) wasRead() bool { return k.state != nil && !k.state.Reasons.Has(mirror.NotRead) }

// fresh reports whether the reading is current: only a current one makes a price.
func (k *mirroredPair) fresh() bool { return k.state != nil && k.state.Fresh() }

// hasBook reports whether the engine's book is the chain's current book.
func (k *mirroredPair) hasBook() bool {
	return k.fresh() && k.state.Price == mirror.BookPrice && !k.state.Reasons.Has(mirror.EngineRefuses)
}

// spot is the price that the pool's reserves make, in dollars and rounded down,
// where the quote asset is worth quote; 0 = there is none.
func (k *mirroredPair) spot(quote market.USDPrice) market.USDPrice {
	if !k.fresh() || k.state.Pool == nil {
		return 0
	}
	pool := k.state.Pool
	base, held := pool.Reserves()
	return spotFloor(base, held, int(pool.Base.Decimals)-int(pool.Quote.Decimals), quote)
}

// spotFloor is held ÷ base at the quote asset's price, rounded down; scale is by
// how many decimals the base token has more. 0 = there is no such price.
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

// reasonPoolStopped is a reason of degradation beside the mirror's own.
const reasonPoolStopped = "onchain_pool_stopped"

// reasons are why the pair's chain data is degraded. A price of the vaults is not
// among them: it follows from the price source, which may be the operator's anchor.
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

// describe fills in what was read of a mirrored pair that already has its price.
// quote is the price of its quote asset, 0 = there is none.
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

// signature is the transaction of the view's newest trade; empty where it is not
// known. The mirror reports a store that fails.
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

// blockTime converts a time of the chain, which counts seconds; a time that no
// block can have is none.
func blockTime(seconds int64) Time {
	if seconds <= 0 || seconds > math.MaxInt64/int64(time.Second) {
		return 0
	}
	return Time(seconds * int64(time.Second))
}
