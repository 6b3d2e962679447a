package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"blockdesk/engine"
	"blockdesk/engine/marketdata"
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
	"blockdesk/mirror"
)

// chainScene is a made-up market of two mirrored pairs, SLUSD/USDC and 92C/SLUSD.
type chainScene struct {
	*factsScene
	state *mirror.State
}

// factsAddress returns the nth test address.
func factsAddress(n byte) solana.Address { return solana.Address{0: n, 31: 1} }

// Addresses of the scene.
var (
	sceneSLUSD, sceneUSDC, scene92C = factsAddress(1), factsAddress(2), factsAddress(3)
	scenePool, scenePair            = factsAddress(10), factsAddress(20)
	sceneReserve, sceneFees         = factsAddress(30), factsAddress(31)
)

// sceneSlot and sceneSecond are the slot and the Unix time of all readings.
const sceneSlot = 330_442_322

var sceneSecond = factsNow/int64(time.Second) - 2

func newChainScene() *chainScene {
	text := func(a solana.Address) string { return solana.Base58(a) }
	s := &chainScene{factsScene: &factsScene{at: factsNow, instruments: []market.Instrument{
		sceneInstrument(0, "SLUSD", "USDC", market.Mirrored), sceneInstrument(1, "92C", "SLUSD", market.Mirrored),
	}}}
	s.state = s.chainState()
	s.mirror = Mirror{State: s.state, Pairs: []MirrorPair{
		{
			Symbol: "92C/SLUSD", BaseMint: text(scene92C), BaseDecimals: 9, QuoteMint: text(sceneSLUSD), QuoteDecimals: 6, Book: true,
			Pool: &Pool{
				Layout: "vault_pair", Address: text(scenePair), BaseVault: text(factsAddress(21)), QuoteVault: text(factsAddress(22)),
				BaseMint: text(scene92C), BaseDecimals: 9, QuoteMint: text(sceneSLUSD), QuoteDecimals: 6,
			},
		},
		{
			Symbol: "SLUSD/USDC", BaseMint: text(sceneSLUSD), BaseDecimals: 6, QuoteMint: text(sceneUSDC), QuoteDecimals: 6, Book: true,
			Pool: &Pool{
				Layout: "raydium_cpmm", Address: text(scenePool), LPMint: text(factsAddress(13)), Program: text(solana.RaydiumCPMMProgram),
				BaseMint: text(sceneSLUSD), BaseDecimals: 6, QuoteMint: text(sceneUSDC), QuoteDecimals: 6,
			},
			PoolFees: true,
			Observed: []Account{
				{Address: text(sceneReserve), Role: GuaranteeReserve, Label: "the reserve"},
				{Address: text(sceneFees), Role: FeeVaultQuote, Label: "fees"},
				{Address: text(factsAddress(32)), Role: DeskInventory},
			},
		},
	}}
	s.views = [2]*marketdata.View{quoted(0, 998_000, 1_000_000), quoted(1, 499_999, 500_000)}
	return s
}

