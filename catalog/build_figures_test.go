package catalog

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"blockdesk/desk"
	"blockdesk/engine/marketdata"
	"blockdesk/internal/solana"
	"blockdesk/market"
	"blockdesk/mirror"
)

// sceneWindow has three swaps of so many atoms of the quote token; the price went
// from 1 to last ÷ 1,000,000.
func sceneWindow(quote uint64, last market.Amount) mirror.Window {
	return mirror.Window{
		Status: mirror.Exact, Swaps: 3, Quote: market.Uint128{Lo: quote},
		Reference: mirror.CountedSwap{Time: sceneSecond - 5000, Base: 1_000_000, Quote: 1_000_000},
		Last:      mirror.CountedSwap{Time: sceneSecond - 10, Base: 1_000_000, Quote: last},
	}
}

// TestMirroredWindows: proven figures are published to the atom, rounded down. Others are
// zero, with a status that says why.
func TestMirroredWindows(t *testing.T) {
	for _, c := range []struct {
		status mirror.WindowStatus
		day    string
		week   string
		usd    market.USD // of the day
		trades uint64
	}{
		{mirror.Exact, "exact", "exact", 1_234_567, 3},
		{mirror.Empty, "no_indexed_swaps_in_24h_window", "no_indexed_swaps_in_7d_window", 0, 0},
		{mirror.Behind, "not_synced_to_chain", "not_synced_to_chain", 0, 0},
		{mirror.Partial, "history_not_indexed_to_24h_start", "history_not_indexed_to_7d_start", 0, 0},
		{mirror.Uncertain, "undecoded_transaction_in_24h_window", "undecoded_transaction_in_7d_window", 0, 0},
		{mirror.Ahead, "chain_time_ahead_of_clock", "chain_time_ahead_of_clock", 0, 0},
		{0, "window_not_proven", "window_not_proven", 0, 0},
	} {
		s := newChainScene()
		r := &s.first().Swaps.Rolling
		r.Day, r.Week = mirror.Window{Status: c.status}, mirror.Window{Status: c.status}
		if c.status == mirror.Exact {
			r.Day, r.Week = sceneWindow(1_234_567, 950_000), sceneWindow(7_000_000, 1_333_333)
		}
		f := s.facts(nil)
		status := statusOf(t, statusSchema(t), f)
		if status.Rolling.DayStatus != c.day || status.Rolling.WeekStatus != c.week {
			t.Errorf("status %d: the words are %+v", c.status, status.Rolling)
		}
		day, week := f.Pairs[0].Windows.Day, f.Pairs[0].Windows.Week
		if day.VolumeUSD != c.usd || day.Trades != c.trades || (day.DeltaPercent != nil) != (c.trades > 0) {
			t.Errorf("status %d: the day is %+v", c.status, day)
		}
		if c.trades == 0 {
			continue
		}
		reference := Time((sceneSecond - 5000) * int64(time.Second))
		if *day.DeltaPercent != -500 || day.ReferenceAt != reference || week.VolumeUSD != 7_000_000 || *week.DeltaPercent != 3333 {
			t.Errorf("status %d: %+v and %+v", c.status, day, week)
		}
	}
}

// TestMirroredWindowsInDollars: a quote token other than USDC counts at its price, rounded
// down; without a price there are swaps and no dollars.
func TestMirroredWindowsInDollars(t *testing.T) {
	s := newChainScene()
	s.second().Swaps.Rolling.Day = sceneWindow(1_000_001, 1_000_000)
	if day := s.facts(nil).Pairs[1].Windows.Day; day.VolumeUSD != 999_000 || day.Status != WindowExact { // of 999,000.999
		t.Errorf("at 0.999 dollars: %+v", day)
	}
	s.views[0], s.first().Pool = nil, nil
	day := s.facts(nil).Pairs[1].Windows.Day
	if day.VolumeUSD != 0 || day.Status != WindowUnproven || day.Why != noDollars || day.Trades != 3 || *day.DeltaPercent != 0 {
		t.Errorf("without a price: %+v", day)
	}
	s = newChainScene()
	s.first().Swaps.Rolling.Day = sceneWindow(1<<62, 1)
	if day := s.facts(nil).Pairs[0].Windows.Day; day.VolumeUSD != maxUSD || day.Status != WindowExact {
		t.Errorf("the most dollars: %+v", day)
	}
	s.first().Swaps.Rolling.Day = sceneWindow(1<<62+1, 1)
	if day := s.facts(nil).Pairs[0].Windows.Day; day.VolumeUSD != 0 || day.Status != WindowUnproven {
		t.Errorf("more than the most dollars: %+v", day)
	}
}

