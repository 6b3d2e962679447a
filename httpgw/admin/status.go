package admin

import (
	"slices"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// StatusSources are what GET /desk/status reads beside the desk. Each must be safe for
// concurrent use and must not block; a nil one is unknown.
type StatusSources struct {
	// Accepting reports whether a claim of the smallest fill would be reserved now, or why
	// not, as the public status does.
	Accepting func() (ok bool, whyNot string)
	// Unpriced returns why a pair has no price to sell at now; empty: it has one. nil: not known.
	Unpriced func(in market.InstrumentID) string
	// Network returns execution_network.
	Network func() string
	Chain   func() desk.ChainHealth
}

// statusAnswer is GET /desk/status: what an operator looks at first.
type statusAnswer struct {
	OK         bool              `json:"ok"`
	At         wire.Time         `json:"ts"`
	Network    *string           `json:"execution_network"`
	Accepting  bool              `json:"accepting"`
	WhyNot     *string           `json:"accepting_reason"`
	Locks      []operatorLock    `json:"locks"` // that are set
	Prices     []operatorPrice   `json:"prices"`
	Balances   []operatorBalance `json:"balances"` // SOL first; empty without a chain
	Nodes      []operatorNode    `json:"nodes"`
	MoneyCount *moneyCountsJSON  `json:"money"` // null without a chain
}

// operatorBalance is what the desk's wallet holds of an asset.
type operatorBalance struct {
	Asset   string     `json:"asset"` // SOL, USDC or the symbol of a base token
	Mint    *string    `json:"mint"`  // null: SOL
	Balance wire.Units `json:"balance"`
	Needed  wire.Units `json:"needed"`
	Problem *string    `json:"problem"` // low_sol or low_token
}

type operatorNode struct {
	Name      string  `json:"name"`
	Available bool    `json:"available"`
	Slot      *uint64 `json:"slot"`
	Lag       *uint64 `json:"lag_slots"`
}

func (e *deskEndpoints) showStatus(*call) (any, *wire.Problem) {
	answer := statusAnswer{
		OK: true, At: wire.Time(e.now()), Prices: e.prices().Prices, Balances: []operatorBalance{}, Nodes: []operatorNode{},
		Locks: slices.DeleteFunc(e.locks().Locks, func(l operatorLock) bool { return !l.Locked }),
	}
	if e.status.Network != nil {
		answer.Network = wire.NullIfEmpty(e.status.Network())
	}
	if e.status.Accepting != nil {
		var why string
		answer.Accepting, why = e.status.Accepting()
		answer.WhyNot = wire.NullIfEmpty(why)
	}
	if e.status.Chain != nil {
		health, v := e.status.Chain(), e.desk.View()
		for i := range health.Balances {
			answer.Balances = append(answer.Balances, e.balance(v, &health.Balances[i]))
		}
		for i := range health.Nodes {
			n := &health.Nodes[i]
			one := operatorNode{Name: n.Name, Available: n.Available, Slot: wire.NullIfZero(n.Slot)}
			if one.Slot != nil {
				one.Lag = &n.Lag
			}
			answer.Nodes = append(answer.Nodes, one)
		}
	}
	if e.money != nil {
		counts := countsOf(e.money.MoneyCounts())
		answer.MoneyCount = &counts
	}
	return answer, nil
}

func (e *deskEndpoints) balance(v *rfq.View, b *desk.Balance) operatorBalance {
	decimals := uint8(market.RailSOL.Decimals())
	one := operatorBalance{Asset: b.Asset, Problem: wire.NullIfEmpty(b.Problem())}
	switch {
	case b.Base:
		if p := v.Pair(b.Instrument); p != nil {
			decimals = p.BaseDecimals
		}
		one.Asset, one.Mint = baseOf(e.symbol(b.Instrument)), wire.NullIfEmpty(b.Mint)
	case b.Mint != "":
		decimals, one.Mint = uint8(market.RailUSDC.Decimals()), wire.NullIfEmpty(b.Mint)
	}
	one.Balance, one.Needed = wire.Units{N: b.Atoms, Decimals: decimals}, wire.Units{N: b.Needed, Decimals: decimals}
	return one
}
