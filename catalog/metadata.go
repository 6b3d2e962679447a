package catalog

import "strings"

type metadataList struct {
	header
	Count  int              `json:"count"`
	Tokens []metadataRecord `json:"tokens"`
}

// metadataRecord has the fields of Metaplex's token metadata standard, and the mint.
type metadataRecord struct {
	Mint        string             `json:"mint"`
	Name        string             `json:"name"`
	Symbol      string             `json:"symbol"`
	Onchain     string             `json:"onchain_symbol,omitempty"`
	Description string             `json:"description"`
	Image       string             `json:"image"`
	External    string             `json:"external_url"`
	Decimals    uint8              `json:"decimals"`
	URI         string             `json:"metadata_uri"`
	Attributes  []metadataTrait    `json:"attributes"`
	Properties  metadataProperties `json:"properties"`
}

type metadataTrait struct {
	Trait string `json:"trait_type"`
	Value string `json:"value"`
}

type metadataProperties struct {
	Category string         `json:"category"`
	Files    []metadataFile `json:"files"`
}

type metadataFile struct {
	URI  string `json:"uri"`
	Type string `json:"type"`
}

// Metadata lists what wallets and explorers show of each token.
func Metadata(f *Facts, schema string) any {
	return &metadataList{configHeader(f, schema), len(f.Tokens), records(f, f.Tokens, newMetadataRecord)}
}

func newMetadataRecord(f *Facts, t *Token) metadataRecord {
	r := metadataRecord{
		Mint: t.Mint, Name: t.Name, Symbol: t.Symbol, Onchain: t.OnchainSymbol, Image: t.LogoURI, External: f.Service.Website,
		Description: t.Name + ", " + t.Role.String() + " token of " + f.Service.Market,
		Decimals:    t.Decimals, URI: t.MetadataURI,
		Attributes: []metadataTrait{{"role", t.Role.String()}, {"network", f.Service.Network}},
		Properties: metadataProperties{Category: "fungible", Files: []metadataFile{}},
	}
	if t.LogoURI != "" {
		r.Properties.Files = append(r.Properties.Files, metadataFile{URI: t.LogoURI, Type: mediaOf(t.LogoURI)})
	}
	return r
}

// mediaOf derives an image's media type from the end of its name; PNG by default.
func mediaOf(uri string) string {
	switch {
	case strings.HasSuffix(uri, ".svg"):
		return "image/svg+xml"
	case strings.HasSuffix(uri, ".webp"):
		return "image/webp"
	case strings.HasSuffix(uri, ".jpg"), strings.HasSuffix(uri, ".jpeg"):
		return "image/jpeg"
	default:
		return "image/png"
	}
}

type pairMetadataList struct {
	header
	Count int                  `json:"count"`
	Pairs []pairMetadataRecord `json:"pairs"`
}

type pairMetadataRecord struct {
	pairRecord
	BaseToken  metadataRecord    `json:"base_token"`
	QuoteToken metadataRecord    `json:"quote_token"`
	Links      map[string]string `json:"links"`
}

// PairMetadata lists each pair with both of its tokens.
func PairMetadata(f *Facts, schema string) any {
	return &pairMetadataList{newHeader(f, schema), len(f.Pairs), records(f, f.Pairs, newPairMetadata)}
}

func newPairMetadata(f *Facts, p *Pair) pairMetadataRecord {
	links := map[string]string{}
	for _, read := range []string{"ticker", "depth", "trades", "candles"} {
		links[read] = f.URLs.Base + marketPath(read) + "?symbol=" + strings.ReplaceAll(p.Symbol, "/", "%2F")
	}
	return pairMetadataRecord{newPairRecord(f, p), newMetadataRecord(f, f.token(p.Base)), newMetadataRecord(f, f.token(p.Quote)), links}
}

type walletIndex struct {
	header
	Page    string         `json:"wallet_page"`
	Scope   string         `json:"note"`
	Wallets []walletRecord `json:"wallets"`
}

type walletRecord struct {
	accountRecord
	Symbol string `json:"symbol"`
	Mint   string `json:"mint"`
	Slot   uint64 `json:"slot"`
}

// WalletIndex lists every on-chain account that the service observes.
func WalletIndex(f *Facts, schema string) any {
	d := &walletIndex{
		header: newHeader(f, schema), Page: f.URLs.Base + "/wallet",
		Scope: "observed accounts of this service; balances as of their slot", Wallets: []walletRecord{},
	}
	for i := range f.Tokens {
		t := &f.Tokens[i]
		for j := range t.Accounts {
			a := &t.Accounts[j]
			d.Wallets = append(d.Wallets, walletRecord{accountRecord: a.record(t.Decimals), Symbol: t.Symbol, Mint: t.Mint, Slot: a.Slot})
		}
	}
	return d
}

type poolRegistry struct {
	header
	Count int            `json:"count"`
	Pools []registryPool `json:"pools"`
}

type registryPool struct {
	Pool       string  `json:"pool_id"`
	Program    string  `json:"program_id"`
	Symbol     string  `json:"symbol"`
	BaseMint   string  `json:"base_mint"`
	QuoteMint  string  `json:"quote_mint"`
	BaseVault  string  `json:"base_vault"`
	QuoteVault string  `json:"quote_vault"`
	LPMint     *string `json:"lp_token_mint"`
	FeeBps     *uint16 `json:"pool_fee_bps"`
	Kind       string  `json:"kind"`
}

// PoolRegistry lists the pools and their vaults for routers. It has no balances, so it
// changes only with the configuration.
func PoolRegistry(f *Facts, schema string) any {
	d := &poolRegistry{header: configHeader(f, schema), Pools: []registryPool{}}
	for i := range f.Pairs {
		p := f.Pairs[i].Pool
		if p == nil {
			continue
		}
		d.Pools = append(d.Pools, registryPool{
			Pool: p.Address, Program: p.Program, Symbol: f.Pairs[i].Symbol, BaseMint: p.BaseMint, QuoteMint: p.QuoteMint,
			BaseVault: p.BaseVault, QuoteVault: p.QuoteVault, LPMint: nullable(p.LPMint), FeeBps: p.FeeBps,
			Kind: p.Layout,
		})
	}
	d.Count = len(d.Pools)
	return d
}