// chainState returns a healthy state.
func (s *chainScene) chainState() *mirror.State {
	at := mirror.Clock{Slot: sceneSlot, Unix: sceneSecond}
	now := time.Unix(0, factsNow)
	pair := func(in int, pool mirror.PoolState) mirror.PairState {
		pool.At = at
		return mirror.PairState{
			Instrument: &s.instruments[in], At: at, ReadAt: now.Add(-time.Second), AgreeingNodes: 2, Pool: &pool, Price: mirror.BookPrice,
			Swaps: mirror.SwapState{Rolling: mirror.Rolling{
				Day: mirror.Window{Status: mirror.Empty}, Week: mirror.Window{Status: mirror.Empty}, AsOf: now.Add(-time.Second),
			}},
		}
	}
	second := pair(1, mirror.PoolState{
		Pool: scenePair, Base: mirror.Coin{Mint: scene92C, Decimals: 9}, Quote: mirror.Coin{Mint: sceneSLUSD, Decimals: 6},
		BaseVault: factsAddress(21), QuoteVault: factsAddress(22), BaseBalance: 4_000_000_000, QuoteBalance: 1_000_000,
	})
	second.BaseSupply, second.QuoteSupply = 9_000_000_000, 70_000_000
	// The reserves are 3 SLUSD and 2 USDC.
	first := pair(0, mirror.PoolState{
		Pool: scenePool, Base: mirror.Coin{Mint: sceneSLUSD, Decimals: 6}, Quote: mirror.Coin{Mint: sceneUSDC, Decimals: 6},
		BaseVault: factsAddress(11), QuoteVault: factsAddress(12), BaseBalance: 3_000_100, QuoteBalance: 2_000_050, BaseFees: 100, QuoteFees: 50,
	})
	first.BaseSupply, first.QuoteSupply = 70_000_000, 80_000_000
	first.Observed = []mirror.Holding{
		{Account: sceneReserve, Mint: sceneSLUSD, Amount: 10_000_001}, {Account: sceneFees, Mint: sceneUSDC, Amount: 7},
	}
	return &mirror.State{
		At: now, Pairs: []mirror.PairState{second, first}, Slot: sceneSlot, SyncedAt: now.Add(-time.Second), MaxSlot: sceneSlot + 3, Lag: 3,
		Upstreams: []mirror.UpstreamState{
			{UpstreamHealth: rpc.UpstreamHealth{Name: "one.example", Available: true, Slot: sceneSlot + 3, Latency: 80 * time.Millisecond, LastOK: now}},
			{UpstreamHealth: rpc.UpstreamHealth{Name: "two.example", LastError: "timeout"}},
		},
		Active: "one.example",
	}
}

// first and second are the states of SLUSD/USDC and of 92C/SLUSD.
func (s *chainScene) first() *mirror.PairState  { return &s.state.Pairs[1] }
func (s *chainScene) second() *mirror.PairState { return &s.state.Pairs[0] }

// facts returns the facts of the scene.
func (s *chainScene) facts(desk *rfq.View) *Facts {
	in := s.input(desk)
	in.Service = Service{FeeBps: 500, Network: "solana-mainnet-beta", ProgramID: solana.Base58(solana.RaydiumCPMMProgram)}
	in.Tokens = []Token{
		{Symbol: "SLUSD", Name: "SLUSD", Role: RoleQuote, Decimals: 6, Mint: solana.Base58(sceneSLUSD)},
		{Symbol: "USDC", Name: "USDC", Role: RoleSettlement, Decimals: 6, Mint: solana.Base58(sceneUSDC)},
		{Symbol: "92C", Name: "92C", Role: RoleBase, Decimals: 9, Mint: solana.Base58(scene92C)},
	}
	return NewFacts(in)
}

// statusText has the members of a status record that tests read.
type statusText struct {
	Price  *string `json:"spot_price_usd"`
	Day    string  `json:"volume_24h_usd"`
	Week   string  `json:"volume_7d_usd"`
	Degrad struct {
		Degraded bool
		Reasons  []string
		Failover bool   `json:"rpc_failover_active"`
		Source   string `json:"price_source"`
	} `json:"degradation_state"`
	Rolling struct {
		DayStatus  string `json:"status_24h"`
		WeekStatus string `json:"status_7d"`
	} `json:"rolling_windows"`
}

const statusSchemaName = "svc_market_status_v1"

// statusSchema compiles the published schema of the status record.
func statusSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	var served struct{ Schemas map[string]json.RawMessage }
	if err := json.Unmarshal(Encode(Schemas()), &served); err != nil {
		t.Fatal(err)
	}
	text, err1 := jsonschema.UnmarshalJSON(bytes.NewReader(served.Schemas[statusSchemaName]))
	c := jsonschema.NewCompiler()
	err2 := c.AddResource("https://schema.test/", text)
	schema, err3 := c.Compile("https://schema.test/")
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	return schema
}

