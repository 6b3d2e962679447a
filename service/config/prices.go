package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/pyth"
	"blockdesk/market"
	"blockdesk/prices"
)

// SolAsset is the asset of the rail SOL.
const SolAsset = "SOL"

// UnmarshalYAML sets the defaults first, because a map has no entry before it is decoded.
func (r *PriceRule) UnmarshalYAML(decode func(any) error) error {
	*r = DefaultPriceRule()
	type keys PriceRule
	return decode((*keys)(r))
}

// DefaultPriceRule returns the rule of an asset whose entry has no keys.
func DefaultPriceRule() (r PriceRule) {
	v := reflect.ValueOf(&r).Elem()
	for i := range v.NumField() {
		text := v.Type().Field(i).Tag.Get("default")
		if v.Field(i).Kind() == reflect.Slice {
			v.Field(i).Set(reflect.ValueOf(strings.Split(text, ",")))
		} else if text != "" {
			if err := setLeaf(v.Field(i), text); err != nil {
				panic(err) // a wrong tag
			}
		}
	}
	return r
}

// Has reports whether a source is in the rule.
func (r *PriceRule) Has(s prices.Source) bool { return slices.Contains(r.Sources, s.String()) }

// Rule returns the rule as the feed of prices uses it. The configuration must be valid.
func (r *PriceRule) Rule() prices.Rule {
	rule := prices.Rule{MaxAge: Nanos(r.MaxAgeS), MaxSpreadBps: uint16(r.MaxSpreadBps), MaxConfidenceBps: uint16(r.MaxConfidenceBps)}
	for _, word := range r.Sources {
		if s, err := prices.ParseSource(word); err == nil {
			rule.Sources = append(rule.Sources, s)
		}
	}
	return rule
}

// PriceRuleOf returns the rule of an asset; false if an operator sets its price.
func (c *Config) PriceRuleOf(asset string) (PriceRule, bool) {
	r, ok := c.Prices[asset]
	return r, ok
}

// BaseOf returns the base of a symbol.
func BaseOf(symbol string) string {
	base, _, _ := strings.Cut(symbol, "/")
	return base
}

// PriceAssets returns the assets that have rules, sorted by name, without their pools,
// which are a matter of the running mirror. Errors name the key.
func (c *Config) PriceAssets() (out []prices.Asset, err error) {
	for _, name := range slices.Sorted(maps.Keys(c.Prices)) {
		r := c.Prices[name]
		a := prices.Asset{Name: name, Rule: r.Rule(), Window: time.Duration(r.PoolWindowS) * time.Second}
		if r.Has(prices.Pyth) {
			if a.FeedID, a.Account, err = r.pyth(name); err != nil {
				return nil, fmt.Errorf("prices.%s.%w", name, err)
			}
		}
		out = append(out, a)
	}
	return out, nil
}

// pyth returns the feed of an asset and the account of its updates.
func (r *PriceRule) pyth(asset string) (feed pyth.Feed, account solana.Address, err error) {
	feed, known := pyth.FeedOf(asset)
	switch {
	case r.FeedID != "":
		if feed, err = pyth.ParseFeed(r.FeedID); err != nil {
			return feed, account, fmt.Errorf("feed_id: %w", err)
		}
	case !known:
		return feed, account, fmt.Errorf("feed_id: missing: the source pyth needs the id of the dollar feed of %s", asset)
	}
	if r.Account != "" {
		account, err = ParseAddress(r.Account)
	} else {
		account, err = pyth.AccountOf(feed, 0)
	}
	if err != nil {
		err = fmt.Errorf("account: %w", err)
	}
	return feed, account, err
}

// checkPrices checks the rules of prices with the desk and the mirror that they belong to.
func (c *Config) checkPrices() error {
	if _, err := c.PriceAssets(); err != nil {
		return err
	}
	for _, asset := range slices.Sorted(maps.Keys(c.Prices)) {
		r := c.Prices[asset]
		if err := c.checkPriceRule(asset, &r); err != nil {
			return err
		}
	}
	return nil
}

