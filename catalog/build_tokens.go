package catalog

import (
	"cmp"
	"slices"
	"strings"

	"blockdesk/internal/solana"
	"blockdesk/market"
)

// observedAccount is a configured account with its balance.
type observedAccount struct {
	Account
	mint string
}

// observe finds the configured accounts that exist and hold a mint of their role, each
// once, in the order of the configuration.
func (k *mirroredPair) observe() {
	read := map[string]int{}
	for i := range k.state.Observed {
		read[solana.Text(k.state.Observed[i].Account)] = i
	}
	for i := range k.config.Observed {
		a := observedAccount{Account: k.config.Observed[i]}
		at, ok := read[a.Address]
		if !ok {
			continue
		}
		delete(read, a.Address) // an account that is configured twice counts once
		h := &k.state.Observed[at]
		a.mint, a.Amount, a.Slot = solana.Text(h.Mint), h.Amount, k.state.At.Slot
		if !k.config.allows(a.Role, a.mint) {
			k.wrongAccount = true
			continue
		}
		k.accounts = append(k.accounts, a)
	}
}

// allows reports whether an account of a role may hold tokens of a mint.
func (c *MirrorPair) allows(role AccountRole, mint string) bool {
	switch role {
	case FeeVaultBase:
		return mint == c.BaseMint
	case FeeVaultQuote:
		return mint == c.QuoteMint
	default:
		return mint == c.BaseMint || mint == c.QuoteMint
	}
}

// heldBy returns the balance of a mint over the accounts of a role.
func (k *mirroredPair) heldBy(role AccountRole, mint string) (sum market.Uint128) {
	for i := range k.accounts {
		if a := &k.accounts[i]; a.Role == role && a.mint == mint {
			sum = plus(sum, market.Uint128{Lo: uint64(a.Amount)})
		}
	}
	return sum
}

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
		Address: solana.Text(vault), Amount: amount, Role: PoolVault, Label: "vault of " + label,
		Pool: pool, PoolLabel: label, Slot: k.state.At.Slot,
	})
}
