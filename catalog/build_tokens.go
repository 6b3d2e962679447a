package catalog

import (
	"cmp"
	"slices"

	"blockdesk/internal/solana"
	"blockdesk/market"
)

// addReadings fills in the tokens' supplies and accounts, as the mirrored pairs and
// settlement have read them. Of two readings of one account the later counts.
func (b *builder) addReadings(tokens []Token) {
	supplied := map[string]uint64{} // the slot of each token's supply
	add := func(mint string, slot uint64, supply market.Amount, accounts ...Account) {
		i := slices.IndexFunc(tokens, func(t Token) bool { return t.Mint == mint })
		if i < 0 || mint == "" {
			return
		}
		t := &tokens[i]
		if t.Supply == nil || slot > supplied[mint] {
			t.Supply, supplied[mint] = &supply, slot
		}
		for _, a := range accounts {
			switch at := slices.IndexFunc(t.Accounts, func(o Account) bool { return o.Address == a.Address }); {
			case at < 0:
				t.Accounts = append(t.Accounts, a)
			case slot <= t.Accounts[at].Slot:
			case a.Role == DeskInventory: // what a pair's configuration says of it stays
				t.Accounts[at].Amount, t.Accounts[at].Slot = a.Amount, slot
			default:
				t.Accounts[at] = a
			}
		}
	}
	for i := range b.mirrored {
		k := &b.mirrored[i]
		if !k.wasRead() {
			continue
		}
		add(k.config.BaseMint, k.state.At.Slot, k.state.BaseSupply, k.accountsOf(k.config.BaseMint)...)
		add(k.config.QuoteMint, k.state.At.Slot, k.state.QuoteSupply, k.accountsOf(k.config.QuoteMint)...)
	}
	if s := b.Settlement; s != nil {
		for i := range s.Balances {
			a := &s.Balances[i]
			add(a.Mint, a.Slot, market.Amount(a.Supply), Account{
				Address: solana.Base58(a.Account), Amount: market.Amount(a.Atoms), Role: DeskInventory, Label: "desk", Slot: a.Slot,
			})
		}
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
