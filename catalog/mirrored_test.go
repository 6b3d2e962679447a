package catalog

import (
	"slices"
	"testing"

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

// TestRawFeesAreNotPromoted: recorded fees that do not match their volume stay in the
// snapshot. The public totals have volume × fee rate (docs/specification.md 2.6).
func TestRawFeesAreNotPromoted(t *testing.T) {
	f := live()
	for _, c := range []struct {
		raw          market.USD
		status, fees string
	}{
		{600_000_120, coherent, "600.000120"}, // 120 swaps of 12,000 dollars, each rounded by a millionth
		{600_000_121, mismatch, "600.000000"},
		{0, mismatch, "600.000000"},
	} {
		f.Snapshots[1].FeesUSD = c.raw
		s := newStatusSnapshots(f)
		if s.Current.Coherence.Status != c.status || s.Current.Fees != dollars(c.raw) {
			t.Errorf("%d: the snapshot is %+v", c.raw, s.Current.snapshotRecord)
		}
		if got := newStatusTotals(f, f.canonical()).Fees.String(); got != c.fees {
			t.Errorf("%d: public fees are %s, want %s", c.raw, got, c.fees)
		}
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
