package admin

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw/terms"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// maxOperatorAgeS is the largest maximum age of an operator's price, in seconds.
const maxOperatorAgeS = 7 * 24 * 3600

// operatorLock is a lock that has been set at least once.
type operatorLock struct {
	Name   string    `json:"name"` // global, pair:SYMBOL, rail:RAIL or deliveries
	Locked bool      `json:"locked"`
	Since  wire.Time `json:"since"`
	By     string    `json:"by"`
	Reason string    `json:"reason"`
}

type locksAnswer struct {
	OK    bool           `json:"ok"`
	Locks []operatorLock `json:"locks"`
}

func (e *deskEndpoints) listLocks(*call) (any, *wire.Problem) { return e.locks(), nil }

func (e *deskEndpoints) locks() locksAnswer {
	v := e.desk.View()
	answer := locksAnswer{OK: true, Locks: []operatorLock{}}
	for i := range v.Locks {
		l := &v.Locks[i]
		answer.Locks = append(answer.Locks, operatorLock{
			Name: e.lockName(l), Locked: l.Locked, Since: wire.Time(l.Since), By: operatorName(v, l.By), Reason: l.Reason,
		})
	}
	return answer
}

func (e *deskEndpoints) lockName(l *rfq.Lock) string {
	switch l.Scope {
	case rfq.LockPair:
		return "pair:" + e.symbol(l.Instrument)
	case rfq.LockRail:
		return "rail:" + l.Rail.String()
	case rfq.LockDeliveries:
		return "deliveries"
	case rfq.LockClock:
		return "clock"
	default:
		return "global"
	}
}

type setLockBody struct {
	Pair       string `json:"pair"`
	Rail       string `json:"rail"`
	Deliveries bool   `json:"deliveries"`
	Locked     *bool  `json:"locked"`
	Reason     string `json:"reason"`
}

// setLock locks or unlocks a pair, a rail, what goes out, or all new quotes, claims and countersignatures if the body
// names none of them.
func (e *deskEndpoints) setLock(c *call, in *setLockBody) (any, *wire.Problem) {
	if in.Locked == nil {
		return nil, wire.MissingMember("locked")
	}
	if *in.Locked && in.Reason == "" {
		return nil, wire.MissingMember("reason")
	}
	if in.Reason != "" && !isPlainText(in.Reason) {
		return nil, invalidOperatorField("reason", plainTextRule())
	}
	r := &rfq.SetLock{Scope: rfq.LockAll, Locked: *in.Locked, Reason: in.Reason}
	switch {
	case in.Deliveries && (in.Pair != "" || in.Rail != ""):
		return nil, invalidOperatorField("deliveries", "must not come with pair or rail; it covers everything that goes out")
	case in.Deliveries:
		r.Scope = rfq.LockDeliveries
	case in.Pair != "" && in.Rail != "":
		return nil, invalidOperatorField("rail", "must not come with pair; a lock covers a pair, a rail or everything")
	case in.Pair != "":
		id, problem := e.pair(in.Pair)
		if problem != nil {
			return nil, problem
		}
		r.Scope, r.Instrument = rfq.LockPair, id
	case in.Rail != "":
		rail, problem := parseOneRail(in.Rail)
		if problem != nil {
			return nil, problem
		}
		r.Scope, r.Rail = rfq.LockRail, rail
	}
	if _, problem := e.do(c, r); problem != nil {
		return nil, problem
	}
	return e.locks(), nil
}

func parseOneRail(word string) (market.Rail, *wire.Problem) {
	rail, ok := market.ParseRail([]byte(word))
	if !ok {
		return 0, invalidOperatorField("rail", "must be USDC or SOL")
	}
	return rail, nil
}

// operatorPrice is the operator's price of a pair or a rail.
type operatorPrice struct {
	Pair    string     `json:"pair,omitempty"`
	Rail    string     `json:"rail,omitempty"`
	Source  string     `json:"price_source,omitempty"` // of a pair: operator or book
	Price   wire.Price `json:"price_usd"`              // null: none yet, nothing is sold
	SetAt   wire.Time  `json:"set_at"`
	AgeS    *int64     `json:"age_s"`     // of what max_age_s bounds; null: never set
	MaxAgeS int64      `json:"max_age_s"` // 0 = any age
	Stale   bool       `json:"stale"`
	// Of a pair: the corridor of the reference price.
	CorridorBps uint16     `json:"corridor_bps,omitempty"`
	Min         wire.Price `json:"min_price_usd,omitempty"`
	Max         wire.Price `json:"max_price_usd,omitempty"`
	// Origin says where the price is from: pyth, pool or operator; empty: there is none.
	Origin     string     `json:"source,omitempty"`
	Confidence wire.Price `json:"confidence_usd,omitempty"`
	Fault      string     `json:"fault,omitempty"` // why the sources give no price
	// NotSold says why nothing is sold at a price of a pair that is there and not stale, such
	// as that its book or the pair that it is priced over has no price.
	NotSold string              `json:"not_sold,omitempty"`
	Sources []operatorPriceFrom `json:"sources,omitempty"` // in the order of preference
}

