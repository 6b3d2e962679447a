package proof

import (
	"errors"
	"testing"
	"time"

	"blockdesk/internal/solana"
	"blockdesk/market"
)

// TestOptions: what works, and what does not.
func TestOptions(t *testing.T) {
	good := func() (o Options) {
		o.Rails[market.RailUSDC] = Rail{Mint: fakeMint(t), Treasury: []solana.Address{{1}}}
		o.Rails[market.RailSOL] = Rail{Treasury: []solana.Address{{1}}}
		return o
	}
	wallets := func(n int) (list []solana.Address) {
		for i := range n {
			list = append(list, solana.Address{byte(i + 1)})
		}
		return list
	}
	for _, row := range []struct {
		name   string
		change func(o *Options)
		good   bool
	}{
		{"both rails", func(*Options) {}, true},
		{"USDC alone", func(o *Options) { o.Rails[market.RailSOL] = Rail{} }, true},
		{"SOL alone", func(o *Options) { o.Rails[market.RailUSDC] = Rail{} }, true},
		{"no rail", func(o *Options) { o.Rails = [market.RailCount]Rail{} }, false},
		{"rail 0", func(o *Options) { o.Rails[0].Treasury = wallets(1) }, false},
		{"USDC without mint", func(o *Options) { o.Rails[market.RailUSDC].Mint = Rail{}.Mint }, false},
		{"SOL with a mint", func(o *Options) { o.Rails[market.RailSOL].Mint = fakeMint(t) }, false},
		{"as many wallets as may be", func(o *Options) { o.Rails[market.RailSOL].Treasury = wallets(MaxWallets) }, true},
		{"a wallet too many", func(o *Options) { o.Rails[market.RailSOL].Treasury = wallets(MaxWallets + 1) }, false},
		{"another wallet too many", func(o *Options) { o.Wallets = wallets(MaxWallets + 1) }, false},
		{"the zero wallet", func(o *Options) { o.Wallets = []solana.Address{{}} }, false},
		{"a wallet twice", func(o *Options) { o.Wallets = append(wallets(1), wallets(1)...) }, false},
		{"the treasury among the others", func(o *Options) { o.Wallets = wallets(1) }, true},
		{"an hour of tolerance", func(o *Options) { o.ClockTolerance = time.Hour }, true},
		{"more than an hour", func(o *Options) { o.ClockTolerance = time.Hour + 1 }, false},
		{"a negative pace", func(o *Options) { o.WatchEvery = -1 }, false},
		{"a negative number of readings", func(o *Options) { o.MaxReading = -1 }, false},
		{"as many readers as may be", func(o *Options) { o.Readers = MaxReaders }, true},
		{"a reader too many", func(o *Options) { o.Readers = MaxReaders + 1 }, false},
	} {
		o := good()
		row.change(&o)
		_, err := New(o, newFake(), nil, newMemStore())
		if (err == nil) != row.good || err != nil && !errors.Is(err, ErrOptions) {
			t.Errorf("%s: %v", row.name, err)
		}
	}
	o := good()
	o.Wallets = append(wallets(2), solana.Address{9})
	if list := o.ours(); len(list) != 3 {
		t.Errorf("ours: %d", len(list))
	}
	places, err := o.destinations()
	if err != nil || len(places) != 2 || places[0].target.PayTo != fakeCoin.of(solana.Address{1}) || places[1].target.PayTo != (solana.Address{1}) {
		t.Errorf("%+v, %v", places, err)
	}
}
