package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mr-tron/base58"

	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// RFQ configures the desk. Units are in the keys' names.
type RFQ struct {
	Enabled      bool         `yaml:"enabled"`
	QuoteTTLS    int          `yaml:"quote_ttl_s"`
	ClaimTTLS    int          `yaml:"claim_ttl_s"`
	LateWindowS  int          `yaml:"late_window_s"`
	FeeBps       int          `yaml:"fee_bps"`       // of the payment, included in it
	WalletClaims int          `yaml:"wallet_claims"` // reserved at once, a wallet
	Ladder       []LadderStep `yaml:"ladder"`
	USDCMint     string       `yaml:"usdc_mint"`
	PayTo        PayTo        `yaml:"pay_to"`
	SOLPriceUSD  string       `yaml:"sol_price_usd"` // empty: none by the configuration
	SOLMaxAgeS   int          `yaml:"sol_max_age_s"` // 0 = any age
	Pairs        []Pair       `yaml:"pairs"`
}

// LadderStep is the discount of one fill size of the public ladder.
type LadderStep struct {
	FillUSD     int `yaml:"fill_usd"`
	DiscountBps int `yaml:"discount_bps"`
}

// PayTo holds the wallet of each rail. A rail without an address is not sold.
type PayTo struct {
	USDC string `yaml:"USDC"`
	SOL  string `yaml:"SOL"`
}

// Pair configures the sale of one instrument by tickets.
type Pair struct {
	Symbol            string   `yaml:"symbol"`
	BaseMint          string   `yaml:"base_mint"`
	BaseDecimals      int      `yaml:"base_decimals"`
	Rails             []string `yaml:"rails"`
	PriceSource       string   `yaml:"price_source"`        // operator or book
	ReferencePriceUSD string   `yaml:"reference_price_usd"` // the anchor; empty: none by the configuration
	CorridorBps       int      `yaml:"corridor_bps"`
	MaxAgeS           int      `yaml:"max_age_s"` // of the anchor; 0 = any age
	Via               string   `yaml:"via"`       // pair that prices this book's quote asset; empty: it is a dollar
	Inventory         string   `yaml:"inventory"` // base units to sell in all; empty: none by the configuration
}

// OperatorToken is an operator that may use the admin address.
type OperatorToken struct {
	Name        string `yaml:"name"`
	TokenSHA256 string `yaml:"token_sha256"` // 64 hexadecimal digits
}

// Ranges of the desk's settings: our choice, where rfq does not set them.
const (
	maxTTLS      = 3600
	maxClaimTTLS = 24 * 3600
	maxLateS     = 30 * 24 * 3600
	maxAgeS      = 7 * 24 * 3600
	maxBaseDec   = 12
)

// Mints that no chain has, so that a configuration is whole before there are
// real ones. Nothing can be paid or delivered with them.
const (
	placeholderPrefix = "PLaceho1der"

	PlaceholderUSDC  = "PLaceho1derUSDCmintxxxxxxxxxxxxxxxxxxxxxxxx"
	PlaceholderSLUSD = "PLaceho1derSLUSDmintxxxxxxxxxxxxxxxxxxxxxxx"
	Placeholder92C   = "PLaceho1der92Cmintxxxxxxxxxxxxxxxxxxxxxxxxx"
)

func defaultRFQ() RFQ {
	return RFQ{
		Enabled: true, QuoteTTLS: 15, ClaimTTLS: 120, LateWindowS: 3600, FeeBps: 500, WalletClaims: 8,
		Ladder:   []LadderStep{{250, 0}, {1000, 25}, {25_000, 75}, {250_000, 150}, {1_000_000, 250}, {2_500_000, 400}},
		USDCMint: PlaceholderUSDC, SOLMaxAgeS: 3600, Pairs: DefaultPairs(),
	}
}

// DefaultPairs returns the pairs of a configuration without rfq.pairs.
func DefaultPairs() []Pair {
	pair := func(symbol, mint, source, via string) Pair {
		return Pair{
			Symbol: symbol, BaseMint: mint, BaseDecimals: 6, Rails: []string{"USDC", "SOL"}, PriceSource: source,
			CorridorBps: 1000, MaxAgeS: 3600, Via: via,
		}
	}
	return []Pair{
		pair("SLUSD/USDC", PlaceholderSLUSD, "operator", ""),
		pair("92C/SLUSD", Placeholder92C, "book", "SLUSD/USDC"),
	}
}

// Placeholders returns the keys whose addresses are placeholders.
func (c *Config) Placeholders() (keys []string) {
	check := func(key, value string) {
		if strings.HasPrefix(value, placeholderPrefix) {
			keys = append(keys, key)
		}
	}
	check("rfq.usdc_mint", c.RFQ.USDCMint)
	check("rfq.pay_to.USDC", c.RFQ.PayTo.USDC)
	check("rfq.pay_to.SOL", c.RFQ.PayTo.SOL)
	for i := range c.RFQ.Pairs {
		check(fmt.Sprintf("rfq.pairs[%d].base_mint", i), c.RFQ.Pairs[i].BaseMint)
	}
	return keys
}