// finder has the trades of instrument 0 from ordinal 1 on.
type finder struct{ known uint64 }

func (f finder) Signature(in market.InstrumentID, ordinal uint64) (sig solana.Signature, ok bool, err error) {
	if in == 0 && ordinal == 9 {
		return sig, false, errors.New("the store failed")
	}
	return solana.Signature{0: byte(ordinal)}, in == 0 && ordinal <= f.known, nil
}

// TestMirroredFigures: totals, fees, guarantee and pool follow from the chain, in dollars
// rounded down.
func TestMirroredFigures(t *testing.T) {
	s := newChainScene()
	observed := &s.mirror.Pairs[1].Observed
	*observed = append(*observed, (*observed)[0]) // configured twice, it counts once
	w := &s.first().Swaps
	w.Rolling.Totals = mirror.Totals{Swaps: 5, Quote: market.Uint128{Lo: 10_000_001}}
	w.Reconstructed = mirror.Snapshot{Swaps: 2, Quote: market.Uint128{Lo: 3_000_000}}
	w.Traders, w.Rolling.Last.Time = 4, sceneSecond
	f := s.facts(nil)
	p := &f.Pairs[0]
	total := p.Totals
	if total.OnchainSwaps != 5 || total.OnchainUSD != 10_000_001 || total.ReconstructedSwaps != 2 || total.ReconstructedUSD != 3_000_000 ||
		total.Traders != 4 || total.TradersFrom != tradersFrom {
		t.Errorf("the totals are %+v", total)
	}
	// 100 atoms of SLUSD at 0.999 are 99.9 atoms of a dollar.
	if total.FeesBase.String() != "0.000100" || total.FeesQuote.String() != "0.000057" || total.FeesUSD != 99+57 {
		t.Errorf("the fees are %s and %s, %d", total.FeesBase, total.FeesQuote, total.FeesUSD)
	}
	if p.GuaranteeUSD != 9_990_000 { // of 9,990,000.999
		t.Errorf("the guarantee is %d", p.GuaranteeUSD)
	}
	if at := Time(sceneSecond * int64(time.Second)); p.Windows.LastAt != at || p.Pool.At != at {
		t.Errorf("the last swap is of %v, the pool of %v, want %v", p.Windows.LastAt, p.Pool.At, at)
	}
	pool := *p.Pool
	if pool.Address != solana.Base58(scenePool) || pool.Program != solana.Base58(solana.RaydiumCPMMProgram) || pool.BaseVault != solana.Base58(factsAddress(11)) ||
		pool.LPMint != solana.Base58(factsAddress(13)) || pool.BaseAtoms != 3_000_100 || pool.QuoteAtoms != 2_000_050 || pool.Spot != 666_666_666 ||
		pool.Slot != sceneSlot || pool.FeeBps != nil || *pool.BaseFees != 100 || *pool.QuoteFees != 50 {
		t.Errorf("the pool is %+v", pool)
	}
	// 1 SLUSD for 4 92C, at 0.999 dollars.
	if second := f.Pairs[1].Pool; second.BaseFees != nil || second.QuoteFees != nil || second.Program != "" || second.Spot != 249_750_000 || second.BaseDecimals != 9 {
		t.Errorf("the pair of vaults is %+v", second)
	}
	if f.Service.ProgramID != pool.Program {
		t.Errorf("the program is %s", f.Service.ProgramID)
	}
}

