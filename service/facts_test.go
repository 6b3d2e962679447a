package service

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"blockdesk/catalog"
	"blockdesk/internal/solana"
	"blockdesk/service/config"
)

// TestFactsTokens: each token once, with its role; placeholders are no mints, and
// what the configuration says of a token is published.
func TestFactsTokens(t *testing.T) {
	cfg := config.Default()
	cfg.Tokens = []config.Token{{Symbol: "92C", Name: "Ninety-two", OnchainSymbol: "92c", LogoURI: "https://desk.example/l.svg", CoinMarketCapID: 5}}
	cfg.RFQ.Pairs[0].BaseMint = "SLUSDmint1111111111111111111111111111111111"
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	all := ""
	for _, token := range catalogTokens(&cfg) {
		all += strings.Join([]string{token.Symbol, token.Name, token.OnchainSymbol, token.Role.String(), token.Mint, token.LogoURI}, ",") + " "
	}
	const want = "SLUSD,SLUSD,,quote,SLUSDmint1111111111111111111111111111111111, USDC,USDC,,settlement,, " +
		"92C,Ninety-two,92c,base,,https://desk.example/l.svg "
	if all != want {
		t.Errorf("the tokens are %s\nwant %s", all, want)
	}
}

// TestTokenSettings: what is wrong is refused with its key.
func TestTokenSettings(t *testing.T) {
	for _, c := range []struct {
		tokens []config.Token
		key    string
	}{
		{[]config.Token{{Symbol: "NONE"}}, "tokens[0].symbol"},
		{[]config.Token{{Symbol: "SLUSD"}, {Symbol: "SLUSD"}}, "tokens[1].symbol"},
		{[]config.Token{{Symbol: "USDC", LogoURI: "logo.svg"}}, "tokens[0].logo_uri"},
		{[]config.Token{{Symbol: "USDC", ImageIPFSURI: "ipfs://" + strings.Repeat("x", config.MaxTokenURI-6)}}, "tokens[0].image_ipfs_uri"},
		{[]config.Token{{Symbol: "USDC", Name: strings.Repeat("x", config.MaxTokenName+1)}}, "tokens[0]"},
		{[]config.Token{{Symbol: "USDC", CoinMarketCapID: -1}}, "tokens[0].coinmarketcap_id"},
	} {
		cfg := config.Default()
		cfg.Tokens = c.tokens
		if err := cfg.Validate(); err == nil || !strings.HasPrefix(err.Error(), c.key) {
			t.Errorf("%+v: %v, want %s", c.tokens, err, c.key)
		}
	}
	cfg := config.Default()
	cfg.Tokens = []config.Token{{
		Symbol: "USDC", Name: strings.Repeat("x", config.MaxTokenName), ImageIPFSURI: "ipfs://" + strings.Repeat("x", config.MaxTokenURI-7),
	}}
	if err := cfg.Validate(); err != nil {
		t.Error(err)
	}
}

