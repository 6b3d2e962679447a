package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/pyth"
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

// BaseOf returns the base of a symbol.
func BaseOf(symbol string) string {
	base, _, _ := strings.Cut(symbol, "/")
	return base
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