// statusOf renders the status record, validates it against its schema and decodes it.
func statusOf(t *testing.T, schema *jsonschema.Schema, f *Facts) (r statusText) {
	t.Helper()
	text := Encode(Status(f, statusSchemaName))
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(document); err != nil {
		t.Errorf("the status record: %v\n%s", err, text)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// lawful checks the facts against docs/specification.md.
func lawful(t *testing.T, schema *jsonschema.Schema, name string, f *Facts) {
	t.Helper()
	const vaults = "live_price_using_verified_vault_snapshot"
	r := statusOf(t, schema, f)
	d := &r.Degrad
	if d.Degraded != (len(d.Reasons) > 0) || slices.Contains(d.Reasons, vaults) != (d.Source == "verified_vault_snapshot") {
		t.Errorf("%s: %+v", name, d)
	}
	if d.Source == "verified_vault_snapshot" && !d.Degraded {
		t.Errorf("%s: a price of vaults that is not degraded", name)
	}
	if d.Failover != f.Chain.Failover || (r.Price == nil) != (d.Source == "unavailable") {
		t.Errorf("%s: failover %v, price %v of %s", name, d.Failover, r.Price, d.Source)
	}
	if r.Rolling.DayStatus != "exact" && r.Day != "0.000000" || r.Rolling.WeekStatus != "exact" && r.Week != "0.000000" {
		t.Errorf("%s: %s (%s) and %s (%s) are invented", name, r.Day, r.Rolling.DayStatus, r.Week, r.Rolling.WeekStatus)
	}
	for i := range f.Pairs {
		p := &f.Pairs[i]
		if (p.PriceUSD == 0) != (p.PriceSource == NoPrice) || p.PriceUSD > market.MaxUSDPrice {
			t.Errorf("%s: %s is priced %d by %v", name, p.Symbol, p.PriceUSD, p.PriceSource)
		}
	}
}

// TestMirroredPrices: the on-chain book comes first, then the vaults, then the operator.
// A reading that is stale or missing makes no price, and neither does a book that only the
// engine still has.
func TestMirroredPrices(t *testing.T) {
	schema := statusSchema(t)
	type price struct {
		usd  market.USDPrice
		from PriceSource
	}
	none := price{0, NoPrice}
	anchored := &rfq.View{Pairs: []rfq.Pair{{Source: rfq.SourceOperator, CorridorBps: 1000, Anchor: 2_000_000_000, AnchorAt: factsNow}}}
	for name, c := range map[string]struct {
		change func(s *chainScene)
		desk   *rfq.View
		want   [2]price // of SLUSD/USDC and 92C/SLUSD
	}{
		"books":    {func(*chainScene) {}, nil, [2]price{{999_000_000, FromChainBook}, {499_499_501, FromChainBook}}},
		"one side": {func(s *chainScene) { s.views[0].Asks = nil }, nil, [2]price{{666_666_666, FromVaultSnapshot}, {333_333_000, FromChainBook}}},
		"no book now": {
			func(s *chainScene) { s.first().Price = mirror.PoolPrice },
			nil,
			[2]price{{666_666_666, FromVaultSnapshot}, {333_333_000, FromChainBook}},
		},
		"old in the engine": {
			func(s *chainScene) { s.first().Reasons = s.first().Reasons.With(mirror.EngineRefuses) },
			nil,
			[2]price{{666_666_666, FromVaultSnapshot}, {333_333_000, FromChainBook}},
		},
		"vaults": {func(s *chainScene) { s.views[1] = nil }, nil, [2]price{{999_000_000, FromChainBook}, {249_750_000, FromVaultSnapshot}}},
		"vaults alone": {
			func(s *chainScene) { s.views = [2]*marketdata.View{} },
			nil,
			[2]price{{666_666_666, FromVaultSnapshot}, {166_666_666, FromVaultSnapshot}},
		},
		"quote stale":   {func(s *chainScene) { s.first().Reasons = s.first().Reasons.With(mirror.Stale) }, nil, [2]price{none, none}},
		"base stale":    {func(s *chainScene) { s.second().Reasons = s.second().Reasons.With(mirror.Stale) }, nil, [2]price{{999_000_000, FromChainBook}, none}},
		"stale, anchor": {func(s *chainScene) { s.first().Reasons = s.first().Reasons.With(mirror.Stale) }, anchored, [2]price{{2_000_000_000, FromOperator}, {999_999_000, FromChainBook}}},
		"anchor not needed": {
			func(s *chainScene) { s.views[0] = nil },
			anchored,
			[2]price{{666_666_666, FromVaultSnapshot}, {333_333_000, FromChainBook}},
		},
		"never read": {
			func(s *chainScene) {
				*s.first() = mirror.PairState{Instrument: s.first().Instrument, Price: mirror.NoPrice, Reasons: mirror.Reasons(0).With(mirror.NotRead)}
			},
			nil,
			[2]price{none, none},
		},
		"nothing is read": {func(s *chainScene) { s.mirror = Mirror{} }, nil, [2]price{none, none}},
		"halted":          {func(s *chainScene) { s.views[0].Status = engine.StatusHalted }, nil, [2]price{none, none}},
		"no reserves": {
			func(s *chainScene) { s.views[0], s.first().Pool.BaseBalance = nil, s.first().Pool.BaseFees },
			nil,
			[2]price{none, none},
		},
		"beyond any price": {
			func(s *chainScene) {
				s.views[0], s.first().Pool.BaseBalance, s.first().Pool.QuoteBalance = nil, 101, 1<<63
			},
			nil,
			[2]price{none, none},
		},
		"too small a price": {
			func(s *chainScene) {
				s.views[0], s.first().Pool.BaseBalance, s.first().Pool.QuoteBalance = nil, 1<<63, 51
			},
			nil,
			[2]price{none, none},
		},
	} {
		s := newChainScene()
		c.change(s)
		f := s.facts(c.desk)
		for i := range f.Pairs {
			if got := (price{f.Pairs[i].PriceUSD, f.Pairs[i].PriceSource}); got != c.want[i] {
				t.Errorf("%s: %s is priced %+v, want %+v", name, f.Pairs[i].Symbol, got, c.want[i])
			}
		}
		lawful(t, schema, name, f)
	}
}

// TestMirroredLaws: whatever the chain and the nodes return, the facts keep the rules and
// every record matches its schema.
func TestMirroredLaws(t *testing.T) {
	schema, random := statusSchema(t), rand.New(rand.NewPCG(7, 7))
	amount := func() market.Amount { // small ones and the largest alike
		return market.Amount(random.Uint64() >> random.IntN(64))
	}
	window := func() mirror.Window {
		w := mirror.Window{Status: mirror.WindowStatus(random.IntN(7))}
		if w.Status == mirror.Exact {
			w.Swaps, w.Quote = 1+random.IntN(3), market.Uint128{Hi: random.Uint64() >> random.IntN(64), Lo: random.Uint64()}
			w.Reference = mirror.CountedSwap{Time: random.Int64(), Base: amount() | 1, Quote: amount() | 1}
			w.Last = mirror.CountedSwap{Time: random.Int64(), Base: amount() | 1, Quote: amount() | 1}
		}
		return w
	}
	for range 300 {
		s := newChainScene()
		for i := range s.state.Pairs {
			p := &s.state.Pairs[i]
			p.Reasons, p.Price = mirror.Reasons(random.Uint64()&random.Uint64()&random.Uint64()), mirror.PriceSource(1+random.IntN(3))
			pool := p.Pool
			pool.BaseBalance, pool.QuoteBalance = amount(), amount()
			pool.BaseFees, pool.QuoteFees = min(amount(), pool.BaseBalance), min(amount(), pool.QuoteBalance)
			if random.IntN(4) == 0 {
				p.Pool = nil
			}
			for j := range p.Observed {
				p.Observed[j].Amount = amount()
			}
			r := &p.Swaps.Rolling
			r.Day, r.Week = window(), window()
			r.Totals = mirror.Totals{Swaps: random.Uint64(), Quote: market.Uint128{Hi: random.Uint64() >> random.IntN(64), Lo: random.Uint64()}}
			p.Swaps.Snapshots = []mirror.Snapshot{{
				At: s.state.At.Unix(), BaseBalance: pool.BaseBalance, QuoteBalance: pool.QuoteBalance, BaseFees: pool.BaseFees,
				QuoteFees: pool.QuoteFees, Swaps: r.Totals.Swaps, Quote: r.Totals.Quote, Base: r.Day.Quote,
			}}
			if random.IntN(3) == 0 {
				s.views[i] = nil
			}
		}
		s.state.Failover = random.IntN(2) == 0
		f := s.facts(nil)
		lawful(t, schema, "some state", f)
		for i := range f.Pairs {
			for j := range s.state.Pairs {
				p := &s.state.Pairs[j]
				if source := f.Pairs[i].PriceSource; p.Instrument.Symbol == f.Pairs[i].Symbol && source != NoPrice && !p.Fresh() {
					t.Errorf("%s is priced %v by an old reading", p.Instrument.Symbol, source)
				}
			}
		}
		if t.Failed() {
			return
		}
	}
}