// TestMirroredVisible: only a current book counts as offers and liquidity.
func TestMirroredVisible(t *testing.T) {
	s := newChainScene()
	f := s.facts(nil)
	// 0.998 and 1 USDC; 0.499999 and 0.5 SLUSD at 0.999 dollars are 0.998999001.
	if f.Pairs[0].VisibleUSD != 1_998_000 || f.Pairs[1].VisibleUSD != 998_999 {
		t.Errorf("%d and %d are visible", f.Pairs[0].VisibleUSD, f.Pairs[1].VisibleUSD)
	}
	if f.Pairs[0].Bid == nil || f.Pairs[1].Ask == nil {
		t.Error("no offers are published")
	}
	s.first().Reasons = mirror.Reasons(0).With(mirror.Stale)
	s.second().Price = mirror.PoolPrice
	if f = s.facts(nil); f.Pairs[0].VisibleUSD != 0 || f.Pairs[1].VisibleUSD != 0 {
		t.Errorf("of old books %d and %d are visible", f.Pairs[0].VisibleUSD, f.Pairs[1].VisibleUSD)
	}
	for _, p := range f.Pairs {
		if p.Bid != nil || p.Ask != nil {
			t.Errorf("%s: %v and %v are published as current offers", p.Symbol, p.Bid, p.Ask)
		}
	}
}

// TestMirroredSignature: the newest trade's transaction is found by its ordinal.
func TestMirroredSignature(t *testing.T) {
	s := newChainScene()
	for _, c := range []struct {
		trades []marketdata.Trade
		find   TradeFinder
		want   string
	}{
		{nil, finder{8}, ""},
		{[]marketdata.Trade{{ID: 4, Ordinal: 8}, {ID: 3, Ordinal: 7}}, finder{8}, solana.Base58(solana.Signature{0: 8})},
		{[]marketdata.Trade{{ID: 4, Ordinal: 8}}, finder{7}, ""},
		{[]marketdata.Trade{{ID: 4, Ordinal: 8}}, nil, ""},
		{[]marketdata.Trade{{ID: 4}}, finder{8}, ""},
		{[]marketdata.Trade{{ID: 4, Ordinal: 9}}, finder{9}, ""},
	} {
		s.views[0].Trades, s.mirror.Trades = c.trades, c.find
		if got := s.facts(nil).Pairs[0].LastSignature; got != c.want {
			t.Errorf("%+v: %q, want %q", c.trades, got, c.want)
		}
	}
}

// TestMirroredReasons: a pair has its own reasons, and the canonical pair's record has none
// of the other's.
func TestMirroredReasons(t *testing.T) {
	s := newChainScene()
	s.views[0].Ticker.LastAt = factsNow
	s.second().Reasons = mirror.Reasons(0).With(mirror.BadAccount).With(mirror.Stale)
	if r := statusOf(t, statusSchema(t), s.facts(nil)); r.Degrad.Degraded {
		t.Errorf("for the other's sake: %v", r.Degrad.Reasons)
	}
	s.first().Reasons = mirror.Reasons(0).With(mirror.Contradicted).With(mirror.VaultPrice)
	s.first().Pool.Stopped = true
	want := []string{"rpc_upstreams_contradict", reasonPoolStopped} // the book prices it all the same
	if r := statusOf(t, statusSchema(t), s.facts(nil)); !slices.Equal(r.Degrad.Reasons, want) {
		t.Errorf("%v, want %v", r.Degrad.Reasons, want)
	}
	s.first().Reasons, s.first().Pool.Stopped = 0, false
	for name, holding := range map[string]mirror.Holding{
		"another side's fees":  {Account: sceneFees, Mint: sceneSLUSD, Amount: 7},
		"a stranger's reserve": {Account: sceneReserve, Mint: scene92C, Amount: 7},
	} {
		s.first().Observed = []mirror.Holding{holding}
		f := s.facts(nil)
		if p := &f.Pairs[0]; !slices.Equal(p.Reasons, []string{"onchain_account_refused"}) || p.GuaranteeUSD != 0 || p.Totals.FeesQuote.String() != "0.000050" {
			t.Errorf("%s: %v, %d, %s", name, p.Reasons, p.GuaranteeUSD, p.Totals.FeesQuote)
		}
	}
	s.mirror.State = &mirror.State{At: s.state.At}
	if p := s.facts(nil).Pairs[0]; !slices.Equal(p.Reasons, []string{"chain_not_read_yet"}) || p.Pool != nil || p.Windows.Day.Status != WindowUnproven {
		t.Errorf("of a pair that is not read: %+v", p)
	}
}

