package demo

import (
	"log/slog"
	"testing"
	"time"

	"blockdesk/internal/sandbox"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/pyth"
	"blockdesk/internal/solana/rpc"
	"blockdesk/service/config"
	"blockdesk/service/servicetest"
)

// startManual starts a chain with the demo's keys that ends with the test; its slots pass by
// sandbox_advance only.
func startManual(t *testing.T) *sandbox.Node {
	t.Helper()
	node, err := StartSandbox(t.Context(), sandbox.Options{Dir: servicetest.LocalChain(t), SetupDir: t.TempDir(), ManualSlots: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := node.Stop(); err != nil {
			t.Error(err)
		}
	})
	return node
}

// TestOracle: the accounts on the demo's chain are what the rules of its prices read.
func TestOracle(t *testing.T) {
	t.Parallel()
	node := startManual(t)
	if err := NewOracle(node, slog.New(slog.DiscardHandler)).publish(t.Context()); err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	cfg.Demo, cfg.Prices = true, priceRules(&cfg)
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	assets, err := cfg.PriceAssets()
	if err != nil || len(assets) != len(quotedAssets) {
		t.Fatalf("%+v, %v", assets, err)
	}
	o := rpc.DefaultOptions()
	o.Upstreams = []rpc.Upstream{{URL: node.URL()}}
	o.Timeout, o.AttemptTimeout = time.Minute, time.Minute
	client, err := rpc.New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, a := range assets {
		accounts, _, err := client.Accounts(t.Context(), []solana.Address{a.Account}, rpc.Confirmed, 0)
		if err != nil {
			t.Fatal(err)
		}
		u, err := pyth.Read(accounts[0], solana.PythReceiverProgram, a.FeedID)
		if err != nil || time.Since(time.Unix(u.PublishedAt, 0)) > time.Minute {
			t.Errorf("%s: %+v, %v", a.Name, u, err)
		}
	}
}

// TestOracleMoves: a price moves, and stays near its home for a day.
func TestOracleMoves(t *testing.T) {
	o := NewOracle(nil, nil)
	for i, q := range quotedAssets {
		low, high := q.home, q.home
		for range 86_400 {
			o.prices[i] = o.moved(i)
			low, high = min(low, o.prices[i]), max(high, o.prices[i])
		}
		if low < q.home*95/100 || high > q.home*105/100 || q.step > 0 && high-low < q.home/1000 {
			t.Errorf("%s: %d to %d", q.name, low, high)
		}
	}
}
