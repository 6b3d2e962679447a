package rfq

import (
	"cmp"
	"slices"

	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// levelsDocument is the public ladder.
type levelsDocument struct {
	OK     bool    `json:"ok"`
	Levels []level `json:"levels"`
}

type level struct {
	Fill     string `json:"fill_usd"`
	Discount uint16 `json:"discount_bps"`
}

func levelsOf(p *rfq.Policy) levelsDocument {
	d := levelsDocument{OK: true}
	for f := market.FillUSD(1); f <= market.FillCount; f++ {
		d.Levels = append(d.Levels, level{f.String(), p.Discounts[f-1]})
	}
	return d
}

// fillSizes returns the fill sizes in ascending order (docs/specification.md 2.2).
func fillSizes() []string {
	var all []string
	for f := market.FillUSD(1); f <= market.FillCount; f++ {
		all = append(all, f.String())
	}
	return all
}

// railsDocument lists the payment rails. A rail is active unless it is locked.
type railsDocument struct {
	OK       bool       `json:"ok"`
	Active   wire.Rails `json:"active_rails"`
	Priority wire.Rails `json:"rail_priority"`
}

func activeRails(v *rfq.View) wire.Rails {
	active := market.Rails(0)
	for r := market.RailUSDC; r < market.RailCount; r++ {
		if lock := findLock(v, rfq.LockRail, 0, r); lock == nil || !lock.Locked {
			active = active.With(r)
		}
	}
	return wire.Rails(active)
}

// pairsDocument lists the pairs that the desk sells.
type pairsDocument struct {
	OK    bool       `json:"ok"`
	Pairs []pairJSON `json:"pairs"`
}

type pairJSON struct {
	Pair         string       `json:"pair"`
	BaseSymbol   string       `json:"base_symbol"`
	BaseMint     wire.Address `json:"base_mint"`
	BaseDecimals uint8        `json:"base_decimals"`
	QuoteSymbol  string       `json:"quote_symbol"`
	Rails        wire.Rails   `json:"rails"`
	Reference    wire.Price   `json:"reference_price_usd"`
	// Status is active, locked, unpriced, or closed if no rail can pay for it. Reason is
	// the reason with which a quote would be refused.
	Status string  `json:"status"`
	Reason *string `json:"reason"`
}

func pairsOf(e *snapshot) pairsDocument {
	d := pairsDocument{OK: true, Pairs: []pairJSON{}}
	for i := range e.pairs {
		n := &e.pairs[i]
		one := pairJSON{
			Pair: n.in.Symbol, BaseSymbol: n.in.Base, BaseMint: wire.Address(n.BaseMint),
			BaseDecimals: n.BaseDecimals, QuoteSymbol: n.in.Quote, Rails: wire.Rails(n.Rails),
			Reference: wire.Price(n.reference), Status: "active",
		}
		switch {
		case n.lock != nil:
			one.Status, one.Reason = "locked", wire.NullIfEmpty(event.ReasonLocked.String())
		case n.why != 0:
			one.Status, one.Reason = "unpriced", wire.NullIfEmpty(n.why.String())
		case n.selling == 0:
			one.Status, one.Reason = "closed", wire.NullIfEmpty(cmp.Or(n.closed, event.ReasonRailNotAccepted).String())
		}
		d.Pairs = append(d.Pairs, one)
	}
	return d
}

// tokensDocument lists the tokens that are sold, quoted in, or paid with.
type tokensDocument struct {
	OK     bool        `json:"ok"`
	Tokens []tokenJSON `json:"tokens"`
	Rails  []railJSON  `json:"rails"`
}

// Roles of a token. The member role is the last of roles in this order.
const (
	roleBase       = "base"
	roleQuote      = "quote"
	roleSettlement = "settlement"
)

type tokenJSON struct {
	Symbol   string       `json:"symbol"`
	Mint     wire.Address `json:"mint"` // null: native SOL, or unknown to the desk
	Decimals *uint8       `json:"decimals"`
	Role     string       `json:"role"`
	Roles    []string     `json:"roles"`
	Rails    wire.Rails   `json:"rails"` // that pay for a base token, or that the token pays over
}

type railJSON struct {
	Rail     string       `json:"rail"`
	Mint     wire.Address `json:"mint"` // null: native SOL
	Decimals int          `json:"decimals"`
	Priority int          `json:"priority"` // 1 = first
	PayTo    wire.Address `json:"pay_to"`   // null: not configured
	Price    wire.Price   `json:"price_usd"`
	PricedAt wire.Time    `json:"priced_at"`
	Origin   *string      `json:"price_source"` // pyth, pool or operator; null for USDC, which counts as a dollar
	Width    wire.Price   `json:"confidence_usd"`
	Active   bool         `json:"active"`
	Reason   *string      `json:"reason"` // why the rail has no quotes
}

func tokensOf(e *snapshot) tokensDocument {
	var list []tokenJSON
	token := func(symbol string) *tokenJSON {
		at := slices.IndexFunc(list, func(t tokenJSON) bool { return t.Symbol == symbol })
		if at < 0 {
			at = len(list)
			list = append(list, tokenJSON{Symbol: symbol})
		}
		return &list[at]
	}
	for i := range e.pairs {
		n := &e.pairs[i]
		t := token(n.in.Base)
		t.Mint, t.Decimals, t.Rails = wire.Address(n.BaseMint), &n.BaseDecimals, t.Rails|wire.Rails(n.Rails)
		t.addRole(roleBase)
	}
	for i := range e.pairs {
		token(e.pairs[i].in.Quote).addRole(roleQuote)
	}
	d := tokensDocument{OK: true, Rails: railsOf(e)}
	for i := range d.Rails {
		r, decimals := &d.Rails[i], uint8(d.Rails[i].Decimals)
		t := token(r.Rail)
		t.Mint, t.Decimals = r.Mint, &decimals
		t.Rails |= wire.Rails(market.Rails(0).With(market.RailUSDC + market.Rail(i)))
		t.addRole(roleSettlement)
	}
	d.Tokens = list
	return d
}

func (t *tokenJSON) addRole(role string) {
	t.Role = role
	if !slices.Contains(t.Roles, role) {
		t.Roles = append(t.Roles, role)
	}
}

// railsOf lists all rails in the order of rail_priority.
func railsOf(e *snapshot) []railJSON {
	var all []railJSON
	active := market.Rails(activeRails(e.view))
	for r := market.RailUSDC; r < market.RailCount; r++ {
		price, why := e.rail(r)
		one := railJSON{
			Rail: r.String(), Decimals: r.Decimals(), Priority: int(r - market.RailUSDC + 1),
			PayTo: wire.Address(e.view.Policy.PayTo[r]), Price: wire.Price(price.Price), PricedAt: wire.Time(price.At),
			Active: active.Has(r), Width: wire.Price(price.Confidence),
		}
		if r != market.RailUSDC && price.Price != 0 {
			one.PricedAt, one.Origin = wire.Time(cmp.Or(price.PublishedAt, price.At)), wire.NullIfEmpty(price.Source.Word())
		}
		if r == market.RailUSDC {
			one.Mint = wire.Address(e.view.Policy.USDCMint)
		}
		if why != 0 {
			one.Reason = wire.NullIfEmpty(why.String())
		}
		all = append(all, one)
	}
	return all
}
