package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"blockdesk/catalog"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/internal/solana/token"
	"blockdesk/market"
	"blockdesk/mirror"
)

// MirrorConfig says what the mirrored instruments are read from. Without pairs
// nothing is read: a mirrored instrument shows nothing then.
type MirrorConfig struct {
	// RPCURLs are nodes as those of chain.rpc_urls; empty: those.
	RPCURLs         string             `yaml:"rpc_urls"`
	EveryMS         int                `yaml:"every_ms"`       // a cycle: accounts and history
	StaleAfterMS    int                `yaml:"stale_after_ms"` // how old what was read may be before it counts as degraded
	ReachDays       int                `yaml:"reach_days"`     // how far back swaps are read; 0 = to the pool's beginning
	RecordEveryS    int                `yaml:"record_every_s"` // between two snapshots
	ClockToleranceS int                `yaml:"clock_tolerance_s"`
	Pairs           []MirrorPairConfig `yaml:"pairs"`
}

// MirrorPairConfig is what one mirrored instrument is read from.
type MirrorPairConfig struct {
	Symbol        string           `yaml:"symbol"`
	BaseMint      string           `yaml:"base_mint"`
	BaseDecimals  int              `yaml:"base_decimals"`
	QuoteMint     string           `yaml:"quote_mint"`
	QuoteDecimals int              `yaml:"quote_decimals"`
	Book          MirrorBookConfig `yaml:"book"`
	Pool          MirrorPoolConfig `yaml:"pool"`
	Observed      []ObservedConfig `yaml:"observed"` // token accounts that are read along
}

// MirrorBookConfig is an order book on chain.
type MirrorBookConfig struct {
	Layout  string `yaml:"layout"`  // manifest, serum or openbook; empty = there is none
	Program string `yaml:"program"` // empty: mainnet's of the layout
	Market  string `yaml:"market"`
}

// MirrorPoolConfig is a pool on chain.
type MirrorPoolConfig struct {
	Layout     string `yaml:"layout"`  // raydium_cpmm or vault_pair; empty = there is none
	Program    string `yaml:"program"` // of raydium_cpmm; empty: mainnet's
	Address    string `yaml:"address"`
	BaseVault  string `yaml:"base_vault"` // of vault_pair
	QuoteVault string `yaml:"quote_vault"`
	LPMint     string `yaml:"lp_mint"` // for documents; may be empty
}

// ObservedConfig is a token account and what documents say of it.
type ObservedConfig struct {
	Address string `yaml:"address"`
	Role    string `yaml:"role"` // guarantee_reserve, fee_vault_base, fee_vault_quote or desk_inventory
	Label   string `yaml:"label"`
}

// Layouts of pools, as the configuration and documents name them.
const (
	layoutCPMM      = "raydium_cpmm"
	layoutVaultPair = "vault_pair"
)

// mirrorAnswer bounds a node's answer: the largest book's account in base64, and
// what is around it.
const mirrorAnswer = 16 << 20

// mirrorProbe is how often each node is asked how it is.
const mirrorProbe = 5 * time.Second

// noBlockhash is how often a blockhash is asked for that nobody here needs.
const noBlockhash = 24 * time.Hour

func defaultMirror() MirrorConfig {
	return MirrorConfig{
		EveryMS: 10_000, StaleAfterMS: 30_000, ReachDays: 8, RecordEveryS: 6 * 3600, ClockToleranceS: 60,
		Pairs: []MirrorPairConfig{},
	}
}

// mirrors reports whether something is read from a chain.
func (c *Config) mirrors() bool { return len(c.Mirror.Pairs) > 0 }

// unread are the mirrored instruments that no pair says the source of: their last
// book and trades stand still.
func (c *Config) unread() (symbols []string) {
	for i := range c.Instruments {
		in := &c.Instruments[i]
		named := func(p MirrorPairConfig) bool { return p.Symbol == in.Symbol }
		if in.BookSource == market.Mirrored.String() && !slices.ContainsFunc(c.Mirror.Pairs, named) {
			symbols = append(symbols, in.Symbol)
		}
	}
	return symbols
}