// TestMirroredTokens: each token has its mint, its supply and its accounts, each once with
// its latest reading, guarantees first.
func TestMirroredTokens(t *testing.T) {
	s := newChainScene()
	tokenText := func() string {
		var text strings.Builder
		for _, token := range s.facts(nil).Tokens {
			fmt.Fprintf(&text, "%s %d", token.Symbol, token.Decimals)
			if token.Supply != nil {
				fmt.Fprintf(&text, " of %d", *token.Supply)
			}
			for _, a := range token.Accounts {
				fmt.Fprintf(&text, "; %v %d %q %q at %d", a.Role, a.Amount, a.Label, a.PoolLabel, a.Slot-sceneSlot)
			}
			text.WriteByte('\n')
		}
		return text.String()
	}
	const rest = `92C 9 of 9000000000; pool_vault 4000000000 "vault of 92C/SLUSD pool" "92C/SLUSD pool" at 0
`
	const usdc = `USDC 6 of 80000000; fee_vault_quote 7 "fees" "SLUSD/USDC pool" at 0; pool_vault 2000050 "vault of SLUSD/USDC pool" "SLUSD/USDC pool" at 0
`
	const vaults = `; pool_vault 1000000 "vault of 92C/SLUSD pool" "92C/SLUSD pool" at 0; pool_vault 3000100 "vault of SLUSD/USDC pool" "SLUSD/USDC pool" at 0
`
	if got, want := tokenText(), `SLUSD 6 of 70000000; guarantee_reserve 10000001 "the reserve" "" at 0`+vaults+usdc+rest; got != want {
		t.Errorf("the tokens are\n%swant\n%s", got, want)
	}
	// The other pair reads the same reserve one slot later.
	s.mirror.Pairs[0].Observed = []Account{
		{Address: solana.Base58(sceneReserve), Role: GuaranteeReserve, Label: "again"}, {Address: solana.Base58(sceneReserve), Role: DeskInventory},
	}
	k := s.second()
	k.At.Slot, k.QuoteSupply, k.Observed = sceneSlot+1, 69_000_000, []mirror.Holding{{Account: sceneReserve, Mint: sceneSLUSD, Amount: 5}}
	for range 2 { // in either order
		if got := tokenText(); !strings.HasPrefix(got, `SLUSD 6 of 69000000; guarantee_reserve 5 "again" "" at 1; pool_vault`) || strings.Count(got, "reserve") != 1 {
			t.Errorf("the tokens are\n%s", got)
		}
		slices.Reverse(s.mirror.Pairs)
	}
	s.first().Reasons, s.second().Reasons = mirror.Reasons(0).With(mirror.NotRead), mirror.Reasons(0).With(mirror.NotRead)
	if got := tokenText(); got != "SLUSD 6\nUSDC 6\n92C 9\n" {
		t.Errorf("before anything is read the tokens are\n%s", got)
	}
}

// TestSettlementReadsObserved: an account that a pair's configuration describes keeps its role
// where settlement has read it later.
func TestSettlementReadsObserved(t *testing.T) {
	s := newChainScene()
	in := s.input(nil)
	in.Tokens = []Token{{Symbol: "SLUSD", Decimals: 6, Mint: solana.Base58(sceneSLUSD)}}
	in.Settlement = &Settlement{Balances: []desk.Balance{
		{Asset: "SLUSD", Mint: solana.Base58(sceneSLUSD), Atoms: 5, Account: sceneReserve, Supply: 60, Slot: sceneSlot + 1},
	}}
	a := NewFacts(in).Tokens[0].Accounts[0]
	if a.Role != GuaranteeReserve || a.Label != "the reserve" || a.Amount != 5 || a.Slot != sceneSlot+1 {
		t.Errorf("the reserve is %+v", a)
	}
}