// mirroringConfig mirrors both instruments.
func mirroringConfig(t *testing.T) config.Config {
	t.Helper()
	cfg := config.Default()
	cfg.RFQ.Enabled, cfg.RFQ.Pairs, cfg.Mirror.RPCURLs = false, nil, "https://one.example,https://two.example"
	for i := range cfg.Instruments {
		cfg.Instruments[i].BookSource = "mirrored"
	}
	text := func(n byte) string { return solana.Base58(solana.Address{0: n, 31: 1}) }
	cfg.Mirror.Pairs = []config.MirrorPair{
		{
			Symbol: "92C/SLUSD", BaseMint: text(3), BaseDecimals: 9, QuoteMint: text(1), QuoteDecimals: 6,
			Pool: config.MirrorPool{Layout: config.LayoutVaultPair, Address: text(20), BaseVault: text(21), QuoteVault: text(22)},
		},
		{
			Symbol: "SLUSD/USDC", BaseMint: text(1), BaseDecimals: 6, QuoteMint: text(2), QuoteDecimals: 6,
			Book: config.MirrorBook{Layout: "manifest", Market: text(9)},
			Pool: config.MirrorPool{Layout: config.LayoutCPMM, Address: text(10), LPMint: text(13)},
			Observed: []config.Observed{
				{Address: text(30), Role: "guarantee_reserve", Label: "the reserve"},
				{Address: text(31), Role: "fee_vault_quote", Label: "fees"},
				{Address: text(32), Role: "desk_inventory"},
			},
		},
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	return cfg
}

// TestCatalogPairs: documents get every configured member of a mirrored pair, and
// the tokens get its mints.
func TestCatalogPairs(t *testing.T) {
	cfg := mirroringConfig(t)
	program := solana.Base58(solana.RaydiumCPMMProgram)
	pairs, text := catalogPairs(&cfg), func(n byte) string { return solana.Base58(solana.Address{0: n, 31: 1}) }
	want := []catalog.MirrorPair{
		{
			Symbol: "92C/SLUSD", BaseMint: text(3), BaseDecimals: 9, QuoteMint: text(1), QuoteDecimals: 6,
			Pool: &catalog.Pool{
				Address: text(20), Layout: config.LayoutVaultPair, BaseMint: text(3), QuoteMint: text(1), BaseVault: text(21), QuoteVault: text(22),
				BaseDecimals: 9, QuoteDecimals: 6,
			},
		},
		{
			Symbol: "SLUSD/USDC", BaseMint: text(1), BaseDecimals: 6, QuoteMint: text(2), QuoteDecimals: 6,
			Pool: &catalog.Pool{
				Address: text(10), Program: program, Layout: config.LayoutCPMM, LPMint: text(13), BaseMint: text(1), QuoteMint: text(2),
				BaseDecimals: 6, QuoteDecimals: 6,
			},
			Book: true, PoolFees: true,
			Observed: []catalog.Account{
				{Address: text(30), Role: catalog.GuaranteeReserve, Label: "the reserve"},
				{Address: text(31), Role: catalog.FeeVaultQuote, Label: "fees"},
				{Address: text(32), Role: catalog.DeskInventory},
			},
		},
	}
	if !reflect.DeepEqual(pairs, want) {
		t.Errorf("the pairs are %+v\nwant %+v", pairs, want)
	}
	mints := ""
	for _, token := range catalogTokens(&cfg) {
		mints += fmt.Sprintf("%s %d %s ", token.Symbol, token.Decimals, token.Mint)
	}
	if want := fmt.Sprintf("SLUSD 6 %s USDC 6 %s 92C 9 %s ", text(1), text(2), text(3)); mints != want {
		t.Errorf("the tokens are %s\nwant %s", mints, want)
	}
	if got := programID(&cfg); got != program {
		t.Errorf("the program is %s, want the pool's", got)
	}
	cfg.Mirror.Pairs[1].Pool = config.MirrorPool{}
	if got := programID(&cfg); got != solana.Base58(solana.ManifestProgram) {
		t.Errorf("without a pool the program is %s, want the book's", got)
	}
}

// TestMirroredMints: a token that is one mint here and another there is refused
// with its key.
func TestMirroredMints(t *testing.T) {
	for want, change := range map[string]func(c *config.Config){
		"mirror.pairs[1].base_mint":  func(c *config.Config) { c.Mirror.Pairs[1].BaseMint = c.Mirror.Pairs[0].BaseMint },
		"mirror.pairs[1].base_mint ": func(c *config.Config) { c.Mirror.Pairs[1].BaseDecimals++ },
		"mirror.pairs[1].quote_mint": func(c *config.Config) { c.RFQ.USDCMint = c.Mirror.Pairs[0].BaseMint },
		"mirror.pairs[0].base_mint": func(c *config.Config) {
			c.RFQ.Pairs = []config.Pair{config.DefaultPairs()[1]}
			p := &c.RFQ.Pairs[0]
			p.BaseMint, p.BaseDecimals, p.PriceSource, p.Via = c.Mirror.Pairs[0].BaseMint, 8, "operator", ""
		},
		"mirror.pairs[0].quote_mint": func(c *config.Config) {
			c.RFQ.Pairs = []config.Pair{config.DefaultPairs()[0]}
			c.RFQ.Pairs[0].BaseMint, c.RFQ.Pairs[0].PriceSource = c.Mirror.Pairs[0].BaseMint, "operator"
		},
	} {
		c := mirroringConfig(t)
		change(&c)
		if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), strings.TrimSpace(want)+": ") {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
