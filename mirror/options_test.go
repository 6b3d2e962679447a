package mirror_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
	"blockdesk/mirror"
)

// scenePairOf returns the scenes' pool as a pair without a book.
func scenePairOf(id market.InstrumentID) mirror.Pair {
	in := pair("AAA", "BBB", 6, 6)
	in.ID, in.Source = id, market.Mirrored
	return mirror.Pair{
		Instrument: in,
		Base:       mirror.Coin{Mint: sceneKey(keyBaseMint), Decimals: 6}, Quote: mirror.Coin{Mint: sceneKey(keyQuoteMint), Decimals: 6},
		Pool: mirror.PoolListing{Pool: sceneKey(keyPool), BaseVault: sceneKey(keyBaseVault), QuoteVault: sceneKey(keyQuoteVault)},
	}
}

// TestOptions tests each limit at its bound and beyond.
func TestOptions(t *testing.T) {
	for name, c := range map[string]struct {
		change func(o *mirror.Options)
		want   error
	}{
		"as they are":       {func(*mirror.Options) {}, nil},
		"nothing":           {func(o *mirror.Options) { *o = mirror.Options{} }, nil},
		"as many pairs":     {func(o *mirror.Options) { o.Pairs = manyPairs(mirror.MaxPairs) }, nil},
		"one more pair":     {func(o *mirror.Options) { o.Pairs = manyPairs(mirror.MaxPairs + 1) }, mirror.ErrOptions},
		"as many accounts":  {func(o *mirror.Options) { o.Pairs[0].Observed = make([]solana.Address, mirror.MaxObserved) }, nil},
		"one more account":  {func(o *mirror.Options) { o.Pairs[0].Observed = make([]solana.Address, mirror.MaxObserved+1) }, mirror.ErrOptions},
		"as many levels":    {func(o *mirror.Options) { o.Pairs[0].Book.Levels = mirror.MaxShownLevels }, nil},
		"one more level":    {func(o *mirror.Options) { o.Pairs[0].Book.Levels = mirror.MaxShownLevels + 1 }, mirror.ErrOptions},
		"no instrument":     {func(o *mirror.Options) { o.Pairs[0].Instrument = nil }, mirror.ErrOptions},
		"a matched one":     {func(o *mirror.Options) { o.Pairs[0].Instrument.Source = market.Matched }, mirror.ErrOptions},
		"one twice":         {func(o *mirror.Options) { o.Pairs = append(o.Pairs, o.Pairs[0]) }, mirror.ErrOptions},
		"nothing to read":   {func(o *mirror.Options) { o.Pairs[0].Pool = mirror.PoolListing{} }, mirror.ErrOptions},
		"one mint":          {func(o *mirror.Options) { o.Pairs[0].Quote = o.Pairs[0].Base }, mirror.ErrListing},
		"a negative time":   {func(o *mirror.Options) { o.Every = -1 }, mirror.ErrOptions},
		"a short reach":     {func(o *mirror.Options) { o.Lookback = mirror.Week }, mirror.ErrOptions},
		"all of the past":   {func(o *mirror.Options) { o.Lookback = -1 }, nil},
		"a long reach":      {func(o *mirror.Options) { o.Lookback = mirror.Week + mirror.Day }, nil},
		"no such level":     {func(o *mirror.Options) { o.Commitment = rpc.Finalized + 1 }, mirror.ErrOptions},
		"as many asks":      {func(o *mirror.Options) { o.MaxAttempts = mirror.MaxAttempts }, nil},
		"one more ask":      {func(o *mirror.Options) { o.MaxAttempts = mirror.MaxAttempts + 1 }, mirror.ErrOptions},
		"a negative number": {func(o *mirror.Options) { o.MaxAttempts = -1 }, mirror.ErrOptions},
	} {
		o := mirror.Options{Pairs: manyPairs(1), Every: time.Second}
		c.change(&o)
		if err := o.Validate(); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func manyPairs(n int) []mirror.Pair {
	list := make([]mirror.Pair, n)
	for i := range list {
		list[i] = scenePairOf(market.InstrumentID(i))
	}
	return list
}

// TestReasons: each reason has its own string.
func TestReasons(t *testing.T) {
	if words := mirror.Reasons(0).Words(); words == nil || len(words) != 0 {
		t.Errorf("none: %q", words)
	}
	all := mirror.Reasons(0)
	for r := mirror.VaultPrice; r <= mirror.Failover; r++ {
		if all.Has(r) {
			t.Errorf("%v is there before it is put in", r)
		}
		all = all.With(r)
	}
	words := all.Words()
	if len(words) != int(mirror.Failover) || words[0] != "live_price_using_verified_vault_snapshot" || slices.Contains(words, mirror.Reason(0).String()) {
		t.Errorf("%q", words)
	}
	slices.Sort(words)
	if len(slices.Compact(words)) != int(mirror.Failover) {
		t.Errorf("two have one word: %q", words)
	}
}
