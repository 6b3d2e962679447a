package catalog

import (
	"cmp"
	"slices"
	"strings"

	"blockdesk/internal/solana"
	"blockdesk/market"
)

// addReadings fills in the tokens' supplies and accounts. If two pairs have read the same
// account, the later reading counts.
func (b *builder) addReadings(tokens []Token) {
	supplied := map[string]uint64{} // the slot of each token's supply
	add := func(k *mirroredPair, symbol, mint string, supply market.Amount) {
		i := slices.IndexFunc(tokens, func(t Token) bool { return t.Symbol == symbol })
		if i < 0 || tokens[i].Mint != mint {
			return
		}
		t, slot := &tokens[i], k.state.At.Slot
		if t.Supply == nil || slot > supplied[symbol] {
			t.Supply, supplied[symbol] = &supply, slot
		}
		for _, a := range k.accountsOf(mint) {
			switch at := slices.IndexFunc(t.Accounts, func(o Account) bool { return o.Address == a.Address }); {
			case at < 0:
				t.Accounts = append(t.Accounts, a)
			case slot > t.Accounts[at].Slot:
				t.Accounts[at] = a
			}
		}
	}
	for i := range b.mirrored {
		k := &b.mirrored[i]
		if !k.wasRead() {
			continue
		}
		base, quote, _ := strings.Cut(k.config.Symbol, "/")
		add(k, base, k.config.BaseMint, k.state.BaseSupply)
		add(k, quote, k.config.QuoteMint, k.state.QuoteSupply)
	}
	for i := range tokens { // guarantees first: documents name the first account
		slices.SortStableFunc(tokens[i].Accounts, func(a, b Account) int { return cmp.Compare(a.Role, b.Role) })
	}
}

// accountsOf returns the accounts that hold one of the pair's mints: the observed ones and
// the pool's vault.
func (k *mirroredPair) accountsOf(mint string) (all []Account) {
	pool, label := "", ""
	if k.config.Pool != nil {
		pool, label = k.config.Pool.Address, k.config.Symbol+" pool"
	}
	for i := range k.accounts {
		a := k.accounts[i]
		if a.mint != mint {
			continue
		}
		if a.Role == FeeVaultBase || a.Role == FeeVaultQuote {
			a.Pool, a.PoolLabel = pool, label
		}
		all = append(all, a.Account)
	}
	p := k.state.Pool
	if p == nil {
		return all
	}
	vault, amount := p.BaseVault, p.BaseBalance
	if mint == k.config.QuoteMint {
		vault, amount = p.QuoteVault, p.QuoteBalance
	}
	return append(all, Account{
		Address: solana.Base58(vault), Amount: amount, Role: PoolVault, Label: "vault of " + label,
		Pool: pool, PoolLabel: label, Slot: k.state.At.Slot,
	})
}
