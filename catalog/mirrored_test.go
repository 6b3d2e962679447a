package catalog

import (
	"slices"
	"testing"

	"blockdesk/feed/archive"
	"blockdesk/market"
)

// TestPoolNotRead: documents publish the address of a pool that was not read yet, and no
// balance.
func TestPoolNotRead(t *testing.T) {
	f := live()
	p := f.Pairs[0].Pool
	f.Pairs[0].Pool = &Pool{Address: p.Address, Program: p.Program, Layout: p.Layout, BaseMint: p.BaseMint, QuoteMint: p.QuoteMint}
	status := Status(f, "svc_market_status_v1").(*statusRecord)
	if status.Pool != nil || status.PoolID != p.Address {
		t.Errorf("the status has the pool %q and the state %+v", status.PoolID, status.Pool)
	}
	if pools := Pools(f, "").(*poolList); pools.Count != 0 {
		t.Errorf("pools: %+v", pools)
	}
	if _, ok := PoolByAddress(f, PoolSchema, p.Address); ok {
		t.Error("the pool has a record")
	}
	if registry := PoolRegistry(f, "").(*poolRegistry); registry.Count != 1 || registry.Pools[0].Pool != p.Address {
		t.Errorf("the registry: %+v", registry)
	}
	if poolLiquidity(f, &f.Pairs[0]) != nil || len(Proof(f, "").(*proofDocument).Subject.Pools) != 0 {
		t.Error("the pool has liquidity or a proof")
	}
}

// TestPaidFees: the public fees of a mirrored pair are those that the active snapshot
// recorded, whatever the volume is; of a matched pair those of settled claims. Raw chain
// fees stay apart, and a book that takes no fee says 0 in every document.
func TestPaidFees(t *testing.T) {
	f := live()
	f.Pairs[0].Source = market.Mirrored
	for _, c := range []struct {
		recorded market.USD
		status   string
	}{{600_000_120, coherent}, {600_000_121, mismatch}, {0, mismatch}} {
		f.Snapshots[1].FeesUSD = c.recorded
		if s := newStatusSnapshots(f); s.Current.Coherence.Status != c.status || s.Current.Fees != dollars(c.recorded) {
			t.Errorf("%d: the snapshot is %+v", c.recorded, s.Current.snapshotRecord)
		}
		if got := newStatusTotals(f, f.canonical()); got.Fees != dollars(c.recorded) || got.FeesOnchainRaw.String() != "7.750000" {
			t.Errorf("%d: public fees are %s, raw %s", c.recorded, got.Fees, got.FeesOnchainRaw)
		}
	}
	f.Snapshots = nil
	if got := newStatusTotals(f, f.canonical()).Fees; got != dollars(0) {
		t.Errorf("without a snapshot the fees are %s", got)
	}
	f.Pairs[0].Source = market.Matched
	got := newStatusTotals(f, f.canonical())
	if want := dollars(f.Desk.FeesUSD); got.Fees != want || got.FeesPaid != want || got.FeesCollected != want || want == dollars(0) {
		t.Errorf("the fees are %s, paid %s, collected %s, want %s", got.Fees, got.FeesPaid, got.FeesCollected, want)
	}
	if latest, _ := LatestFees(f, "").(*latestFees); latest.Fees != got.Fees {
		t.Errorf("the latest fees are %s", latest.Fees)
	}

	screener, _ := ScreenerPairByID(f, "92C_SLUSD")
	assets, _ := CoinMarketCapAssets(f, "").(*map[string]capAsset)
	if screener.Pair.FeeBps != 0 || newPairRecord(f, &f.Pairs[1]).FeeBps != 0 || (*assets)["92C"].MakerFee != 0 {
		t.Error("a book that takes no fee says that it does")
	}
	if string(Encode(screener)) != `{"pair":{"id":"92C_SLUSD","dexKey":"blockdesk","asset0Id":"A2qZvQ5dfYP6TFecjFkqJ1i9n5EnS3hFfSiZYWFHXzge","asset1Id":"DUw5U71V3NiRQgmTaZrxqQsn7qkvVR3wSN4iJ4PY8ESN","feeBps":0}}` {
		t.Errorf("a pair of unknown age is %s", Encode(screener))
	}
	f.Pairs[0].Defined = &archive.Definition{Seq: 12, At: 1_795_000_000_999_999_999}
	screener, _ = ScreenerPairByID(f, "SLUSD_USDC")
	if p := &screener.Pair; p.CreatedBlock != 12 || p.CreatedAt != 1_795_000_000 || p.CreatedTxn != "12" {
		t.Errorf("the pair was created at %+v", p)
	}
	if screener.Pair.FeeBps != 25 || newPairRecord(f, &f.Pairs[0]).FeeBps != 25 || (*assets)["USDC"].TakerFee != 25 {
		t.Error("the pool's own fee is not published")
	}
}

// TestPairReasons: a pair has its own reasons and those of all pairs, each once.
func TestPairReasons(t *testing.T) {
	f := live()
	f.Chain.Reasons = []string{"of_all"}
	f.Pairs[0].Reasons = []string{"of_all", reasonHalted, "of_one"}
	f.Pairs[0].Halted, f.Pairs[1].PriceUSD = true, 1
	f.Pairs[1].Windows.LastAt = f.At // traded on chain, not yet in the engine
	if got := degradedBy(f, &f.Pairs[0]); !slices.Equal(got, []string{"of_all", reasonHalted, "of_one"}) {
		t.Errorf("the first pair's: %v", got)
	}
	if got := degradedBy(f, &f.Pairs[1]); !slices.Equal(got, []string{"of_all"}) {
		t.Errorf("the second pair's: %v", got)
	}
	w := Window{Status: WindowUnproven}
	if got := w.status(""); got != statusUnproven {
		t.Errorf("unproven is %s", got)
	}
	if w.Why = "not_synced_to_chain"; w.status("") != w.Why || w.brief() == statusExact {
		t.Errorf("unproven is %s", w.status(""))
	}
}
