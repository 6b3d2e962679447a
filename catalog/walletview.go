package catalog

// WalletFacts is the content of the wallet page, with texts as in the documents.
type WalletFacts struct {
	Market, Operator string
	Network          string // in words
	At               string // RFC 3339
	Tokens           []WalletToken
	Accounts         []WalletAccount
	Links            []string // URLs
}

// WalletToken is a row of tokens; an empty text is unknown.
type WalletToken struct {
	Symbol, Name, Role, Price, Mint string
	Decimals                        uint8
}

// WalletAccount is a row of observed accounts.
type WalletAccount struct {
	Address, Label, Role, Balance, Symbol string
	Slot                                  uint64
}

// WalletView returns the content of the wallet page.
func WalletView(f *Facts) *WalletFacts {
	v := &WalletFacts{
		Market: f.Service.Market, Operator: f.Service.Operator, Network: networkWords(f.Service.Network), At: f.At.String(),
		Links: []string{f.URLs.Base + marketPath("wallet-index"), f.URLs.Base + marketPath("tokenlist"), f.URLs.Base + marketPath("proof")},
	}
	for i := range f.Tokens {
		t := &f.Tokens[i]
		row := WalletToken{Symbol: t.Symbol, Name: t.Name, Role: t.Role.String(), Mint: t.Mint, Decimals: t.Decimals}
		if price := dollarPrice(f.priceOf(t.Symbol)); price != nil {
			row.Price = price.String()
		}
		v.Tokens = append(v.Tokens, row)
		for j := range t.Accounts {
			a := &t.Accounts[j]
			v.Accounts = append(v.Accounts, WalletAccount{
				Address: a.Address, Label: a.Label, Role: a.Role.String(), Symbol: t.Symbol, Slot: a.Slot,
				Balance: wholeUnits(a.Amount, t.Decimals).Formatted(),
			})
		}
	}
	return v
}
