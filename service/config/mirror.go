package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
	"blockdesk/mirror"
)

// Mirror configures the sources of mirrored instruments. A mirrored instrument without
// a pair here shows nothing.
type Mirror struct {
	// RPCURLs are nodes as those of chain.rpc_urls; empty: those.
	RPCURLs         string       `yaml:"rpc_urls"`
	EveryMS         int          `yaml:"every_ms"`       // a cycle: accounts and history
	StaleAfterMS    int          `yaml:"stale_after_ms"` // how old what was read may be before it counts as degraded
	ReachDays       int          `yaml:"reach_days"`     // how far back swaps are read; 0 = to the pool's beginning
	RecordEveryS    int          `yaml:"record_every_s"` // between two snapshots
	ClockToleranceS int          `yaml:"clock_tolerance_s"`
	Pairs           []MirrorPair `yaml:"pairs"`
}

// MirrorPair names the on-chain sources of one mirrored instrument.
type MirrorPair struct {
	Symbol        string     `yaml:"symbol"`
	BaseMint      string     `yaml:"base_mint"`
	BaseDecimals  int        `yaml:"base_decimals"`
	QuoteMint     string     `yaml:"quote_mint"`
	QuoteDecimals int        `yaml:"quote_decimals"`
	Book          MirrorBook `yaml:"book"`
	Pool          MirrorPool `yaml:"pool"`
	Observed      []Observed `yaml:"observed"` // token accounts that are read along
}

// MirrorBook is an order book on chain.
type MirrorBook struct {
	Layout  string `yaml:"layout"`  // manifest, serum or openbook; empty = there is none
	Program string `yaml:"program"` // empty: mainnet's of the layout
	Market  string `yaml:"market"`
}

// MirrorPool is a pool on chain.
type MirrorPool struct {
	Layout     string `yaml:"layout"`  // raydium_cpmm or vault_pair; empty = there is none
	Program    string `yaml:"program"` // of raydium_cpmm; empty: mainnet's
	Address    string `yaml:"address"`
	BaseVault  string `yaml:"base_vault"` // of vault_pair
	QuoteVault string `yaml:"quote_vault"`
	LPMint     string `yaml:"lp_mint"` // for documents; may be empty
}

// Observed is a token account that documents describe.
type Observed struct {
	Address string `yaml:"address"`
	Role    string `yaml:"role"` // guarantee_reserve, fee_vault_base, fee_vault_quote or desk_inventory
	Label   string `yaml:"label"`
}

// Layouts of pools, as the configuration and documents name them.
const (
	LayoutCPMM      = "raydium_cpmm"
	LayoutVaultPair = "vault_pair"
)

func defaultMirror() Mirror {
	return Mirror{
		EveryMS: 10_000, StaleAfterMS: 30_000, ReachDays: 8, RecordEveryS: 6 * 3600, ClockToleranceS: 60,
		Pairs: []MirrorPair{},
	}
}

// Mirrors reports whether any instrument is read from a chain.
func (c *Config) Mirrors() bool { return len(c.Mirror.Pairs) > 0 }

// UnreadInstruments returns the mirrored instruments without a pair: their books and
// trades do not change.
func (c *Config) UnreadInstruments() (symbols []string) {
	for i := range c.Instruments {
		in := &c.Instruments[i]
		named := func(p MirrorPair) bool { return p.Symbol == in.Symbol }
		if in.BookSource == market.Mirrored.String() && !slices.ContainsFunc(c.Mirror.Pairs, named) {
			symbols = append(symbols, in.Symbol)
		}
	}
	return symbols
}

// validateMirror checks the section, with pairs or without.
func (c *Config) validateMirror() error {
	m := &c.Mirror
	if err := Between("mirror.stale_after_ms", m.StaleAfterMS, m.EveryMS, 24*3_600_000); err != nil {
		return err
	}
	if least := int((mirror.Week + mirror.Day) / mirror.Day); m.ReachDays > 0 && m.ReachDays < least {
		return fmt.Errorf("mirror.reach_days: %d is less than %d, which the windows need; 0 means all", m.ReachDays, least)
	}
	nodes, err := c.MirrorNodes()
	if err != nil {
		return err
	}
	if c.Mirrors() && len(nodes) == 0 {
		return errors.New("mirror.rpc_urls: no node to read from, and chain.rpc_urls names none either")
	}
	instruments, err := c.MarketInstruments()
	if err != nil {
		return err
	}
	o, err := c.MirrorOptions(instruments)
	if err != nil {
		return err
	}
	if err := o.Validate(); err != nil {
		return fmt.Errorf("mirror.pairs: %w", err)
	}
	if err := c.checkMirroredMints(); err != nil {
		return err
	}
	return c.checkMirroredDesk(instruments)
}

