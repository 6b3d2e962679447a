package rfq

import (
	"cmp"

	"blockdesk/engine/rfq"
	"blockdesk/httpgw/terms"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// deskDocument is GET /api/v1/dvp/status: the locks, the pricing policy, the price
// corridor of each fill size, the inventory and the chain.
type deskDocument struct {
	OK        bool            `json:"ok"`
	Seq       uint64          `json:"seq"`
	TS        wire.Time       `json:"ts"`
	Locks     []lockJSON      `json:"locks"`
	Policy    policyJSON      `json:"price_policy"`
	Prices    []priceJSON     `json:"prices"`
	Corridor  []corridorJSON  `json:"discount_corridor"`
	Inventory inventoryTotals `json:"inventory"`
	Chain     deskChainJSON   `json:"chain"`
}

// deskChainJSON is the state of the chain when the document was rendered. A value that a
// node has not reported is null.
type deskChainJSON struct {
	chainJSON
	Desk         wire.Address `json:"desk_address"` // delivers, co-signs and sponsors
	Slot         *uint64      `json:"slot"`
	BlockhashAge *int64       `json:"blockhash_age_ms"` // of the blockhash of the next transaction package
	Tracked      int          `json:"tracked"`          // signed transactions without a known outcome
	Nodes        []nodeJSON   `json:"nodes"`            // in the order of preference
}

type nodeJSON struct {
	Name      string  `json:"name"`
	Available bool    `json:"available"`
	Slot      *uint64 `json:"slot"`
	Lag       *uint64 `json:"lag_slots"`
}

type lockJSON struct {
	Name   string    `json:"name"` // global, pair:SYMBOL, rail:RAIL or deliveries
	Locked bool      `json:"locked"`
	Since  wire.Time `json:"since"` // of the last change; null = never locked
	Reason *string   `json:"reason"`
}

type policyJSON struct {
	Rounding string            `json:"rounding"`
	FeeBps   uint16            `json:"fee_bps"`
	FeeIn    bool              `json:"fee_included"`
	QuoteTTL int64             `json:"quote_ttl_s"`
	ClaimTTL int64             `json:"claim_ttl_s"`
	Grace    int64             `json:"grace_s"`
	Unproven unprovenJSON      `json:"unproven"`
	Dust     railAmounts       `json:"dust"` // the largest surplus of a payment that is kept
	Pairs    []pricePolicyJSON `json:"pairs"`
}

// unprovenJSON is the limits of claims without proof of the wallet's key.
type unprovenJSON struct {
	TTL       int64    `json:"ttl_s"`
	PerClient wire.USD `json:"usd_per_client"`
	Share     uint16   `json:"share_bps"`
}

// railAmounts has an amount of each rail's asset.
type railAmounts struct {
	USDC wire.Units `json:"USDC"`
	SOL  wire.Units `json:"SOL"`
}

// railBps has basis points for each rail.
type railBps struct {
	USDC uint16 `json:"USDC"`
	SOL  uint16 `json:"SOL"`
}

type pricePolicyJSON struct {
	Pair      string     `json:"pair"`
	Source    string     `json:"source"` // operator or book
	Via       *string    `json:"via"`    // pair that converts the quote asset into dollars
	Corridor  uint16     `json:"corridor_bps"`
	MaxAge    int64      `json:"max_age_s"` // 0 = any age
	Anchor    wire.Price `json:"anchor_price_usd"`
	AnchorAt  wire.Time  `json:"anchored_at"`
	Origin    *string    `json:"anchor_source"` // pyth, pool or operator; null = no anchor
	Published wire.Time  `json:"published_at"`  // by the anchor's source
	Age       *int64     `json:"anchor_age_s"`  // at ts, of what max_age_s bounds
	Width     wire.Price `json:"confidence_usd"`
	Firm      railBps    `json:"firm_bps"`
	Min       wire.Price `json:"min_reference_usd"`
	Max       wire.Price `json:"max_reference_usd"`
	Reference wire.Price `json:"reference_price_usd"`
	Reason    *string    `json:"reason"` // why there is no reference
}

type corridorJSON struct {
	Pair     string     `json:"pair"`
	Fill     string     `json:"fill_usd"`
	Discount uint16     `json:"discount_bps"`
	Min      wire.Price `json:"min_price_usd"`
	Max      wire.Price `json:"max_price_usd"`
}

// inventoryTotals is the inventory in units of each asset.
type inventoryTotals struct {
	Pairs []inventoryJSON `json:"pairs"`
}

type inventoryJSON struct {
	Pair     string       `json:"pair"`
	Symbol   string       `json:"symbol"`
	Mint     wire.Address `json:"mint"`
	Total    wire.Units   `json:"total"`
	Free     wire.Units   `json:"free"`
	Reserved wire.Units   `json:"reserved"`
	Sold     wire.Units   `json:"sold"`
	// OnChain is what the desk held at OnChainAt, less what was sold since; null = not read.
	OnChain   *wire.Units `json:"on_chain"`
	OnChainAt wire.Time   `json:"on_chain_at"`
}

func dustOf(p *rfq.Policy, rail market.Rail) wire.Units {
	return wire.Units{N: p.Dust[rail], Decimals: uint8(rail.Decimals())}
}

func (p *pages) pricePolicy(e *snapshot, n *pairState) pricePolicyJSON {
	d := pricePolicyJSON{
		Pair: n.in.Symbol, Source: terms.SourceWords[n.Source], Corridor: n.CorridorBps, MaxAge: wholeSeconds(n.MaxAge),
		Anchor: wire.Price(n.Anchor), AnchorAt: wire.Time(n.AnchorAt), Min: wire.Price(n.min), Max: wire.Price(n.max),
		Reference: wire.Price(n.reference), Published: wire.Time(n.PublishedAt), Width: wire.Price(n.Confidence),
		Firm: railBps{n.FirmBps[market.RailUSDC], n.FirmBps[market.RailSOL]},
	}
	if n.Anchor != 0 {
		age := wholeSeconds(e.ts - cmp.Or(n.PublishedAt, n.AnchorAt))
		d.Origin, d.Age = wire.NullIfEmpty(n.AnchorSource.Word()), &age
	}
	if via := p.source.Instruments.Get(n.Via); n.Source == rfq.SourceBook && via != nil {
		d.Via = &via.Symbol
	}
	if n.why != 0 {
		d.Reason = wire.NullIfEmpty(n.why.String())
	}
	return d
}

func wholeSeconds(ns int64) int64 { return ns / 1e9 }

// locksOf lists the global lock, those of every pair and rail, and that of deliveries,
// including locks that were never set. The global lock is an operator's, or else that of
// the clock.
func locksOf(e *snapshot) []lockJSON {
	global := findLock(e.view, rfq.LockAll, 0, 0)
	if clock := findLock(e.view, rfq.LockClock, 0, 0); clock != nil && clock.Locked && (global == nil || !global.Locked) {
		global = clock
	}
	all := []lockJSON{lockOf("global", global)}
	for i := range e.pairs {
		n := &e.pairs[i]
		all = append(all, lockOf("pair:"+n.in.Symbol, findLock(e.view, rfq.LockPair, n.Instrument, 0)))
	}
	for r := market.RailUSDC; r < market.RailCount; r++ {
		all = append(all, lockOf("rail:"+r.String(), findLock(e.view, rfq.LockRail, 0, r)))
	}
	return append(all, lockOf("deliveries", findLock(e.view, rfq.LockDeliveries, 0, 0)))
}

func findLock(v *rfq.View, scope rfq.LockScope, in market.InstrumentID, rail market.Rail) *rfq.Lock {
	for i := range v.Locks {
		l := &v.Locks[i]
		if l.Scope == scope && (scope != rfq.LockPair || l.Instrument == in) && (scope != rfq.LockRail || l.Rail == rail) {
			return l
		}
	}
	return nil
}

func lockOf(name string, l *rfq.Lock) lockJSON {
	if l == nil {
		return lockJSON{Name: name}
	}
	return lockJSON{Name: name, Locked: l.Locked, Since: wire.Time(l.Since), Reason: wire.NullIfEmpty(l.Reason)}
}