// operatorPriceFrom is one source of a price.
type operatorPriceFrom struct {
	Name  string     `json:"name"`
	Price wire.Price `json:"price_usd"` // null: none
	At    wire.Time  `json:"published_at"`
	Fault string     `json:"fault,omitempty"` // why it is not used
}

type pricesAnswer struct {
	OK     bool            `json:"ok"`
	Prices []operatorPrice `json:"prices"`
}

func (e *deskEndpoints) listPrices(*call) (any, *wire.Problem) { return e.prices(), nil }

func (e *deskEndpoints) prices() pricesAnswer {
	v, now := e.desk.View(), e.now()
	answer := pricesAnswer{OK: true, Prices: []operatorPrice{}}
	add := func(p operatorPrice, asset string, price market.USDPrice, at, maxAge int64) {
		p.Price, p.SetAt, p.MaxAgeS = wire.Price(price), wire.Time(at), maxAge/int64(time.Second)
		if price != 0 {
			age := (now - at) / int64(time.Second)
			p.AgeS = &age
		}
		p.Stale = price != 0 && maxAge > 0 && now-at > maxAge
		if price == 0 {
			p.Origin = ""
		}
		if price == 0 || p.Stale {
			p.NotSold = "" // which these members say
		}
		if ruled := e.ruled(asset); ruled != nil {
			p.Fault = ruled.Fault
			for _, s := range ruled.Sources {
				p.Sources = append(p.Sources, operatorPriceFrom{s.Name, wire.Price(s.Price), wire.Time(s.PublishedAt), s.Fault})
			}
		}
		answer.Prices = append(answer.Prices, p)
	}
	for i := range v.Pairs {
		p := &v.Pairs[i]
		low, high := rfq.Corridor(p)
		notSold := ""
		if e.status.Unpriced != nil {
			notSold = e.status.Unpriced(p.Instrument)
		}
		add(operatorPrice{
			NotSold: notSold, Pair: e.symbol(p.Instrument), Source: terms.SourceWords[p.Source],
			CorridorBps: p.CorridorBps, Min: wire.Price(low), Max: wire.Price(high), Origin: p.AnchorSource.Word(), Confidence: wire.Price(p.Confidence),
		}, baseOf(e.symbol(p.Instrument)), p.Anchor, cmp.Or(p.PublishedAt, p.AnchorAt), p.MaxAge)
	}
	for i := range v.RailPrices {
		r := &v.RailPrices[i]
		add(operatorPrice{Rail: r.Rail.String(), Origin: r.Source.Word(), Confidence: wire.Price(r.Confidence)}, r.Rail.String(), r.Price, cmp.Or(r.PublishedAt, r.At), r.MaxAge)
	}
	return answer
}

type setPriceBody struct {
	Pair     string `json:"pair"`
	Rail     string `json:"rail"`
	PriceUSD string `json:"price_usd"`
	MaxAgeS  *int64 `json:"max_age_s"`
}

// setPrice sets the anchor of a pair, or the price of a rail's asset and its maximum age.
func (e *deskEndpoints) setPrice(c *call, in *setPriceBody) (any, *wire.Problem) {
	price, problem := parseOperatorPrice("price_usd", in.PriceUSD)
	if problem != nil {
		return nil, problem
	}
	if in.Rail == "" {
		id, problem := e.pair(in.Pair)
		if problem != nil {
			return nil, problem
		}
		if in.MaxAgeS != nil {
			return nil, invalidOperatorField("max_age_s", "must not come with pair; the configuration sets it")
		}
		taken, problem := e.tryPrice(baseOf(in.Pair), price)
		if problem != nil {
			return nil, problem
		}
		if _, problem := e.do(c, &rfq.SetAnchor{Instrument: id, Price: price, Source: rfq.OriginOperator}); problem != nil {
			return nil, problem
		}
		taken()
		return e.prices(), nil
	}
	rail, problem := parseOneRail(in.Rail)
	switch {
	case problem != nil:
		return nil, problem
	case in.Pair != "" || rail == market.RailUSDC:
		return nil, invalidOperatorField("rail", "must be SOL, and must not come with pair; USDC always counts as one dollar")
	case in.MaxAgeS != nil && (*in.MaxAgeS < 0 || *in.MaxAgeS > maxOperatorAgeS):
		return nil, invalidOperatorField("max_age_s", "must be 0 (any age) to 604800")
	}
	taken, problem := e.tryPrice(rail.String(), price)
	switch {
	case problem != nil:
		return nil, problem
	case in.MaxAgeS != nil && e.hasRule(rail.String()):
		return nil, invalidOperatorField("max_age_s", "must not come for an asset that has sources; prices."+rail.String()+".max_age_s of the configuration sets it")
	}
	e.edit.Lock()
	defer e.edit.Unlock()
	r := &rfq.SetRailPrice{Rail: rail, Price: price, Source: rfq.OriginOperator}
	for _, now := range e.desk.View().RailPrices {
		if now.Rail == rail {
			r.MaxAge = now.MaxAge
		}
	}
	if in.MaxAgeS != nil {
		r.MaxAge = *in.MaxAgeS * int64(time.Second)
	}
	if _, problem := e.do(c, r); problem != nil {
		return nil, problem
	}
	taken()
	return e.prices(), nil
}