// TestSettlementTokens: where no market is mirrored, supplies and the desk's accounts are
// those that settlement has read.
func TestSettlementTokens(t *testing.T) {
	s := newChainScene()
	s.mirror = Mirror{}
	in := s.input(nil)
	in.Tokens = []Token{{Symbol: "SLUSD", Decimals: 6, Mint: solana.Base58(sceneSLUSD)}, {Symbol: "92C", Decimals: 9}}
	in.Settlement = &Settlement{Balances: []desk.Balance{
		{Asset: "SOL", Atoms: 7, Slot: sceneSlot},
		{Asset: "SLUSD", Mint: solana.Base58(sceneSLUSD), Atoms: 5, Account: sceneReserve, Supply: 60, Slot: sceneSlot},
		{Asset: "stranger", Mint: solana.Base58(scene92C), Atoms: 9, Supply: 90, Slot: sceneSlot},
	}}
	tokens := NewFacts(in).Tokens
	if t0 := &tokens[0]; t0.Supply == nil || *t0.Supply != 60 || len(t0.Accounts) != 1 ||
		t0.Accounts[0] != (Account{Address: solana.Base58(sceneReserve), Amount: 5, Role: DeskInventory, Label: "desk", Slot: sceneSlot}) {
		t.Errorf("the base token is %+v", t0)
	}
	if t1 := &tokens[1]; t1.Supply != nil || len(t1.Accounts) != 0 {
		t.Errorf("a token without a mint is %+v", t1)
	}
}

// TestMirroredSnapshots: each snapshot has its own time and is in dollars; raw fees are
// unchanged, and the newest snapshot determines the public totals.
func TestMirroredSnapshots(t *testing.T) {
	s := newChainScene()
	recorded := mirror.Snapshot{
		At: sceneSecond, Slot: sceneSlot, BaseBalance: 3_000_100, QuoteBalance: 2_000_050, BaseFees: 100, QuoteFees: 50,
		Swaps: 7, Base: market.Uint128{Lo: 9_000_000}, Quote: market.Uint128{Lo: 6_000_000}, Traders: 3,
	}
	for i := range maxSnapshots + 1 {
		r := recorded
		r.At -= int64(i) * 3600
		s.first().Swaps.Snapshots = append(s.first().Swaps.Snapshots, r)
	}
	f := s.facts(nil)
	if len(f.Snapshots) != maxSnapshots || f.Snapshots[0].At <= f.Snapshots[1].At || f.Snapshots[1].At <= f.Snapshots[2].At {
		t.Fatalf("%d snapshots", len(f.Snapshots))
	}
	got := f.Snapshots[1] // the first one is the present
	// 100 atoms of SLUSD at 0.666666666 are 66.67 of a dollar; 50 of USDC are 75 of
	// SLUSD.
	if got.Price != 666_666_666 || got.VolumeUSD != 6_000_000 || got.FeesUSD != 66+50 || got.FeesTokens.String() != "0.000175" ||
		got.VolumeTokens.String() != "9.000000" || got.Swaps != 7 || got.Traders != 3 || got.FeeBps != 500 {
		t.Errorf("the snapshot is %+v", got)
	}
	if got.Key != "20261120T115958Z" || got.Label != "2026-11-20 11:59 UTC" || got.Heading != "SLUSD/USDC at slot 330442322" || got.Reference != "slot 330442322" {
		t.Errorf("it is called %q, %q, %q, %q", got.Key, got.Label, got.Heading, got.Reference)
	}
	if got.BaseVault.String() != "3.000100" || got.UserBase.String() != "0.000100" || got.TotalBase != got.BaseVault || got.UserQuote.String() != "0.000050" {
		t.Errorf("it holds %+v", got)
	}
	lawful(t, statusSchema(t), "with snapshots", f)
	if none := s.mirror.pairs()[1].snapshots(Time(factsNow), 0, 500); none != nil {
		t.Errorf("without a price: %v", none)
	}
	s.first().Swaps.Snapshots = []mirror.Snapshot{{At: sceneSecond, Slot: 1, BaseFees: 0}}
	if empty := s.facts(nil).Snapshots[1]; empty.Price != 0 || empty.FeesUSD != 0 {
		t.Errorf("of an empty pool: %+v", empty)
	}
}

