package catalog

import (
	"encoding/base64"
	"html"
	"strconv"

	"blockdesk/market"
)

// tokenCatalog is the response of market/tokens (docs/specification.md 2.7).
type tokenCatalog struct {
	OK        bool          `json:"ok"`
	DataMode  string        `json:"data_mode"`
	Fallback  bool          `json:"fallback_active"`
	Version   string        `json:"api_version"`
	Source    string        `json:"source"`
	Network   string        `json:"execution_network"`
	Canonical string        `json:"canonical_pair_id"`
	ChainID   int           `json:"control_chain_id"`
	ChainRole string        `json:"control_chain_role"`
	ChainRPC  bool          `json:"control_chain_rpc_compatible"`
	At        Time          `json:"timestamp_exact"`
	Scope     string        `json:"proof_scope"`
	Schema    string        `json:"schema"`
	Count     int           `json:"count"`
	Tokens    []tokenRecord `json:"tokens"`
}

type tokenRecord struct {
	Mint          string          `json:"mint"`
	Symbol        string          `json:"symbol"`
	OnchainSymbol string          `json:"onchain_symbol,omitempty"`
	Name          string          `json:"name"`
	Decimals      uint8           `json:"decimals"`
	Role          string          `json:"role"`
	Logo          string          `json:"logo_uri"`
	Metadata      string          `json:"metadata_uri"`
	ImageOrigin   string          `json:"image_origin"`
	ImageIPFS     string          `json:"image_ipfs_uri"`
	ImageGateway  string          `json:"image_gateway_url"`
	LocalLogo     string          `json:"local_fallback_logo_uri"`
	Accounts      []accountRecord `json:"observed_accounts"`
	AccountCount  int             `json:"observed_account_count"`
	Mode          string          `json:"observed_inventory_mode"`
	Inventory     Decimal         `json:"observed_inventory_ui"`
	Formatted     string          `json:"observed_inventory_formatted"`
	Compact       string          `json:"observed_inventory_compact"`
	Primary       *string         `json:"primary_observed_account"`
	PrimaryFee    *string         `json:"primary_fee_observed_account"`
}

type accountRecord struct {
	Address   string  `json:"address"`
	Amount    Decimal `json:"amountUi"`
	Atoms     string  `json:"amountAtoms"`
	Formatted string  `json:"amountFormatted"`
	Compact   string  `json:"amountCompact"`
	Role      string  `json:"role"`
	Label     string  `json:"label"`
	Pool      *string `json:"poolAddress"`
	PoolLabel *string `json:"poolLabel"`
}

// Tokens returns the token catalog.
func Tokens(f *Facts, schema string) any {
	return &tokenCatalog{
		OK: true, DataMode: dataMode(f), Fallback: chainFallback(f), Version: APIVersion, Source: f.canonical().source(),
		Network: f.Service.Network, Canonical: f.canonical().Symbol, ChainID: ControlChainID, ChainRole: ControlChainRole,
		At: f.At, Scope: proofScope(f), Schema: schema, Count: len(f.Tokens), Tokens: records(f, f.Tokens, newTokenRecord),
	}
}

func newTokenRecord(_ *Facts, t *Token) tokenRecord {
	r := tokenRecord{
		Mint: t.Mint, Symbol: t.Symbol, OnchainSymbol: t.OnchainSymbol, Name: t.Name, Decimals: t.Decimals,
		Role: t.Role.String(), Logo: t.LogoURI, Metadata: t.MetadataURI, ImageOrigin: t.ImageURI,
		ImageIPFS: t.ImageIPFS, ImageGateway: t.ImageGateway, LocalLogo: t.localLogo(),
		Accounts: []accountRecord{}, AccountCount: len(t.Accounts), Mode: "not_observed",
	}
	sum := t.observed()
	r.Inventory, r.Formatted, r.Compact = sum, sum.Formatted(), sum.Compact()
	if len(t.Accounts) > 0 {
		r.Mode = "sum_of_observed_accounts"
	}
	for i := range t.Accounts {
		a := &t.Accounts[i]
		r.Accounts = append(r.Accounts, a.record(t.Decimals))
		if r.Primary == nil {
			r.Primary = &a.Address
		}
		if r.PrimaryFee == nil && (a.Role == FeeVaultBase || a.Role == FeeVaultQuote) {
			r.PrimaryFee = &a.Address
		}
	}
	return r
}

// observed returns the balance of all observed accounts. It cannot overflow: a mint's
// supply is a 64-bit number of atoms.
func (t *Token) observed() Decimal {
	var sum market.Amount
	for i := range t.Accounts {
		sum += t.Accounts[i].Amount
	}
	return wholeUnits(sum, t.Decimals)
}

// localLogo returns an SVG as a data URI: a disc with the symbol's first letters.
func (t *Token) localLogo() string {
	const letters = 3
	picture := `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64"><circle cx="32" cy="32" r="32" fill="#345"/>` +
		`<text x="32" y="39" font-family="sans-serif" font-size="20" fill="#fff" text-anchor="middle">` +
		html.EscapeString(cut(t.Symbol, letters)) + `</text></svg>`
	return "data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString([]byte(picture))
}

func (a *Account) record(decimals uint8) accountRecord {
	amount := wholeUnits(a.Amount, decimals)
	return accountRecord{
		Address: a.Address, Amount: amount, Atoms: strconv.FormatUint(uint64(a.Amount), 10),
		Formatted: amount.Formatted(), Compact: amount.Compact(), Role: a.Role.String(), Label: a.Label,
		Pool: nullable(a.Pool), PoolLabel: nullable(a.PoolLabel),
	}
}
