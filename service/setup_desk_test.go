package service

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"blockdesk/engine/rfq"
	"blockdesk/market"
	"blockdesk/service/config"
	"blockdesk/service/servicetest"
)

// The requests to a desk that looks like the view, and the remembered ones.
func TestDeskRequests(t *testing.T) {
	pair := func(id, via market.InstrumentID) rfq.Pair {
		return rfq.Pair{Instrument: id, Rails: market.AllRails, Source: rfq.SourceOperator, CorridorBps: 10, Via: via}
	}
	set := func(p rfq.Pair, anchor market.USDPrice, inventory uint64) rfq.Pair {
		p.Anchor, p.AnchorAt, p.Inventory, p.Sold = anchor, 5, inventory, inventory/2
		return p
	}
	wanted := deskSetup{
		policy: rfq.Policy{FeeBps: 500}, operators: []string{"anna", "bert"}, sol: solPrice{150, 60},
		symbols: []string{"A/B", "C/A", "E/F"},
		pairs: []config.PairSetup{
			{Symbol: "C/A", Pair: pair(1, 0), Anchor: 7},
			{Symbol: "A/B", Pair: pair(0, rfq.NoInstrument), Anchor: 9, Inventory: 100, Stocked: true},
		},
	}
	full := appliedDesk{
		Anchors: map[string]market.USDPrice{"A/B": 9, "C/A": 7}, Inventory: map[string]uint64{"A/B": 100}, SOL: solPrice{150, 60},
	}
	view := func(change func(v *rfq.View)) *rfq.View {
		v := &rfq.View{
			Policy:     wanted.policy,
			Operators:  []rfq.Operator{{ID: 1, Name: "carl"}, {ID: 2, Name: "bert"}, {ID: 3, Name: "anna"}},
			Pairs:      []rfq.Pair{set(pair(0, rfq.NoInstrument), 9, 100), set(pair(1, 0), 7, 0)},
			RailPrices: []rfq.RailPrice{{Rail: market.RailSOL, Price: 150, MaxAge: 60}},
		}
		if change != nil {
			change(v)
		}
		return v
	}
	for name, c := range map[string]struct {
		view *rfq.View
		was  appliedDesk
		want string
	}{
		"new desk":                            {&rfq.View{}, appliedDesk{}, "operator 1 anna, operator 2 bert, policy, pair 0, pair 1, anchor 1 7, anchor 0 9, inventory 0 100, SOL 150 60"},
		"nothing":                             {view(nil), full, ""},
		"nothing, and no memory of it":        {view(nil), appliedDesk{}, ""},
		"another policy":                      {view(func(v *rfq.View) { v.Policy.FeeBps = 1 }), full, "policy"},
		"a new name after a gap":              {view(func(v *rfq.View) { v.Operators = v.Operators[:2]; v.Operators[0].ID = 9 }), full, "operator 10 anna"},
		"another pair":                        {view(func(v *rfq.View) { v.Pairs[0].CorridorBps++ }), full, "pair 0"},
		"an operator's anchor":                {view(func(v *rfq.View) { v.Pairs[0].Anchor = 8 }), full, ""},
		"an operator's anchor, and no memory": {view(func(v *rfq.View) { v.Pairs[0].Anchor = 8 }), appliedDesk{}, ""},
		"a new anchor in the configuration": {view(nil), appliedDesk{
			Anchors: map[string]market.USDPrice{"A/B": 8, "C/A": 7}, Inventory: full.Inventory, SOL: full.SOL,
		}, "anchor 0 9"},
		"no anchor yet":           {view(func(v *rfq.View) { v.Pairs[1].Anchor = 0 }), full, "anchor 1 7"},
		"an operator's inventory": {view(func(v *rfq.View) { v.Pairs[0].Inventory = 1 }), full, ""},
		"a new inventory": {view(nil), appliedDesk{
			Anchors: full.Anchors, Inventory: map[string]uint64{"A/B": 99}, SOL: full.SOL,
		}, "inventory 0 100"},
		"an operator's SOL": {view(func(v *rfq.View) { v.RailPrices[0].Price = 1 }), full, ""},
		"a new SOL":         {view(nil), appliedDesk{Anchors: full.Anchors, Inventory: full.Inventory, SOL: solPrice{150, 61}}, "SOL 150 60"},
		"no SOL yet":        {view(func(v *rfq.View) { v.RailPrices = nil }), full, "SOL 150 60"},
	} {
		requests, ids, now, err := wanted.requests(c.view, c.was)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []string
		for _, r := range requests {
			if r.key == "" {
				t.Errorf("%s: a request without a key", name)
			}
			got = append(got, requestWords(r.Request))
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
		if !maps.Equal(now.Anchors, full.Anchors) || !maps.Equal(now.Inventory, full.Inventory) || now.SOL != full.SOL {
			t.Errorf("%s: remembers %+v", name, now)
		}
		for _, o := range c.view.Operators {
			if id, ours := ids[o.Name]; ours && id != o.ID {
				t.Errorf("%s: %s is operator %d, was %d", name, o.Name, id, o.ID)
			}
		}
	}
	extra := view(func(v *rfq.View) { v.Pairs = append(v.Pairs, pair(2, rfq.NoInstrument)) })
	if _, _, _, err := wanted.requests(extra, full); err == nil || !strings.Contains(err.Error(), "E/F") {
		t.Errorf("a pair is taken away: %v", err)
	}
	other := view(func(v *rfq.View) { v.Pairs[0].BaseMint[0] = 1 })
	if _, _, _, err := wanted.requests(other, full); err == nil || !strings.Contains(err.Error(), "base_mint of A/B") {
		t.Errorf("another mint: %v", err)
	}
	other.Pairs[0].Inventory, other.Pairs[0].Sold = 0, 0
	if _, _, _, err := wanted.requests(other, full); err != nil {
		t.Errorf("another mint where nothing is sold: %v", err)
	}
	var manyOperators rfq.View
	for i := range rfq.MaxOperators {
		manyOperators.Operators = append(manyOperators.Operators, rfq.Operator{ID: market.OperatorID(i + 1), Name: fmt.Sprint("o", i)})
	}
	if _, _, _, err := wanted.requests(&manyOperators, full); err == nil || !strings.Contains(err.Error(), "operators") {
		t.Errorf("too many operators: %v", err)
	}
}

func requestWords(r rfq.Request) string {
	switch r := r.(type) {
	case *rfq.SetOperator:
		return fmt.Sprint("operator ", r.Of.ID, " ", r.Of.Name)
	case *rfq.SetPolicy:
		return "policy"
	case *rfq.SetPair:
		return fmt.Sprint("pair ", r.Pair.Instrument)
	case *rfq.SetAnchor:
		return fmt.Sprint("anchor ", r.Instrument, " ", uint64(r.Price))
	case *rfq.SetInventory:
		return fmt.Sprint("inventory ", r.Instrument, " ", r.Atoms)
	case *rfq.SetRailPrice:
		return fmt.Sprint(r.Rail, " ", uint64(r.Price), " ", r.MaxAge)
	}
	return fmt.Sprintf("%T", r)
}

// The desk gets the accepted request.
func TestRFQConfigurationResolved(t *testing.T) {
	cfg, err := servicetest.Load(t, `rfq:
  quote_ttl_s: 30
  late_window_s: 60
  grace_s: 10
  firm_bps_sol: 200
  unproven_ttl_s: 20
  unproven_usd_per_ip: "1000.5"
  unproven_share_bps: 0
  dust_usdc: "0.5"
  pay_to: {SOL: PLaceho1derPaytoSoLxxxxxxxxxxxxxxxxxxxxxxxx}
  sol_price_usd: "151.25"
  sol_max_age_s: 60
  pairs:
    - {symbol: 92C/SLUSD, base_mint: PLaceho1der92Cmintxxxxxxxxxxxxxxxxxxxxxxxxx, base_decimals: 9, rails: [SOL, USDC],
       price_source: book, corridor_bps: 1, max_age_s: 0, via: SLUSD/USDC, reference_price_usd: "0.3", inventory: "0.000000001"}
    - {symbol: SLUSD/USDC, base_mint: PLaceho1derSLUSDmintxxxxxxxxxxxxxxxxxxxxxxx, base_decimals: 0, rails: [USDC],
       price_source: operator, corridor_bps: 9999, max_age_s: 1, firm_bps_usdc: 30}
`)
	if err != nil {
		t.Fatal(err)
	}
	d, err := newDeskSetup(&cfg, []string{"a"})
	if err != nil {
		t.Fatal(err)
	}
	mint := func(text string) market.Address {
		a, err := config.ParseAddress(text)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	policy := rfq.Policy{
		QuoteTTL: 30e9, ClaimTTL: 120e9, FeeBps: 500, WalletClaims: 8,
		Rules: rfq.RulesGuarded, Grace: 10e9, UnprovenTTL: 20e9, UnprovenPerClient: 1_000_500_000,
		Dust:      [market.RailCount]uint64{market.RailUSDC: 500_000, market.RailSOL: 100_000},
		Discounts: [market.FillCount]uint16{0, 25, 75, 150, 250, 400}, USDCMint: mint(config.PlaceholderUSDC),
	}
	policy.PayTo[market.RailSOL] = mint(servicetest.NobodysAddress)
	if d.policy != policy {
		t.Errorf("policy %+v, want %+v", d.policy, policy)
	}
	if want := (solPrice{151_250_000_000, 60e9}); d.sol != want {
		t.Errorf("SOL %+v, want %+v", d.sol, want)
	}
	pairs := []config.PairSetup{
		{Symbol: "92C/SLUSD", Anchor: 300_000_000, Inventory: 1, Stocked: true, Pair: rfq.Pair{
			Instrument: 1, BaseMint: mint(config.Placeholder92C), BaseDecimals: 9, Rails: market.AllRails, Source: rfq.SourceBook,
			CorridorBps: 1, Via: 0, FirmBps: [market.RailCount]uint16{market.RailUSDC: 100, market.RailSOL: 200},
		}},
		{Symbol: "SLUSD/USDC", Pair: rfq.Pair{
			Instrument: 0, BaseMint: mint(config.PlaceholderSLUSD), Rails: market.Rails(0).With(market.RailUSDC), Source: rfq.SourceOperator,
			CorridorBps: 9999, MaxAge: 1e9, Via: rfq.NoInstrument, FirmBps: [market.RailCount]uint16{market.RailUSDC: 30, market.RailSOL: 200},
		}},
	}
	if !slices.Equal(d.pairs, pairs) {
		t.Errorf("pairs %+v, want %+v", d.pairs, pairs)
	}
}
