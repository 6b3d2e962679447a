package rfq

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"blockdesk/internal/runtest"
	"blockdesk/market"
)

func TestCorridor(t *testing.T) {
	for _, c := range []struct {
		anchor          market.USDPrice
		bps             uint16
		lowest, highest market.USDPrice
	}{
		{0, 100, 0, 0},
		{1, 1, 1, 1},
		{10_000, 1, 9_999, 10_001},
		{10_001, 1, 10_000, 10_002},
		{1_000_000_000, 9_999, 100_000, 1_999_900_000},
		{market.MaxUSDPrice, 5_000, market.MaxUSDPrice / 2, market.MaxUSDPrice / 2 * 3},
	} {
		lowest, highest := Corridor(&Pair{Anchor: c.anchor, CorridorBps: c.bps})
		if lowest != c.lowest || highest != c.highest {
			t.Errorf("%d by %d: %d to %d", c.anchor, c.bps, lowest, highest)
		}
	}
	if lowest, highest := Corridor(&Pair{Anchor: ^market.USDPrice(0), CorridorBps: 9_999}); lowest != 0 || highest != 0 {
		t.Errorf("past what there is: %d to %d", lowest, highest)
	}
}

// TestPriceArithmetic compares every step with rational numbers.
func TestPriceArithmetic(t *testing.T) {
	whole := func(v uint64) *big.Int { return new(big.Int).SetUint64(v) }
	divide := func(up bool, n, d *big.Int) *big.Int {
		q, r := new(big.Int).QuoRem(n, d, new(big.Int))
		if up && r.Sign() != 0 {
			q.Add(q, whole(1))
		}
		return q
	}
	rapid.Check(t, func(t *rapid.T) {
		ref := market.USDPrice(rapid.Uint64Range(1, 2*uint64(market.MaxUSDPrice)).Draw(t, "reference"))
		f := market.FillUSD(rapid.Uint8Range(1, market.FillCount).Draw(t, "fill"))
		var p Policy
		p.Discounts[f-1] = rapid.Uint16Range(0, market.MaxBps-1).Draw(t, "discount")
		decimals := rapid.Uint8Range(0, maxBaseDecimals).Draw(t, "decimals")

		price := p.Price(ref, f)
		want := divide(true, new(big.Int).Mul(whole(uint64(ref)), whole(market.MaxBps-uint64(p.Discounts[f-1]))), whole(market.MaxBps))
		if price == 0 || whole(uint64(price)).Cmp(want) != 0 {
			t.Fatalf("price %d, want %v", price, want)
		}

		// fill / 10^6 dollars ÷ price / 10^9 dollars × 10^decimals atoms
		base, ok := baseFor(f, price, decimals)
		want = divide(false, new(big.Int).Mul(whole(uint64(f.USD())), whole(market.Pow10(int(decimals)+3))), whole(uint64(price)))
		if fits := want.Sign() > 0 && want.IsUint64(); ok != fits || ok && base != want.Uint64() {
			t.Fatalf("base %d %v, want %v", base, ok, want)
		}

		sol := rapid.Uint64Range(1, uint64(market.MaxUSDPrice)).Draw(t, "sol")
		paid, ok := paymentFor(f, market.RailSOL, market.USDPrice(sol))
		want = divide(true, new(big.Int).Mul(whole(uint64(f.USD())), whole(1_000_000_000_000)), whole(sol))
		if ok != want.IsUint64() || ok && paid != want.Uint64() || ok && paid == 0 {
			t.Fatalf("SOL %d %v, want %v", paid, ok, want)
		}
		if usdc, ok := paymentFor(f, market.RailUSDC, 0); !ok || usdc != uint64(f.USD()) {
			t.Fatalf("USDC %d", usdc)
		}
	})
}

func TestPriceOfNoPolicy(t *testing.T) {
	p := Policy{Discounts: [market.FillCount]uint16{market.MaxBps + 1}}
	if got := p.Price(^market.USDPrice(0), 1); got != 0 {
		t.Errorf("a discount above the whole: %d", got)
	}
}

// TestLateSOL: a late SOL payment is accepted while it is worth the fill less the corridor,
// and refused below; between the two are at most the two atoms by which roundings favour
// the desk.
func TestLateSOL(t *testing.T) {
	taken := map[bool]int{}
	runtest.CheckUntil(t, func() bool { return len(taken) == 2 }, func(t *rapid.T) {
		pair := testPair(0)
		pair.CorridorBps = rapid.Uint16Range(1, market.MaxBps-1).Draw(t, "corridor")
		terms := Terms{Fill: market.FillUSD(rapid.IntRange(1, 6).Draw(t, "fill")), Rail: market.RailSOL}
		then := rapid.Uint64Range(1_000_000, 1_000_000_000_000).Draw(t, "then")
		edge := then * (market.MaxBps - uint64(pair.CorridorBps)) / market.MaxBps
		now := max(1, rapid.OneOf(
			rapid.Uint64Range(1, 2*then), rapid.Uint64Range(edge-min(edge, 2), edge+2),
		).Draw(t, "now"))
		terms.Payment, _ = paymentFor(terms.Fill, terms.Rail, market.USDPrice(then))
		o := pricing{rails: []RailPrice{{Rail: market.RailSOL, Price: market.USDPrice(now)}}}
		ok := o.checkPaymentValue(&pair, &terms).reason == 0
		taken[ok]++
		// Both sides in 10^-18 dollars and 10^-4.
		worth := func(atoms uint64) *big.Int {
			n := new(big.Int).Mul(new(big.Int).SetUint64(atoms), new(big.Int).SetUint64(now))
			return n.Mul(n, big.NewInt(market.MaxBps))
		}
		least := new(big.Int).Mul(big.NewInt(int64(terms.Fill.USD())), big.NewInt(1_000_000_000_000))
		least.Mul(least, big.NewInt(market.MaxBps-int64(pair.CorridorBps)))
		if ok && worth(terms.Payment).Cmp(least) < 0 {
			t.Fatalf("%d atoms were taken", terms.Payment)
		}
		if _, fits := paymentFor(terms.Fill, terms.Rail, market.USDPrice(now)); fits && !ok && worth(terms.Payment-2).Cmp(least) >= 0 {
			t.Fatalf("%d atoms were refused", terms.Payment)
		}
	})
}
