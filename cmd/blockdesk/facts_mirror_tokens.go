package main

import (
	"cmp"
	"slices"
	"strings"

	"blockdesk/catalog"
	"blockdesk/internal/solana"
	"blockdesk/market"
	"blockdesk/service/config"
)

// observedAccount is an account that the configuration names, as it was read.
type observedAccount struct {
	config *config.Observed
	role   catalog.AccountRole
	mint   string
	amount market.Amount
}

// observed are the accounts that exist and hold what their role says, each once, in
// the order of the configuration. right is false where one holds something else:
// that one is left out.
func (k *mirroredPair) observed() (accounts []observedAccount, right bool) {
	right = true
	if k.state == nil {
		return nil, right
	}
	told := map[string]int{}
	for i := range k.state.Observed {
		told[solana.Text(k.state.Observed[i].Account)] = i
	}
	for i := range k.config.Observed {
		c := &k.config.Observed[i]
		at, ok := told[c.Address]
		if !ok {
			continue
		}
		delete(told, c.Address) // one that is named twice counts once
		h := &k.state.Observed[at]
		a := observedAccount{c, accountRole(c), solana.Text(h.Mint), h.Amount}
		if !mayHold(k.config, a.role, a.mint) {
			right = false
			continue
		}
		accounts = append(accounts, a)
	}
	return accounts, right
}

// mayHold reports whether an account of a role may hold tokens of a mint.
func mayHold(c *config.MirrorPair, role catalog.AccountRole, mint string) bool {
	switch role {
	case catalog.FeeVaultBase:
		return mint == c.BaseMint
	case catalog.FeeVaultQuote:
		return mint == c.QuoteMint
	default:
		return mint == c.BaseMint || mint == c.QuoteMint
	}
}

// sumOf is what the accounts of a role hold of a mint.
func sumOf(accounts []observedAccount, role catalog.AccountRole, mint string) (sum market.Uint128) {
	for i := range accounts {
		if a := &accounts[i]; a.role == role && a.mint == mint {
			sum = plus(sum, market.Uint128{Lo: uint64(a.amount)})
		}
	}
	return sum
}

// tellTokens fills in what was read of tokens: their supply and the accounts that
// hold them. Where two pairs have read the same, the later reading counts.
func (m *mirrorFacts) tellTokens(tokens []catalog.Token) {
	supplied := map[string]uint64{} // the slot of each token's supply
	tell := func(k *mirroredPair, symbol, mint string, supply market.Amount) {
		i := slices.IndexFunc(tokens, func(t catalog.Token) bool { return t.Symbol == symbol })
		if i < 0 || tokens[i].Mint != mint {
			return
		}
		t, slot := &tokens[i], k.state.At.Slot
		if t.Supply == nil || slot > supplied[symbol] {
			t.Supply, supplied[symbol] = &supply, slot
		}
		for _, a := range k.accounts(mint) {
			switch at := slices.IndexFunc(t.Accounts, func(o catalog.Account) bool { return o.Address == a.Address }); {
			case at < 0:
				t.Accounts = append(t.Accounts, a)
			case slot > t.Accounts[at].Slot:
				t.Accounts[at] = a
			}
		}
	}
	for i := range m.pairs {
		k := m.pair(m.pairs[i].Symbol)
		if !k.wasRead() {
			continue
		}
		base, quote, _ := strings.Cut(k.config.Symbol, "/")
		tell(&k, base, k.config.BaseMint, k.state.BaseSupply)
		tell(&k, quote, k.config.QuoteMint, k.state.QuoteSupply)
	}
	for i := range tokens { // guarantees first: documents name the first one
		slices.SortStableFunc(tokens[i].Accounts, func(a, b catalog.Account) int { return cmp.Compare(a.Role, b.Role) })
	}
}

// tellMint fills in what a mirrored pair says of a token whose mint nothing else tells.
func tellMint(t *catalog.Token, mint string, decimals int) {
	if t.Mint == "" {
		t.Mint, t.Decimals = mint, uint8(decimals)
	}
}

// accounts are those that hold tokens of one of the pair's mints: the observed
// ones and the pool's vault.
func (k *mirroredPair) accounts(mint string) (all []catalog.Account) {
	slot := k.state.At.Slot
	list, _ := k.observed()
	for i := range list {
		a := &list[i]
		if a.mint != mint {
			continue
		}
		account := catalog.Account{Address: a.config.Address, Amount: a.amount, Role: a.role, Label: a.config.Label, Slot: slot}
		if a.role == catalog.FeeVaultBase || a.role == catalog.FeeVaultQuote {
			account.Pool, account.PoolLabel = k.config.Pool.Address, poolLabel(k.config)
		}
		all = append(all, account)
	}
	p := k.state.Pool
	if p == nil {
		return all
	}
	vault, amount := p.BaseVault, p.BaseBalance
	if mint == k.config.QuoteMint {
		vault, amount = p.QuoteVault, p.QuoteBalance
	}
	return append(all, catalog.Account{
		Address: solana.Text(vault), Amount: amount, Role: catalog.PoolVault, Label: "vault of " + poolLabel(k.config),
		Pool: k.config.Pool.Address, PoolLabel: poolLabel(k.config), Slot: slot,
	})
}

// poolLabel names the pair's pool; empty where it has none.
func poolLabel(c *config.MirrorPair) string {
	if c.Pool.Layout == "" {
		return ""
	}
	return c.Symbol + " pool"
}
