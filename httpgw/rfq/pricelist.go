package rfq

import (
	"cmp"
	"slices"
	"strings"

	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// priceJSON is a price that quotes need: that of a pair's base asset, or of a rail's asset.
type priceJSON struct {
	Of        string            `json:"of"`           // symbol of the pair, or the rail
	Price     wire.Price        `json:"price_usd"`    // null: none; nothing is quoted or sold at it
	Source    *string           `json:"source"`       // book, pyth, pool or operator
	Published wire.Time         `json:"published_at"` // by the source; null of a book
	Age       *int64            `json:"age_s"`        // at ts
	MaxAge    int64             `json:"max_age_s"`    // 0 = any age
	Width     wire.Price        `json:"confidence_usd"`
	Fault     *string           `json:"fault"`   // why there is no price
	Sources   []priceSourceJSON `json:"sources"` // in the order of preference; empty without a rule
}

// priceSourceJSON is one source of a price.
type priceSourceJSON struct {
	Name      string     `json:"name"`
	Price     wire.Price `json:"price_usd"` // last read; null: none
	Published wire.Time  `json:"published_at"`
	Age       *int64     `json:"age_s"`
	Fault     *string    `json:"fault"` // why it is not used
}

// sourceBook is the source of a pair that its own book prices.
const sourceBook = "book"

// priceList lists the prices of all pairs, and of all rails that have one. An unusable
// price is null and has a fault, never the old price. sources may be nil.
func priceList(e *snapshot, sources func() []desk.AssetPrice) []priceJSON {
	var ruled []desk.AssetPrice
	if sources != nil {
		ruled = sources()
	}
	all := []priceJSON{}
	for i := range e.pairs {
		n := &e.pairs[i]
		d := priceJSON{Of: n.in.Symbol, Price: wire.Price(n.reference), MaxAge: wholeSeconds(n.MaxAge)}
		switch {
		case n.why != 0:
		case n.Source == rfq.SourceBook:
			d.Source = wire.NullIfEmpty(sourceBook)
		default:
			d.published(e, n.AnchorSource, cmp.Or(n.PublishedAt, n.AnchorAt), n.Confidence)
		}
		base, _, _ := strings.Cut(n.in.Symbol, "/")
		d.addRule(e, n.why, base, ruled)
		all = append(all, d)
	}
	for r := market.RailUSDC + 1; r < market.RailCount; r++ {
		i := slices.IndexFunc(e.view.RailPrices, func(known rfq.RailPrice) bool { return known.Rail == r })
		if i < 0 {
			continue
		}
		known := &e.view.RailPrices[i]
		price, why := e.view.RailPrice(r, e.ts)
		d := priceJSON{Of: r.String(), Price: wire.Price(price), MaxAge: wholeSeconds(known.MaxAge)}
		if why == event.ReasonNone {
			d.published(e, known.Source, cmp.Or(known.PublishedAt, known.At), known.Confidence)
		}
		d.addRule(e, why, r.String(), ruled)
		all = append(all, d)
	}
	return all
}

// published sets where a usable price is from.
func (d *priceJSON) published(e *snapshot, from rfq.PriceOrigin, at int64, confidence market.USDPrice) {
	age := wholeSeconds(e.ts - at)
	d.Source, d.Published, d.Age, d.Width = wire.NullIfEmpty(from.Word()), wire.Time(at), &age, wire.Price(confidence)
}

// addRule sets the fault, and the sources of an asset that has a rule. The rule knows best
// why its asset has no price.
func (d *priceJSON) addRule(e *snapshot, why event.Reason, asset string, ruled []desk.AssetPrice) {
	d.Sources = []priceSourceJSON{}
	if why != event.ReasonNone {
		d.Fault = wire.NullIfEmpty(why.String())
	}
	i := slices.IndexFunc(ruled, func(a desk.AssetPrice) bool { return a.Asset == asset })
	if i < 0 {
		return
	}
	if why == event.ReasonPriceUnavailable && ruled[i].Fault != "" {
		d.Fault = &ruled[i].Fault
	}
	for _, s := range ruled[i].Sources {
		one := priceSourceJSON{Name: s.Name, Price: wire.Price(s.Price), Published: wire.Time(s.PublishedAt), Fault: wire.NullIfEmpty(s.Fault)}
		if s.Price != 0 {
			age := wholeSeconds(e.ts - s.PublishedAt)
			one.Age = &age
		}
		d.Sources = append(d.Sources, one)
	}
}