// tryPrice checks an operator's price against the rule of its asset. It returns a function
// to call once the engine has taken the price.
func (e *deskEndpoints) tryPrice(asset string, price market.USDPrice) (taken func(), problem *wire.Problem) {
	if e.sources == nil {
		return func() {}, nil
	}
	taken, err := e.sources.TryPrice(asset, price)
	if err != nil {
		return nil, &wire.Problem{Status: http.StatusConflict, Code: codePriceSource, Field: "price_usd", Text: "The price of " + asset + " was not set: " + err.Error() + "."}
	}
	return taken, nil
}

// baseOf returns the base asset of a pair's symbol.
func baseOf(symbol string) string {
	base, _, _ := strings.Cut(symbol, "/")
	return base
}

// hasRule reports whether the configuration names the sources of an asset.
func (e *deskEndpoints) hasRule(asset string) bool { return e.ruled(asset) != nil }

// ruled returns the price of an asset whose sources the configuration names; nil: none.
func (e *deskEndpoints) ruled(asset string) *desk.AssetPrice {
	if e.sources == nil {
		return nil
	}
	all := e.sources.AssetPrices()
	i := slices.IndexFunc(all, func(a desk.AssetPrice) bool { return a.Asset == asset })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// operatorInventory is the inventory of a pair's base asset, in its units.
type operatorInventory struct {
	Pair      string     `json:"pair"`
	Inventory wire.Units `json:"inventory"`
	Free      wire.Units `json:"free"`
	Reserved  wire.Units `json:"reserved"`
	Sold      wire.Units `json:"sold"`
}

type inventoryAnswer struct {
	OK        bool                `json:"ok"`
	Inventory []operatorInventory `json:"inventory"`
}

func (e *deskEndpoints) listInventory(*call) (any, *wire.Problem) { return e.inventory(), nil }

func (e *deskEndpoints) inventory() inventoryAnswer {
	answer := inventoryAnswer{OK: true, Inventory: []operatorInventory{}}
	for _, p := range e.desk.View().Pairs {
		units := func(atoms uint64) wire.Units { return wire.Units{N: atoms, Decimals: p.BaseDecimals} }
		answer.Inventory = append(answer.Inventory, operatorInventory{
			Pair: e.symbol(p.Instrument), Inventory: units(p.Inventory), Reserved: units(p.Reserved), Sold: units(p.Sold),
			Free: units(p.Inventory - min(p.Inventory, p.Reserved+p.Sold)),
		})
	}
	return answer
}

type setInventoryBody struct {
	Pair      string `json:"pair"`
	Inventory string `json:"inventory"`
}

// setInventory sets how much the desk may sell in total, including what it has sold.
func (e *deskEndpoints) setInventory(c *call, in *setInventoryBody) (any, *wire.Problem) {
	id, problem := e.pair(in.Pair)
	if problem != nil {
		return nil, problem
	}
	if in.Inventory == "" {
		return nil, wire.MissingMember("inventory")
	}
	p := e.desk.View().Pair(id)
	if p == nil {
		return nil, &wire.Problem{Status: http.StatusBadRequest, Code: wire.CodeUnknownSymbol, Field: "pair", Text: "Unknown pair."}
	}
	atoms, err := market.ParseDecimal([]byte(in.Inventory), int(p.BaseDecimals))
	if err != nil {
		return nil, invalidOperatorField("inventory", "must be a decimal string with at most the base asset's decimals")
	}
	if _, problem := e.do(c, &rfq.SetInventory{Instrument: id, Atoms: atoms}); problem != nil {
		return nil, problem
	}
	return e.inventory(), nil
}
