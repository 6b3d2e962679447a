package main

import (
	"math"
	"time"

	"blockdesk/catalog"
	"blockdesk/engine"
	"blockdesk/internal/solana"
	"blockdesk/market"
	"blockdesk/mirror"
	"blockdesk/service/config"
)

// mirrorFacts tells what the chain says, as of one moment. The zero value tells
// that nothing is read from a chain.
type mirrorFacts struct {
	pairs  []config.MirrorPair
	state  *mirror.State // nil: nothing is read
	trades tradeFinder   // nil: there is none
}

// tradeFinder tells of which transaction a mirrored instrument's trade was:
// *mirror.Service.
type tradeFinder interface {
	Signature(in market.InstrumentID, ordinal uint64) (sig solana.Signature, ok bool, err error)
}

// mirrorFacts are those of now.
func (s *service) mirrorFacts() *mirrorFacts {
	m := &mirrorFacts{pairs: s.cfg.Mirror.Pairs, state: s.mirrorState()}
	if s.mirror.service != nil {
		m.trades = s.mirror.service
	}
	return m
}

// mirroredPair is what is known of one mirrored instrument. Both pointers are nil
// where nothing is read of it.
type mirroredPair struct {
	config *config.MirrorPair
	state  *mirror.PairState
}

func (m *mirrorFacts) pair(symbol string) (k mirroredPair) {
	if m.state == nil {
		return k
	}
	for i := range m.state.Pairs {
		if m.state.Pairs[i].Instrument.Symbol == symbol {
			k.state = &m.state.Pairs[i]
		}
	}
	for i := range m.pairs {
		if m.pairs[i].Symbol == symbol {
			k.config = &m.pairs[i]
		}
	}
	if k.config == nil || k.state == nil {
		return mirroredPair{}
	}
	return k
}

// wasRead reports whether the chain has told of the pair at all.
func (k *mirroredPair) wasRead() bool { return k.state != nil && !k.state.Reasons.Has(mirror.NotRead) }

// fresh reports whether what it told is of now: nothing else makes a price.
func (k *mirroredPair) fresh() bool { return k.wasRead() && !k.state.Reasons.Has(mirror.Stale) }

// hasBook reports whether the engine's book is what the chain's is now.
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

// reasons are why what the chain tells of the pair is degraded. That the vaults
// price it is not among them: that follows from where its price is from at last,
// which the operator's anchor may be.
func (k *mirroredPair) reasons() []string {
	if k.state == nil {
		return []string{mirror.NotRead.String()}
	}
	set := k.state.Reasons
	if _, right := k.observed(); !right {
		set = set.With(mirror.BadAccount)
	}
	words := (set &^ mirror.Reasons(0).With(mirror.VaultPrice)).Words()
	if k.state.Pool != nil && k.state.Pool.Stopped {
		words = append(words, reasonPoolStopped)
	}
	return words
}

// tell fills in what the chain says of a mirrored pair that has got its price.
// quote is the price of its quote asset, 0 = there is none.
func (m *mirrorFacts) tell(p *catalog.Pair, k *mirroredPair, v *engine.View, quote market.USDPrice) {
	p.Reasons, p.Pool = k.reasons(), k.pool(quote)
	if k.state != nil {
		p.ReadAt = momentOf(k.state.ReadAt)
	}
	last := p.Windows.LastAt
	p.Windows = k.windows(quote)
	p.Windows.LastAt = max(p.Windows.LastAt, last)
	p.Totals, p.GuaranteeUSD = k.totals(p.PriceUSD, quote), k.guarantee(p.PriceUSD, quote)
	p.LastSignature = m.signature(v)
}

// signature is of the transaction that the view's newest trade was; empty where
// that is not known, which a store that fails says elsewhere.
func (m *mirrorFacts) signature(v *engine.View) string {
	if m.trades == nil || len(v.Trades) == 0 || v.Trades[0].Ordinal == 0 {
		return ""
	}
	signature, ok, err := m.trades.Signature(v.Instrument, v.Trades[0].Ordinal)
	if err != nil || !ok {
		return ""
	}
	return solana.Text(signature)
}

// blockTime is a time of the chain, which counts seconds. One that no block can
// have is none.
func blockTime(seconds int64) catalog.Time {
	if seconds <= 0 || seconds > math.MaxInt64/int64(time.Second) {
		return 0
	}
	return catalog.Time(seconds * int64(time.Second))
}