// checkMirroredMints checks that a token has one mint and one number of decimals, here
// and at the desk, because documents show one. Placeholders do not count.
func (c *Config) checkMirroredMints() error {
	type mint struct {
		text     string
		decimals int
	}
	known := map[string]mint{}
	if text := RealMint(c.RFQ.USDCMint); text != "" {
		known[SettlementToken] = mint{text, market.RailUSDC.Decimals()}
	}
	for i := range c.RFQ.Pairs {
		p := &c.RFQ.Pairs[i]
		base, _, _ := strings.Cut(p.Symbol, "/")
		if text := RealMint(p.BaseMint); text != "" {
			known[base] = mint{text, p.BaseDecimals}
		}
	}
	for i := range c.Mirror.Pairs {
		p := &c.Mirror.Pairs[i]
		base, quote, _ := strings.Cut(p.Symbol, "/")
		for _, side := range []struct {
			key, token string
			mint       mint
		}{
			{"base_mint", base, mint{p.BaseMint, p.BaseDecimals}}, {"quote_mint", quote, mint{p.QuoteMint, p.QuoteDecimals}},
		} {
			if other, ok := known[side.token]; ok && other != side.mint {
				return fmt.Errorf("mirror.pairs[%d].%s: %s is %s with %d decimals elsewhere", i, side.key, side.token, other.text, other.decimals)
			}
			known[side.token] = side.mint
		}
	}
	return nil
}

// checkMirroredDesk checks that the desk prices nothing by a mirrored book.
func (c *Config) checkMirroredDesk(instruments []market.Instrument) error {
	for i := range c.RFQ.Pairs {
		p := &c.RFQ.Pairs[i]
		for j := range instruments {
			if in := &instruments[j]; in.Symbol == p.Symbol && in.Source == market.Mirrored && p.PriceSource == "book" {
				return fmt.Errorf("rfq.pairs[%d].price_source: %s is mirrored, and the desk prices nothing by a book of others: operator", i, p.Symbol)
			}
		}
	}
	return nil
}

// MirrorNodes returns the nodes that the mirror reads.
func (c *Config) MirrorNodes() ([]rpc.Upstream, error) {
	if c.Mirror.RPCURLs == "" {
		return c.Chain.upstreams()
	}
	return upstreams("mirror.rpc_urls", c.Mirror.RPCURLs)
}

// MirrorOptions returns the options of the mirror. Errors name the key.
func (c *Config) MirrorOptions(instruments []market.Instrument) (mirror.Options, error) {
	m := &c.Mirror
	tolerance := Seconds(m.ClockToleranceS)
	o := mirror.Options{
		Every: Millis(m.EveryMS), StaleAfter: Millis(m.StaleAfterMS), RecordEvery: Seconds(m.RecordEveryS),
		MaxBehind: tolerance, MaxAhead: tolerance, Reach: time.Duration(m.ReachDays) * 24 * time.Hour,
	}
	if m.ReachDays == 0 {
		o.Reach = -1
	}
	for i := range m.Pairs {
		p, err := m.Pairs[i].pair(instruments)
		if err != nil {
			return o, fmt.Errorf("mirror.pairs[%d].%w", i, err)
		}
		o.Pairs = append(o.Pairs, p)
	}
	return o, nil
}

func (c *MirrorPair) pair(instruments []market.Instrument) (p mirror.Pair, err error) {
	for i := range instruments {
		if instruments[i].Symbol == c.Symbol {
			p.Instrument = &instruments[i]
		}
	}
	if p.Instrument == nil || p.Instrument.Source != market.Mirrored {
		return p, fmt.Errorf("symbol: %q is no instrument with book_source: mirrored", c.Symbol)
	}
	if p.Base, err = coin("base", c.BaseMint, c.BaseDecimals); err != nil {
		return p, err
	}
	if p.Quote, err = coin("quote", c.QuoteMint, c.QuoteDecimals); err != nil {
		return p, err
	}
	if p.Book, err = c.Book.Listing(); err != nil {
		return p, fmt.Errorf("book.%w", err)
	}
	if p.Pool, err = c.Pool.Listing(); err != nil {
		return p, fmt.Errorf("pool.%w", err)
	}
	for i := range c.Observed {
		o := &c.Observed[i]
		address, err := ParseAddress(o.Address)
		if err == nil {
			err = o.check()
		}
		if err != nil {
			return p, fmt.Errorf("observed[%d].%w", i, err)
		}
		p.Observed = append(p.Observed, address)
	}
	return p, nil
}