// validateMirror checks the settings, which hold whether there are pairs or not.
func (c *Config) validateMirror() error {
	m := &c.Mirror
	if err := between("mirror.stale_after_ms", m.StaleAfterMS, m.EveryMS, 24*3_600_000); err != nil {
		return err
	}
	if least := int((mirror.Week + mirror.Day) / mirror.Day); m.ReachDays > 0 && m.ReachDays < least {
		return fmt.Errorf("mirror.reach_days: %d is less than %d, which the windows need; 0 means all", m.ReachDays, least)
	}
	nodes, err := c.mirrorNodes()
	if err != nil {
		return err
	}
	if c.mirrors() && len(nodes) == 0 {
		return errors.New("mirror.rpc_urls: no node to read from, and chain.rpc_urls names none either")
	}
	instruments, err := c.instruments()
	if err != nil {
		return err
	}
	o, err := c.mirrorOptions(instruments)
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

// checkMirroredMints: a token is one mint with its decimals, here and at the desk,
// so that all documents tell the same of it. Placeholders are no mints.
func (c *Config) checkMirroredMints() error {
	type mint struct {
		text     string
		decimals int
	}
	known := map[string]mint{}
	if text := realMint(c.RFQ.USDCMint); text != "" {
		known[settlementToken] = mint{text, market.RailUSDC.Decimals()}
	}
	for i := range c.RFQ.Pairs {
		p := &c.RFQ.Pairs[i]
		base, _, _ := strings.Cut(p.Symbol, "/")
		if text := realMint(p.BaseMint); text != "" {
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

// checkMirroredDesk: the desk takes no price of a book that strangers make.
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

// mirrorNodes are the nodes that are read.
func (c *Config) mirrorNodes() ([]rpc.Upstream, error) {
	if c.Mirror.RPCURLs == "" {
		return c.Chain.upstreams()
	}
	return upstreams("mirror.rpc_urls", c.Mirror.RPCURLs)
}

// mirrorOptions turns the settings into the service's. Errors name the key.
func (c *Config) mirrorOptions(instruments []market.Instrument) (mirror.Options, error) {
	m := &c.Mirror
	tolerance := seconds(m.ClockToleranceS)
	o := mirror.Options{
		Every: millis(m.EveryMS), StaleAfter: millis(m.StaleAfterMS), RecordEvery: seconds(m.RecordEveryS),
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

func (c *MirrorPairConfig) pair(instruments []market.Instrument) (p mirror.Pair, err error) {
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
	if p.Book, err = c.Book.listing(); err != nil {
		return p, fmt.Errorf("book.%w", err)
	}
	if p.Pool, err = c.Pool.listing(); err != nil {
		return p, fmt.Errorf("pool.%w", err)
	}
	for i := range c.Observed {
		o := &c.Observed[i]
		address, err := parseAddress(o.Address)
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
	if err := between(side+"_decimals", decimals, 0, token.MaxDecimals); err != nil {
		return mirror.Coin{}, err
	}
	address, err := parseAddress(mint)
	if err != nil {
		return mirror.Coin{}, fmt.Errorf("%s_mint: %w", side, err)
	}
	return mirror.Coin{Mint: address, Decimals: uint8(decimals)}, nil
}

func (c *MirrorBookConfig) listing() (l mirror.Listing, err error) {
	var program solana.Address
	switch c.Layout {
	case "":
		if *c != (MirrorBookConfig{}) {
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

func (c *MirrorPoolConfig) listing() (l mirror.PoolListing, err error) {
	vaults := c.BaseVault != "" || c.QuoteVault != ""
	switch c.Layout {
	case "":
		if *c != (MirrorPoolConfig{}) {
			return l, fmt.Errorf("layout: one of %s, %s", layoutCPMM, layoutVaultPair)
		}
		return l, nil
	case layoutCPMM:
		if vaults {
			return l, fmt.Errorf("base_vault, quote_vault: a pool of %s tells its vaults itself", layoutCPMM)
		}
		if l.Program, err = addressOr(c.Program, solana.RaydiumCPMMProgram); err != nil {
			return l, fmt.Errorf("program: %w", err)
		}
	case layoutVaultPair:
		if c.Program != "" {
			return l, fmt.Errorf("program: of a %s the vaults alone are read", layoutVaultPair)
		}
		if l.BaseVault, err = addressOr(c.BaseVault, solana.Address{}); err != nil || l.BaseVault == (solana.Address{}) {
			return l, fmt.Errorf("base_vault: %w", orMissing(err))
		}
		if l.QuoteVault, err = addressOr(c.QuoteVault, solana.Address{}); err != nil || l.QuoteVault == (solana.Address{}) {
			return l, fmt.Errorf("quote_vault: %w", orMissing(err))
		}
	default:
		return l, fmt.Errorf("layout: %q is not one of %s, %s", c.Layout, layoutCPMM, layoutVaultPair)
	}
	if l.Pool, err = addressOr(c.Address, solana.Address{}); err != nil || l.Pool == (solana.Address{}) {
		return l, fmt.Errorf("address: %w", orMissing(err))
	}
	if _, err := addressOr(c.LPMint, solana.Address{}); err != nil {
		return l, fmt.Errorf("lp_mint: %w", err)
	}
	return l, nil
}

// maxLabel bounds the label of an observed account, in bytes.
const maxLabel = 60

func (c *ObservedConfig) check() error {
	if c.role() == 0 {
		return fmt.Errorf("role: %q is not one of guarantee_reserve, fee_vault_base, fee_vault_quote, desk_inventory", c.Role)
	}
	if len(c.Label) > maxLabel || strings.ContainsFunc(c.Label, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return fmt.Errorf("label: at most %d printable bytes", maxLabel)
	}
	return nil
}

// role returns what the account is for; 0 where the word is none.
func (c *ObservedConfig) role() catalog.AccountRole {
	for _, r := range []catalog.AccountRole{
		catalog.GuaranteeReserve, catalog.FeeVaultBase, catalog.FeeVaultQuote, catalog.DeskInventory,
	} {
		if c.Role == r.String() {
			return r
		}
	}
	return 0
}

// addressOr reads an address; an empty text is otherwise.
func addressOr(text string, otherwise solana.Address) (solana.Address, error) {
	if text == "" {
		return otherwise, nil
	}
	return parseAddress(text)
}

func orMissing(err error) error {
	if err == nil {
		return errors.New("missing")
	}
	return err
}