// completePairs sets the default pairs if the configuration names none: those whose
// instruments exist and are in one group with their via.
func (c *Config) completePairs() {
	if c.RFQ.Pairs != nil {
		return
	}
	c.RFQ.Pairs = []Pair{}
	for _, p := range DefaultPairs() {
		if c.hasInstrument(p.Symbol) && (p.Via == "" || c.hasInstrument(p.Via) && c.together(p.Symbol, p.Via)) {
			c.RFQ.Pairs = append(c.RFQ.Pairs, p)
		}
	}
}

func (c *Config) hasInstrument(symbol string) bool {
	return slices.ContainsFunc(c.Instruments, func(in Instrument) bool { return in.Symbol == symbol })
}

// Policy returns the rules for all pairs. Errors name the key.
func (c *RFQ) Policy() (rfq.Policy, error) {
	p := rfq.Policy{
		QuoteTTL: Nanos(c.QuoteTTLS), ClaimTTL: Nanos(c.ClaimTTLS), LateWindow: Nanos(c.LateWindowS),
		FeeBps: uint16(c.FeeBps), WalletClaims: uint16(c.WalletClaims),
	}
	var err error
	if p.Discounts, err = discounts(c.Ladder); err != nil {
		return p, err
	}
	if p.USDCMint, err = ParseAddress(c.USDCMint); err != nil {
		return p, fmt.Errorf("rfq.usdc_mint: %w", err)
	}
	for rail, text := range map[market.Rail]string{market.RailUSDC: c.PayTo.USDC, market.RailSOL: c.PayTo.SOL} {
		if text == "" {
			continue
		}
		if p.PayTo[rail], err = ParseAddress(text); err != nil {
			return p, fmt.Errorf("rfq.pay_to.%s: %w", rail, err)
		}
	}
	return p, nil
}

// Nanos converts seconds to nanoseconds.
func Nanos(n int) int64 { return int64(Seconds(n)) }

// discounts reads the ladder: every fill size once, and a larger one never with
// a smaller discount (our choice: splitting a block must not pay).
func discounts(ladder []LadderStep) (out [market.FillCount]uint16, err error) {
	var given [market.FillCount]bool
	for i, step := range ladder {
		fill, ok := market.ParseFill([]byte(strconv.Itoa(step.FillUSD)))
		if !ok {
			return out, fmt.Errorf("rfq.ladder[%d].fill_usd: %d is not a fill size of the public ladder", i, step.FillUSD)
		}
		if given[fill-1] {
			return out, fmt.Errorf("rfq.ladder[%d].fill_usd: %d appears twice", i, step.FillUSD)
		}
		given[fill-1], out[fill-1] = true, uint16(step.DiscountBps)
	}
	for f := market.FillUSD(1); f.Valid(); f++ {
		if !given[f-1] {
			return out, fmt.Errorf("rfq.ladder: fill_usd %s is missing", f)
		}
		if f > 1 && out[f-1] < out[f-2] {
			return out, fmt.Errorf("rfq.ladder: the discount of fill_usd %s is smaller than that of %s", f, f-1)
		}
	}
	return out, nil
}

var errAddress = errors.New("not a Solana address: 32 bytes in base58")

// ParseAddress parses the canonical base58 form of 32 bytes.
func ParseAddress(text string) (a market.Address, err error) {
	raw, err := base58.Decode(text)
	if err != nil || len(raw) != len(a) || base58.Encode(raw) != text {
		return a, fmt.Errorf("%q: %w", text, errAddress)
	}
	return market.Address(raw), nil
}

// ParseUSDPrice parses a dollar price; ok is false for empty text.
func ParseUSDPrice(text string) (p market.USDPrice, ok bool, err error) {
	if text == "" {
		return 0, false, nil
	}
	v, err := market.ParseDecimal([]byte(text), market.USDPriceDecimals)
	switch {
	case err != nil:
	case v == 0:
		err = market.ErrZero
	case v > uint64(market.MaxUSDPrice):
		err = market.ErrOverflow
	}
	if err != nil {
		return 0, false, fmt.Errorf("%q: %w", text, err)
	}
	return market.USDPrice(v), true, nil
}

// PairSetup is one pair of the desk, with the initial values that an operator may
// change.
type PairSetup struct {
	Pair      rfq.Pair
	Symbol    string
	Anchor    market.USDPrice // 0 = not given
	Inventory uint64
	Stocked   bool // inventory is given
}