func coin(side, mint string, decimals int) (mirror.Coin, error) {
	address, err := ParseAddress(mint)
	if err != nil {
		return mirror.Coin{}, fmt.Errorf("%s_mint: %w", side, err)
	}
	return mirror.Coin{Mint: address, Decimals: uint8(decimals)}, nil
}

// Listing returns the order book to read; its Layout is 0 if there is none.
func (c *MirrorBook) Listing() (l mirror.Listing, err error) {
	var program solana.Address
	switch c.Layout {
	case "":
		if *c != (MirrorBook{}) {
			return l, errors.New("layout: one of manifest, serum, openbook")
		}
		return l, nil
	case mirror.Manifest.String():
		l.Layout, program = mirror.Manifest, solana.ManifestProgram
	case mirror.Serum.String():
		l.Layout, program = mirror.Serum, solana.OpenBookProgram
	case mirror.OpenBook.String():
		l.Layout, program = mirror.OpenBook, solana.OpenBookV2Program
	default:
		return l, fmt.Errorf("layout: %q is not one of manifest, serum, openbook", c.Layout)
	}
	if l.Program, err = addressOr(c.Program, program); err != nil {
		return l, fmt.Errorf("program: %w", err)
	}
	if l.Market, err = addressOr(c.Market, solana.Address{}); err != nil || l.Market == (solana.Address{}) {
		return l, fmt.Errorf("market: %w", orMissing(err))
	}
	return l, nil
}

// Listing returns the pool to read.
func (c *MirrorPool) Listing() (l mirror.PoolListing, err error) {
	vaults := c.BaseVault != "" || c.QuoteVault != ""
	switch c.Layout {
	case "":
		if *c != (MirrorPool{}) {
			return l, fmt.Errorf("layout: one of %s, %s", LayoutCPMM, LayoutVaultPair)
		}
		return l, nil
	case LayoutCPMM:
		if vaults {
			return l, fmt.Errorf("base_vault, quote_vault: a pool of %s tells its vaults itself", LayoutCPMM)
		}
		if l.Program, err = addressOr(c.Program, solana.RaydiumCPMMProgram); err != nil {
			return l, fmt.Errorf("program: %w", err)
		}
	case LayoutVaultPair:
		if c.Program != "" {
			return l, fmt.Errorf("program: of a %s the vaults alone are read", LayoutVaultPair)
		}
		if l.BaseVault, err = addressOr(c.BaseVault, solana.Address{}); err != nil || l.BaseVault == (solana.Address{}) {
			return l, fmt.Errorf("base_vault: %w", orMissing(err))
		}
		if l.QuoteVault, err = addressOr(c.QuoteVault, solana.Address{}); err != nil || l.QuoteVault == (solana.Address{}) {
			return l, fmt.Errorf("quote_vault: %w", orMissing(err))
		}
	default:
		return l, fmt.Errorf("layout: %q is not one of %s, %s", c.Layout, LayoutCPMM, LayoutVaultPair)
	}
	if l.Pool, err = addressOr(c.Address, solana.Address{}); err != nil || l.Pool == (solana.Address{}) {
		return l, fmt.Errorf("address: %w", orMissing(err))
	}
	if _, err := addressOr(c.LPMint, solana.Address{}); err != nil {
		return l, fmt.Errorf("lp_mint: %w", err)
	}
	return l, nil
}

// ObservedRoles are the values of observed[].role.
var ObservedRoles = []string{"guarantee_reserve", "fee_vault_base", "fee_vault_quote", "desk_inventory"}

// maxLabel bounds the label of an observed account, in bytes.
const maxLabel = 60

func (c *Observed) check() error {
	if !slices.Contains(ObservedRoles, c.Role) {
		return fmt.Errorf("role: %q is not one of guarantee_reserve, fee_vault_base, fee_vault_quote, desk_inventory", c.Role)
	}
	if len(c.Label) > maxLabel || strings.ContainsFunc(c.Label, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return fmt.Errorf("label: at most %d printable bytes", maxLabel)
	}
	return nil
}

// addressOr parses an address; empty text returns otherwise.
func addressOr(text string, otherwise solana.Address) (solana.Address, error) {
	if text == "" {
		return otherwise, nil
	}
	return ParseAddress(text)
}

func orMissing(err error) error {
	if err == nil {
		return errors.New("missing")
	}
	return err
}