func (c *Config) checkPriceRule(asset string, r *PriceRule) error {
	sold := func(p Pair) bool { return BaseOf(p.Symbol) == asset }
	if asset != SolAsset && !slices.ContainsFunc(c.RFQ.Pairs, sold) {
		return fmt.Errorf("prices.%s: not a priced asset: SOL, or the base of one of rfq.pairs", asset)
	}
	if r.Has(prices.Pyth) && !c.Demo && c.Chain.RPCURLs == "" {
		return fmt.Errorf("prices.%s.sources: pyth is read from the chain: set chain.rpc_urls", asset)
	}
	if err := c.checkPricePool(asset, r); err != nil {
		return err
	}
	if r.Has(prices.Operator) || c.Demo {
		return nil
	}
	const refusal = "set, but prices.%s.sources has no operator"
	if asset == SolAsset && c.RFQ.SOLPriceUSD != "" {
		return fmt.Errorf("rfq.sol_price_usd: "+refusal, asset)
	}
	for i := range c.RFQ.Pairs {
		if p := &c.RFQ.Pairs[i]; sold(*p) && p.ReferencePriceUSD != "" {
			return fmt.Errorf("rfq.pairs[%d].reference_price_usd: "+refusal, i, asset)
		}
	}
	return nil
}

// checkPricePool checks the pool of a rule: its quote must be USDC, which counts as a
// dollar.
func (c *Config) checkPricePool(asset string, r *PriceRule) error {
	if !r.Has(prices.Pool) {
		if r.Pool != "" {
			return fmt.Errorf("prices.%s.pool: set, but prices.%s.sources has no pool", asset, asset)
		}
		return nil
	}
	i := slices.IndexFunc(c.Mirror.Pairs, func(p MirrorPair) bool { return p.Symbol == r.Pool })
	base, quote, _ := strings.Cut(r.Pool, "/")
	switch {
	case i < 0 || c.Mirror.Pairs[i].Pool.Layout == "":
		return fmt.Errorf("prices.%s.pool: %q is not one of mirror.pairs with a pool", asset, r.Pool)
	case base != asset || quote != SettlementToken:
		return fmt.Errorf("prices.%s.pool: %q must be %s/%s, because the price is in dollars", asset, r.Pool, asset, SettlementToken)
	case 2*c.Mirror.EveryMS > r.MaxAgeS*1000:
		return fmt.Errorf("prices.%s.max_age_s: %d is less than two readings of the pool: mirror.every_ms is %d", asset, r.MaxAgeS, c.Mirror.EveryMS)
	}
	return nil
}

// priceAge returns how old the price of an asset may be, in nanoseconds: that of its rule,
// or the configured age of an operator's price.
func (c *Config) priceAge(asset string, operatorAgeS int) int64 {
	if r, ok := c.Prices[asset]; ok {
		return Nanos(r.MaxAgeS)
	}
	return Nanos(operatorAgeS)
}

// SolMaxAge returns how old the price of SOL may be, in nanoseconds; 0 = any age.
func (c *Config) SolMaxAge() int64 { return c.priceAge(SolAsset, c.RFQ.SOLMaxAgeS) }

// PricedByHand returns the assets that are sold or paid with and have no rule, so that
// their prices are only as young as an operator's last command.
func (c *Config) PricedByHand() (assets []string) {
	add := func(asset string) {
		if _, ok := c.Prices[asset]; !ok && !slices.Contains(assets, asset) {
			assets = append(assets, asset)
		}
	}
	for i := range c.RFQ.Pairs {
		p := &c.RFQ.Pairs[i]
		if slices.Contains(p.Rails, market.RailSOL.String()) && c.RFQ.PayTo.SOL != "" {
			add(SolAsset)
		}
		if p.PriceSource == "operator" {
			add(BaseOf(p.Symbol))
		}
	}
	return assets
}