// DeskPairs returns the configured pairs in their order. Errors name the key.
func (c *Config) DeskPairs() ([]PairSetup, error) {
	ids := map[string]market.InstrumentID{}
	for i := range c.Instruments {
		ids[c.Instruments[i].Symbol] = market.InstrumentID(i)
	}
	configured := map[string]*Pair{}
	var out []PairSetup
	for i := range c.RFQ.Pairs {
		p := &c.RFQ.Pairs[i]
		id, ok := ids[p.Symbol]
		if !ok {
			return nil, fmt.Errorf("rfq.pairs[%d].symbol: %q is not among the instruments", i, p.Symbol)
		}
		if configured[p.Symbol] != nil {
			return nil, fmt.Errorf("rfq.pairs[%d].symbol: %s appears twice", i, p.Symbol)
		}
		configured[p.Symbol] = p
		s, err := p.setup(id)
		if err != nil {
			return nil, fmt.Errorf("rfq.pairs[%d].%w", i, err)
		}
		out = append(out, s)
	}
	for i := range out {
		via := c.RFQ.Pairs[i].Via
		if via == "" {
			continue
		}
		other := configured[via]
		if other == nil || via == out[i].Symbol || other.Via != "" {
			return nil, fmt.Errorf("rfq.pairs[%d].via: %q is not another pair that is priced in dollars", i, via)
		}
		out[i].Pair.Via = ids[via]
	}
	return out, nil
}

func (p *Pair) setup(id market.InstrumentID) (s PairSetup, err error) {
	s = PairSetup{Symbol: p.Symbol, Pair: rfq.Pair{
		Instrument: id, BaseDecimals: uint8(p.BaseDecimals), Source: rfq.SourceOperator,
		CorridorBps: uint16(p.CorridorBps), MaxAge: Nanos(p.MaxAgeS), Via: rfq.NoInstrument,
	}}
	if p.PriceSource == "book" {
		s.Pair.Source = rfq.SourceBook
	}
	if s.Pair.BaseMint, err = ParseAddress(p.BaseMint); err != nil {
		return s, fmt.Errorf("base_mint: %w", err)
	}
	if len(p.Rails) == 0 {
		return s, errors.New("rails: at least one of USDC, SOL")
	}
	for _, word := range p.Rails {
		rail, ok := market.ParseRail([]byte(word))
		if !ok || s.Pair.Rails.Has(rail) {
			return s, fmt.Errorf("rails: %q is not one of USDC, SOL, or is named twice", word)
		}
		s.Pair.Rails = s.Pair.Rails.With(rail)
	}
	if s.Anchor, _, err = ParseUSDPrice(p.ReferencePriceUSD); err != nil {
		return s, fmt.Errorf("reference_price_usd: %w", err)
	}
	if s.Stocked = p.Inventory != ""; s.Stocked {
		if s.Inventory, err = market.ParseDecimal([]byte(p.Inventory), p.BaseDecimals); err != nil {
			return s, fmt.Errorf("inventory: %q: %w", p.Inventory, err)
		}
	}
	return s, nil
}

// checkOperators checks names and token hashes.
func (c *Config) checkOperators() error {
	for i, o := range c.Operators {
		if !isOperatorName(o.Name) || slices.Contains(reservedOperators, o.Name) {
			return fmt.Errorf("operators[%d].name: %q must be 1 to %d letters, digits, dots, dashes or underscores, and not one of %v",
				i, o.Name, rfq.MaxText, reservedOperators)
		}
		hash, err := o.TokenHash()
		if err != nil {
			return fmt.Errorf("operators[%d].token_sha256: %w", i, err)
		}
		for _, other := range c.Operators[:i] {
			if other.Name == o.Name {
				return fmt.Errorf("operators[%d].name: %s appears twice", i, o.Name)
			}
			if otherHash, _ := other.TokenHash(); otherHash == hash {
				return fmt.Errorf("operators[%d].token_sha256: %s has the same token", i, other.Name)
			}
		}
	}
	return nil
}

// TokenHash decodes TokenSHA256.
func (o OperatorToken) TokenHash() (hash [sha256.Size]byte, err error) {
	raw, err := hex.DecodeString(o.TokenSHA256)
	if err != nil || len(raw) != len(hash) {
		return hash, fmt.Errorf("must be %d hexadecimal digits", 2*len(hash))
	}
	return [sha256.Size]byte(raw), nil
}

// The operators that serve makes by itself.
const (
	LocalOperator = "local" // where none is configured; its token is in the data folder
	DemoOperator  = "demo"  // of --demo; its token is known to nobody else
)

var reservedOperators = []string{LocalOperator, DemoOperator}

func isOperatorName(text string) bool {
	for i := range len(text) {
		c := text[i]
		letter := c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
		if !letter && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return text != "" && len(text) <= rfq.MaxText
}

// validateRFQ checks the desk's settings, which hold whether it is enabled or
// not.
func (c *Config) validateRFQ() error {
	if _, err := c.RFQ.Policy(); err != nil {
		return err
	}
	if _, _, err := ParseUSDPrice(c.RFQ.SOLPriceUSD); err != nil {
		return fmt.Errorf("rfq.sol_price_usd: %w", err)
	}
	if _, err := c.DeskPairs(); err != nil {
		return err
	}
	return c.checkOperators()
}

// RealMint leaves placeholders out: no chain has them.
func RealMint(text string) string {
	if strings.HasPrefix(text, placeholderPrefix) {
		return ""
	}
	return text
}
