package service

import (
	"cmp"
	"strings"
	"time"

	"blockdesk/catalog"
	"blockdesk/internal/solana"
	"blockdesk/market"
	"blockdesk/service/config"
	"blockdesk/service/program"
)

// describeService returns the facts of the configuration and the program; hash is that of
// the executable.
func describeService(c *config.Config, hash string) catalog.Service {
	return catalog.Service{
		Name: "blockdesk", Operator: c.Operator.Name, Market: c.Operator.Market, Website: c.Operator.Website, GitHub: c.Operator.GitHub,
		FeeBps: uint16(c.RFQ.FeeBps), Network: catalog.NetworkName(c.Chain.Network), ConfiguredAt: catalog.Time(time.Now().UnixNano()),
		Limits: catalog.Limits{
			Market: c.HTTP.MarketDataPerMinute, MarketBurst: c.HTTP.MarketDataBurst,
			Partner: c.HTTP.PartnerPerMinute, PartnerBurst: c.HTTP.PartnerBurst,
		},
		Build:     catalog.Build{Version: program.Version, SourceCommit: program.SourceCommit(), ExecutableHash: hash},
		ProgramID: programID(c),
	}
}

// catalogTokens returns the tokens of all instruments and USDC, each once. A token in which
// another one is priced is a quote token, except USDC.
func catalogTokens(c *config.Config) []catalog.Token {
	var all []catalog.Token
	at := map[string]int{}
	add := func(symbol string, role catalog.Role, decimals int) *catalog.Token {
		i, ok := at[symbol]
		if !ok {
			i, at[symbol] = len(all), len(all)
			all = append(all, catalog.Token{Symbol: symbol, Name: symbol, Role: role, Decimals: uint8(decimals)})
		}
		t := &all[i]
		if role == catalog.RoleQuote {
			t.Role = role
		}
		return t
	}
	for i := range c.Instruments {
		base, quote, _ := strings.Cut(c.Instruments[i].Symbol, "/")
		add(base, catalog.RoleBase, c.Instruments[i].QtyDecimals)
		add(quote, catalog.RoleQuote, c.Instruments[i].PriceDecimals)
	}
	usdc := add(config.SettlementToken, catalog.RoleSettlement, market.RailUSDC.Decimals())
	usdc.Role, usdc.Decimals, usdc.Mint = catalog.RoleSettlement, uint8(market.RailUSDC.Decimals()), config.RealMint(c.RFQ.USDCMint)
	for i := range c.RFQ.Pairs {
		p := &c.RFQ.Pairs[i]
		base, _, _ := strings.Cut(p.Symbol, "/")
		t := add(base, catalog.RoleBase, p.BaseDecimals)
		t.Mint, t.Decimals = config.RealMint(p.BaseMint), uint8(p.BaseDecimals)
	}
	for i := range c.Mirror.Pairs {
		p := &c.Mirror.Pairs[i]
		base, quote, _ := strings.Cut(p.Symbol, "/")
		addMint(&all[at[base]], p.BaseMint, p.BaseDecimals)
		addMint(&all[at[quote]], p.QuoteMint, p.QuoteDecimals)
	}
	for i := range c.Tokens {
		describeToken(&all[at[c.Tokens[i].Symbol]], &c.Tokens[i])
	}
	return all
}

// addMint sets the mint and the decimals of a token without a mint.
func addMint(t *catalog.Token, mint string, decimals int) {
	if t.Mint == "" {
		t.Mint, t.Decimals = mint, uint8(decimals)
	}
}

// describeToken sets the configured description of a token.
func describeToken(t *catalog.Token, c *config.Token) {
	if c.Name != "" {
		t.Name = c.Name
	}
	t.OnchainSymbol, t.LogoURI, t.MetadataURI = c.OnchainSymbol, c.LogoURI, c.MetadataURI
	t.ImageURI, t.ImageIPFS, t.ImageGateway = c.ImageURI, c.ImageIPFSURI, c.ImageGatewayURL
	if c.CoinMarketCapID != 0 {
		id := uint64(c.CoinMarketCapID)
		t.CoinMarketCapID = &id
	}
}

// catalogPairs returns the mirrored pairs in the order of the configuration.
func catalogPairs(c *config.Config) []catalog.MirrorPair {
	all := make([]catalog.MirrorPair, len(c.Mirror.Pairs))
	for i := range all {
		p := &c.Mirror.Pairs[i]
		all[i] = catalog.MirrorPair{
			Symbol: p.Symbol, BaseMint: p.BaseMint, QuoteMint: p.QuoteMint, BaseDecimals: p.BaseDecimals, QuoteDecimals: p.QuoteDecimals,
			Book:     p.Book.Layout != "",
			PoolFees: p.Pool.Layout == config.LayoutCPMM, // other pools have no counters of their fees
		}
		for j := range p.Observed {
			o := &p.Observed[j]
			all[i].Observed = append(all[i].Observed, catalog.Account{Address: o.Address, Role: accountRole(o), Label: o.Label})
		}
		if p.Pool.Layout != "" {
			all[i].Pool = &catalog.Pool{
				Address: p.Pool.Address, Program: poolProgram(p), Layout: p.Pool.Layout, LPMint: p.Pool.LPMint,
				BaseMint: p.BaseMint, QuoteMint: p.QuoteMint, BaseVault: p.Pool.BaseVault, QuoteVault: p.Pool.QuoteVault,
				BaseDecimals: uint8(p.BaseDecimals), QuoteDecimals: uint8(p.QuoteDecimals),
			}
		}
	}
	return all
}

// poolProgram returns the program that owns the pair's pool; empty if it is not known.
func poolProgram(p *config.MirrorPair) string {
	l, err := p.Pool.Listing()
	if err != nil || l.Program == (solana.Address{}) {
		return ""
	}
	return solana.Base58(l.Program)
}

// bookProgram returns the program of the pair's book; empty if it has none.
func bookProgram(p *config.MirrorPair) string {
	l, err := p.Book.Listing()
	if err != nil || l.Layout == 0 {
		return ""
	}
	return solana.Base58(l.Program)
}

// programID returns the program of the canonical pair's pool, or else of its book; empty
// if the pair is matched here or its program is not known. Another pair's program says
// nothing about the canonical pair.
func programID(c *config.Config) string {
	for i := range c.Mirror.Pairs {
		p := &c.Mirror.Pairs[i]
		if len(c.Instruments) > 0 && p.Symbol == c.Instruments[0].Symbol {
			return cmp.Or(poolProgram(p), bookProgram(p))
		}
	}
	return ""
}