// TestPresentSnapshot: the active snapshot is the present state of the pool, so the public
// totals never lag the windows, whenever a snapshot was recorded last.
func TestPresentSnapshot(t *testing.T) {
	s := newChainScene()
	w := &s.first().Swaps
	w.Snapshots = []mirror.Snapshot{{At: sceneSecond - 3600, Slot: 1, BaseBalance: 1, QuoteBalance: 1}, {At: factsNow / int64(time.Second), Slot: 2}}
	slices.Reverse(w.Snapshots)
	w.Rolling.Totals = mirror.Totals{Swaps: 8, Quote: market.Uint128{Lo: 705_000_049}, Base: market.Uint128{Lo: 700_000_000}}
	w.Reconstructed = mirror.Snapshot{Swaps: 2, Quote: market.Uint128{Lo: 95_000_000}, QuoteFees: 7}
	w.Traders = 1
	f := s.facts(nil)
	if len(f.Snapshots) != 2 || f.Snapshots[0].Source != presentSource || f.Snapshots[1].Source != snapshotSource {
		t.Fatalf("the snapshots are %+v", f.Snapshots)
	}
	got := newStatusTotals(f, f.canonical())
	if got.Swaps != 10 || got.Volume.String() != "800.000049" || got.Traders != 1 {
		t.Errorf("the totals are %d swaps of %s by %d", got.Swaps, got.Volume, got.Traders)
	}
	// The pool owes 100 atoms of SLUSD at 0.666666666 and 50 of USDC. The fees in vaults of
	// their own, and volume × fee rate, were not paid to this pool.
	if got.Fees.String() != "0.000116" || got.FeesReconstructed.String() != "0.000007" {
		t.Errorf("the fees are %s, reconstructed %s", got.Fees, got.FeesReconstructed)
	}
	s.first().Reasons = mirror.Reasons(0).With(mirror.Stale)
	if old := s.facts(nil).Snapshots[0].At; old != Time(s.first().ReadAt.Unix()*int64(time.Second)) && old != Time(factsNow/int64(time.Second)*int64(time.Second)) {
		t.Errorf("a reading that is not current has the time %v", old)
	}
	s.first().Reasons = mirror.Reasons(0).With(mirror.NotRead)
	if snapshots := s.facts(nil).Snapshots; len(snapshots) != 2 || snapshots[0].Source != snapshotSource {
		t.Errorf("before the first reading: %+v", snapshots)
	}
}

// TestStaleWindows: from the moment in which the chain is not in sync no window is exact.
func TestStaleWindows(t *testing.T) {
	s := newChainScene()
	w := &s.first().Swaps.Rolling
	w.Day, w.Week = sceneWindow(10_000_000, 998_000), sceneWindow(10_000_000, 998_000)
	if day := s.facts(nil).Pairs[0].Windows.Day; day.Status != WindowExact || day.VolumeUSD != 10_000_000 {
		t.Fatalf("the window is %+v", day)
	}
	s.first().Reasons = mirror.Reasons(0).With(mirror.Stale)
	f := s.facts(nil)
	for _, got := range []Window{f.Pairs[0].Windows.Day, f.Pairs[0].Windows.Week} {
		if got.Status != WindowUnproven || got.Why != "not_synced_to_chain" || got.VolumeUSD != 0 || got.DeltaPercent != nil {
			t.Errorf("the window is %+v", got)
		}
	}
	if r := degradedBy(f, &f.Pairs[0]); !slices.Contains(r, reasonNotSynced) {
		t.Errorf("the reasons are %v", r)
	}
}

