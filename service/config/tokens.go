package config

import (
	"fmt"
	"net/url"
	"strings"
)

// Token describes one token for documents, beyond its instruments and pairs. All
// fields but the symbol may be empty.
type Token struct {
	Symbol          string `yaml:"symbol"`         // as the instruments name it
	OnchainSymbol   string `yaml:"onchain_symbol"` // where the chain's own differs
	Name            string `yaml:"name"`           // empty: the symbol
	LogoURI         string `yaml:"logo_uri"`
	MetadataURI     string `yaml:"metadata_uri"`
	ImageURI        string `yaml:"image_uri"`         // where the image comes from
	ImageIPFSURI    string `yaml:"image_ipfs_uri"`    // ipfs://
	ImageGatewayURL string `yaml:"image_gateway_url"` // the same over https
	CoinMarketCapID int    `yaml:"coinmarketcap_id"`  // 0 = none
}

// SettlementToken is what claims are settled in first (description, 2.5).
const SettlementToken = "USDC"

// Limits of a token's texts, from the public token-list schema.
const (
	MaxTokenName   = 60
	MaxTokenURI    = 512
	maxTokenNumber = 1 << 31
)

// validateTokens checks the tokens against the instruments and those limits.
func (c *Config) validateTokens() error {
	known, seen := map[string]bool{SettlementToken: true}, map[string]bool{}
	for i := range c.Instruments {
		base, quote, _ := strings.Cut(c.Instruments[i].Symbol, "/")
		known[base], known[quote] = true, true
	}
	for i := range c.Tokens {
		t := &c.Tokens[i]
		switch key := fmt.Sprintf("tokens[%d]", i); {
		case !known[t.Symbol]:
			return fmt.Errorf("%s.symbol: no instrument has %q", key, t.Symbol)
		case seen[t.Symbol]:
			return fmt.Errorf("%s.symbol: %s appears twice", key, t.Symbol)
		case len(t.Name) > MaxTokenName || len(t.OnchainSymbol) > MaxTokenName:
			return fmt.Errorf("%s: a name of %s is longer than %d bytes", key, t.Symbol, MaxTokenName)
		}
		seen[t.Symbol] = true
		for _, uri := range []struct{ key, text string }{
			{"logo_uri", t.LogoURI},
			{"metadata_uri", t.MetadataURI},
			{"image_uri", t.ImageURI},
			{"image_ipfs_uri", t.ImageIPFSURI},
			{"image_gateway_url", t.ImageGatewayURL},
		} {
			if err := checkURI(uri.text); err != nil {
				return fmt.Errorf("tokens[%d].%s: %w", i, uri.key, err)
			}
		}
	}
	return nil
}

func checkURI(text string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || !u.IsAbs() || len(text) > MaxTokenURI {
		return fmt.Errorf("%q is no absolute URI of at most %d bytes", text, MaxTokenURI)
	}
	return nil
}
