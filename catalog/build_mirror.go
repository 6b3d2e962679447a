package catalog

import (
	"blockdesk/engine/marketdata"
	"blockdesk/internal/solana"
	"blockdesk/market"
	"blockdesk/mirror"
)

// mirroredPair is the configuration and state of one mirrored instrument. The zero value
// is an instrument that the mirror does not read.
type mirroredPair struct {
	config *MirrorPair
	state  *mirror.PairState
	// accounts are the observed ones that hold a mint of their role. wrongAccount: an
	// account with another mint was left out.
	accounts     []observedAccount
	wrongAccount bool
}

// pairs returns the configured pairs that have a state.
func (m *Mirror) pairs() (all []mirroredPair) {
	if m.State == nil {
		return nil
	}
	states := m.State.Pairs
	for i := range m.Pairs {
		for j := range states {
			if states[j].Instrument.Symbol == m.Pairs[i].Symbol {
				k := mirroredPair{config: &m.Pairs[i], state: &states[j]}
				k.observe()
				all = append(all, k)
			}
		}
	}
	return all
}

// mirroredPair returns the pair of an instrument; the zero value if it is not read.
func (b *builder) mirroredPair(symbol string) *mirroredPair {
	for i := range b.mirrored {
		if b.mirrored[i].config.Symbol == symbol {
			return &b.mirrored[i]
		}
	}
	return &mirroredPair{}
}

// wasRead reports whether the pair was read from the chain since the start.
func (k *mirroredPair) wasRead() bool { return k.state != nil && !k.state.Reasons.Has(mirror.NotRead) }

// fresh reports whether the reading is current. Only a current reading prices the pair.
func (k *mirroredPair) fresh() bool { return k.state != nil && k.state.Fresh() }

// hasBook reports whether the engine's book is the chain's current book.
func (k *mirroredPair) hasBook() bool {
	return k.fresh() && k.state.Price == mirror.BookPrice && !k.state.Reasons.Has(mirror.EngineRefuses)
}

// spot returns the price of the pool's reserves in dollars, rounded down, at the price
// quote of the quote asset; 0 if there is none.
func (k *mirroredPair) spot(quote market.USDPrice) market.USDPrice {
	if !k.fresh() || k.state.Pool == nil {
		return 0
	}
	pool := k.state.Pool
	base, held := pool.Reserves()
	return spotFloor(base, held, int(pool.Base.Decimals)-int(pool.Quote.Decimals), quote)
}

// reasonPoolStopped is a degradation reason beside the mirror's own.
const reasonPoolStopped = "onchain_pool_stopped"

// reasons returns why the pair's chain data is degraded. mirror.VaultPrice is not among
// them: it follows from the price source, which may be the operator's anchor.
func (k *mirroredPair) reasons() []string {
	if k.state == nil {
		return []string{mirror.NotRead.String()}
	}
	set := k.state.Reasons
	if k.wrongAccount {
		set = set.With(mirror.BadAccount)
	}
	words := (set &^ mirror.Reasons(0).With(mirror.VaultPrice)).Words()
	if k.state.Pool != nil && k.state.Pool.Stopped {
		words = append(words, reasonPoolStopped)
	}
	return words
}

// signature returns the transaction of the view's newest trade; empty if unknown. The
// mirror itself reports a failing store.
func (m *Mirror) signature(v *marketdata.View) string {
	if m.Trades == nil || len(v.Trades) == 0 || v.Trades[0].Ordinal == 0 {
		return ""
	}
	signature, ok, err := m.Trades.Signature(v.Instrument, v.Trades[0].Ordinal)
	if err != nil || !ok {
		return ""
	}
	return solana.Base58(signature)
}

// builder computes the pairs of one moment.
type builder struct {
	*Input
	all      []Pair         // in the order of Instruments
	mirrored []mirroredPair // in the order of Mirror.Pairs
}

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
		read[solana.Base58(k.state.Observed[i].Account)] = i
	}
	for i := range k.config.Observed {
		a := observedAccount{Account: k.config.Observed[i]}
		at, ok := read[a.Address]
		if !ok {
			continue
		}
		delete(read, a.Address) // an account that is configured twice counts once
		h := &k.state.Observed[at]
		a.mint, a.Amount, a.Slot = solana.Base58(h.Mint), h.Amount, k.state.At.Slot
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