// TestPoolWithoutBook: the source of a pair without a book is its pool, and what is visible
// is what its vaults hold.
func TestPoolWithoutBook(t *testing.T) {
	s := newChainScene()
	s.mirror.Pairs[1].Book = false
	s.first().Price, s.views[0] = mirror.PoolPrice, nil
	f := s.facts(nil)
	p := &f.Pairs[0]
	if got := p.source(); got != "mirrored_pool" || f.Pairs[1].source() != "mirrored_book" {
		t.Errorf("the sources are %s and %s", got, f.Pairs[1].source())
	}
	if want := poolLiquidity(f, p); want == nil || dollars(p.VisibleUSD) != *want || p.VisibleUSD == 0 {
		t.Errorf("visible are %d, the pool has %v", p.VisibleUSD, want)
	}
	s.first().Reasons = mirror.Reasons(0).With(mirror.Stale)
	if p = &s.facts(nil).Pairs[0]; p.VisibleUSD != 0 {
		t.Errorf("of an old reading %d is visible", p.VisibleUSD)
	}
}

// TestMirroredChain: the chain's state is that of the canonical pair's reading, and nodes
// are named without their URLs.
func TestMirroredChain(t *testing.T) {
	type chain struct {
		synced   bool
		slot     uint64
		failover bool
		reasons  string
	}
	for name, c := range map[string]struct {
		change func(s *chainScene)
		want   chain
	}{
		"well":        {func(*chainScene) {}, chain{true, sceneSlot, false, ""}},
		"other stale": {func(s *chainScene) { s.second().Reasons = mirror.Reasons(0).With(mirror.Stale) }, chain{true, sceneSlot, false, ""}},
		"stale": {func(s *chainScene) {
			s.first().Reasons, s.second().At.Slot = mirror.Reasons(0).With(mirror.Stale), sceneSlot+2
		}, chain{false, sceneSlot, false, ""}},
		"not read": {func(s *chainScene) { s.first().Reasons = mirror.Reasons(0).With(mirror.NotRead) }, chain{false, 0, false, ""}},
		"own, other read": {func(s *chainScene) {
			s.instruments[0].Source = market.Matched
			s.state.Slot++
		}, chain{true, sceneSlot + 1, false, ""}},
		"failover": {func(s *chainScene) { s.state.Failover, s.state.Active = true, "two.example" }, chain{true, sceneSlot, true, "rpc_failover_active"}},
		"no node":  {func(s *chainScene) { s.state.Active = "" }, chain{true, sceneSlot, false, "no_rpc_upstream_answers"}},
	} {
		s := newChainScene()
		c.change(s)
		f := s.facts(nil)
		got := chain{f.Chain.Synced, f.Chain.Slot, f.Chain.Failover, strings.Join(f.Chain.Reasons, " ")}
		if got != c.want || !f.Chain.Configured || (f.Chain.SlotBehind == nil) != (got.slot == 0) {
			t.Errorf("%s: %+v, want %+v", name, f.Chain, c.want)
		}
		lawful(t, statusSchema(t), name, f)
	}
	s := newChainScene()
	s.first().Swaps.Newest.Signature = solana.Signature{0: 5}
	s.state.Upstreams[0].Refused = errors.New("mirror: an answer from the past")
	c := s.facts(nil).Chain
	if c.LastSig != solana.Base58(solana.Signature{0: 5}) || c.Primary != "one.example" || !slices.Equal(c.Fallbacks, []string{"two.example"}) ||
		c.Active != "one.example" || *c.LatencyMS != 80 || *c.SlotBehind != 3 || c.MaxSlot != sceneSlot+3 {
		t.Errorf("the chain is %+v", c)
	}
	if one, two := c.Providers[0], c.Providers[1]; one.LastError != "mirror: an answer from the past" || !one.Available || two.LastError != "timeout" ||
		two.LatencyMS != nil || two.LastOkAt != 0 {
		t.Errorf("the nodes are %+v", c.Providers)
	}
}
