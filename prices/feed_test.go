package prices

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/pyth"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
)

// chain is a set of nodes, each with its own account of a price feed.
type chain struct {
	sync.Mutex                       // the test's, but while virtual time passes
	nodes      []func() *rpc.Account // nil: the node answers with an error
}

var (
	errBusy = errors.New("429")
	feedID  = pyth.Feed{1}
	account = solana.Address{2}
)

func (c *chain) Upstreams() int {
	c.Lock()
	defer c.Unlock()
	return len(c.nodes)
}

func (c *chain) AccountsFromEach(_ context.Context, list []solana.Address, _ rpc.Commitment, _ uint64) ([]rpc.NodeAccounts, error) {
	c.Lock()
	defer c.Unlock()
	var out []rpc.NodeAccounts
	for _, node := range c.nodes {
		if node == nil {
			out = append(out, rpc.NodeAccounts{Err: errBusy})
			continue
		}
		accounts := make([]*rpc.Account, len(list))
		accounts[slices.Index(list, account)] = node()
		out = append(out, rpc.NodeAccounts{Accounts: accounts})
	}
	return out, nil
}

// saying returns a node whose account has a price that Pyth has just published.
func saying(price market.USDPrice) func() *rpc.Account {
	return func() *rpc.Account { return updated(price, time.Now()) }
}

func updated(price market.USDPrice, at time.Time) *rpc.Account {
	u := pyth.Update{Feed: feedID, Price: price, Confidence: price / 1000, PublishedAt: at.Unix()}
	return &rpc.Account{Address: account, Owner: solana.PythReceiverProgram, Data: pyth.Append(nil, u, solana.Address{})}
}

// rig is a feed on virtual time, with the judgements that it has published.
type rig struct {
	*chain
	feed      *Feed
	published []Judgement
	refuse    error
}

// run runs body beside a feed of one asset.
func run(t *testing.T, asset Asset, body func(r *rig)) {
	synctest.Test(t, func(t *testing.T) {
		r := &rig{chain: &chain{}}
		asset.Name, asset.Account, asset.FeedID = "SOL", account, feedID
		var err error
		r.feed, err = NewFeed(Options{Assets: []Asset{asset}, Nodes: r.chain, Logger: slog.New(slog.DiscardHandler), Publish: func(_ context.Context, _ int, j Judgement) error {
			if r.refuse == nil {
				r.published = append(r.published, j)
			}
			return r.refuse
		}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		r.Lock()
		go r.feed.Run(ctx)
		body(r)
		r.Unlock()
		stop()
		synctest.Wait()
	})
}

// after lets virtual seconds pass and returns the last judgement published.
func (r *rig) after(seconds int) Judgement {
	r.Unlock()
	time.Sleep(time.Duration(seconds)*time.Second + time.Millisecond) // sleep: virtual time
	synctest.Wait()
	r.Lock()
	if len(r.published) == 0 {
		return Judgement{}
	}
	return r.published[len(r.published)-1]
}

var pythOnly = Asset{Rule: Rule{Sources: []Source{Pyth}, MaxAge: 20 * second, MaxSpreadBps: 100, MaxConfidenceBps: 50}}

// TestFeed: a price is published when it moves and often enough to stay young, a fault
// once, and an old price never.
func TestFeed(t *testing.T) {
	run(t, pythOnly, func(r *rig) {
		r.nodes = []func() *rpc.Account{saying(dollars(150))}
		if j := r.after(1); j.Price != dollars(150) || j.Source != Pyth {
			t.Fatalf("%+v", j)
		}
		n := len(r.published)
		r.after(20)
		if got := len(r.published) - n; got < 3 || got > 5 {
			t.Errorf("an unchanged price is published %d times in the 20 s that it may be old", got)
		}
		r.nodes[0] = saying(dollars(151))
		if j := r.after(1); j.Price != dollars(151) {
			t.Errorf("after a move: %+v", j)
		}
		still := time.Now()
		r.nodes[0] = func() *rpc.Account { return updated(dollars(151), still) }
		r.after(30)
		last := r.published[len(r.published)-1]
		if last.Fault != TooOld || last.Price != 0 {
			t.Errorf("of an account that stands still: %+v", last)
		}
		n = len(r.published)
		if r.after(30); len(r.published) != n {
			t.Errorf("a fault is published %d times more", len(r.published)-n)
		}
		r.nodes[0] = saying(dollars(152))
		if j := r.after(1); j.Price != dollars(152) {
			t.Errorf("afterwards: %+v", j)
		}
		if s := r.feed.State()[0]; s.Price != dollars(152) || s.Nodes != 1 || s.ReadAt == 0 || len(s.Observed) != 1 {
			t.Errorf("state %+v", s)
		}
	})
}

// TestFeedRefused: a judgement that the engine refuses is published again.
func TestFeedRefused(t *testing.T) {
	run(t, pythOnly, func(r *rig) {
		r.nodes, r.refuse = []func() *rpc.Account{saying(dollars(150))}, errBusy
		r.after(3)
		r.refuse = nil
		if j := r.after(1); j.Price != dollars(150) {
			t.Errorf("%+v", j)
		}
	})
}

// TestNodes: errors are no agreement, and a minority of liars moves nothing.
func TestNodes(t *testing.T) {
	honest, liar := saying(dollars(150)), saying(dollars(300))
	foreign := func() *rpc.Account { a := honest(); a.Owner = solana.Address{9}; return a }
	for name, c := range map[string]struct {
		nodes []func() *rpc.Account
		price market.USDPrice
	}{
		"one":                             {[]func() *rpc.Account{honest}, dollars(150)},
		"two":                             {[]func() *rpc.Account{honest, honest}, dollars(150)},
		"one of two is busy":              {[]func() *rpc.Account{honest, nil}, 0},
		"one of three is busy":            {[]func() *rpc.Account{honest, nil, honest}, dollars(150)},
		"one of three lies":               {[]func() *rpc.Account{honest, liar, honest}, dollars(150)},
		"one of three is foreign":         {[]func() *rpc.Account{honest, foreign, honest}, dollars(150)},
		"one lies, one is busy":           {[]func() *rpc.Account{honest, liar, nil}, 0},
		"one lies and the others hang":    {[]func() *rpc.Account{nil, liar, nil}, 0},
		"a slot apart":                    {[]func() *rpc.Account{honest, saying(dollars(150) + dollars(1)), nil}, dollars(150)},
		"all apart":                       {[]func() *rpc.Account{honest, liar, saying(dollars(600))}, 0},
		"two pairs, one of them together": {[]func() *rpc.Account{honest, saying(dollars(150) + 7), liar, saying(dollars(302))}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, pythOnly, func(r *rig) {
				r.nodes = c.nodes
				if j := r.after(1); j.Price != c.price {
					t.Errorf("%+v, want %d", j, c.price)
				}
			})
		})
	}
}

// TestNodesFall: while too few nodes answer, the last price holds until it is too old;
// nodes that are behind do not turn it back, and nodes that contradict take it away.
func TestNodesFall(t *testing.T) {
	run(t, pythOnly, func(r *rig) {
		honest := saying(dollars(150))
		r.nodes = []func() *rpc.Account{honest, honest, honest}
		r.after(1)
		r.nodes[0], r.nodes[1] = nil, nil
		if j := r.after(15); j.Price != dollars(150) {
			t.Errorf("15 s after two of three have ended: %+v", j)
		}
		if j := r.after(10); j.Fault != NoQuorum {
			t.Errorf("25 s after: %+v", j)
		}
		r.nodes[0] = honest
		if j := r.after(1); j.Price != dollars(150) {
			t.Errorf("with a majority again: %+v", j)
		}
		behind := func() *rpc.Account { return updated(dollars(100), time.Now().Add(-10*time.Second)) }
		r.nodes = []func() *rpc.Account{behind, behind, behind}
		if j := r.after(3); j.Price != dollars(150) {
			t.Errorf("nodes that are behind: %+v", j)
		}
		r.nodes = []func() *rpc.Account{honest, saying(dollars(300)), saying(dollars(600))}
		if j := r.after(1); j.Price != 0 {
			t.Errorf("nodes that contradict: %+v", j)
		}
	})
}

// TestLiarsAreBounded: with an honest majority of all nodes, the price is within the
// spread of an honest one.
func TestLiarsAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 7).Draw(t, "nodes")
		liars := rapid.IntRange(0, (n-1)/2).Draw(t, "liars")
		var updates []pyth.Update
		for range rapid.IntRange(0, n-liars).Draw(t, "honest that answer") {
			updates = append(updates, pyth.Update{Price: market.USDPrice(rapid.Uint64Range(9_990, 10_010).Draw(t, "honest"))})
		}
		for range liars {
			updates = append(updates, pyth.Update{Price: market.USDPrice(rapid.Uint64Range(1, 20_000).Draw(t, "lie"))})
		}
		u, ok := agree(updates, n, 50)
		if ok && (u.Price < 9_900 || u.Price > 10_100) {
			t.Fatalf("%d of %v", u.Price, updates)
		}
	})
}

// TestSourcesTogether: the pool's average and the operator's price are compared with Pyth's.
func TestSourcesTogether(t *testing.T) {
	pool := dollars(150)
	asset := pythOnly
	asset.Rule.Sources = []Source{Pyth, Pool, Operator}
	asset.Window = 60 * time.Second
	asset.Pool = func() (market.USDPrice, int64, bool) { return pool, time.Now().UnixNano(), pool != 0 }
	run(t, asset, func(r *rig) {
		r.nodes = []func() *rpc.Account{saying(dollars(150))}
		r.after(90)
		r.feed.SetOperatorPrice(0, dollars(150), time.Now().UnixNano())
		if j := r.after(10); j.Price != dollars(150) || j.Faults != [3]Fault{} {
			t.Fatalf("%+v", j)
		}
		for _, bent := range []market.USDPrice{dollars(300), dollars(75)} { // for a second of sixty: the average hardly moves
			pool = bent
			if j := r.after(1); j.Price != dollars(150) {
				t.Errorf("in the moment of a swap: %+v", j)
			}
			pool = dollars(150)
			if j := r.after(2); j.Price != dollars(150) {
				t.Errorf("after a moment's swap: %+v", j)
			}
		}
		pool = dollars(160)
		if j := r.after(70); j.Fault != Disagree || j.Price != 0 {
			t.Errorf("a pool that has moved for good: %+v", j)
		}
		pool = 0
		r.nodes[0] = nil
		if j := r.after(120); j.Price != 0 || j.Fault != NoQuorum {
			t.Errorf("without any source: %+v", j)
		}
	})
}

// TestTyped: an operator's price is refused where the rule has no operator, or where it is
// far from another source; it stands in for the others, and grows old.
func TestTyped(t *testing.T) {
	asset := pythOnly
	asset.Rule.Sources = []Source{Pyth, Operator}
	run(t, asset, func(r *rig) {
		r.nodes = []func() *rpc.Account{saying(dollars(150))}
		r.after(1)
		if err := r.feed.CheckOperatorPrice(0, dollars(152)); !errors.Is(err, ErrDisagrees) {
			t.Errorf("far from Pyth: %v", err)
		}
		if err := r.feed.CheckOperatorPrice(0, dollars(151)); err != nil {
			t.Errorf("near Pyth: %v", err)
		}
		r.nodes[0] = nil
		if j := r.after(30); j.Fault == NoFault {
			t.Fatalf("without Pyth: %+v", j)
		}
		if err := r.feed.CheckOperatorPrice(0, dollars(152)); err != nil {
			t.Errorf("without Pyth: %v", err)
		}
		r.feed.SetOperatorPrice(0, dollars(152), time.Now().UnixNano())
		if j := r.after(1); j.Price != dollars(152) || j.Source != Operator {
			t.Errorf("%+v", j)
		}
		if j := r.after(20); j.Fault == NoFault {
			t.Errorf("after its age: %+v", j)
		}
	})
	run(t, pythOnly, func(r *rig) {
		r.nodes = []func() *rpc.Account{saying(dollars(150))}
		if err := r.feed.CheckOperatorPrice(0, dollars(150)); !errors.Is(err, ErrNoOperator) {
			t.Errorf("without the source operator: %v", err)
		}
		r.feed.SetOperatorPrice(0, dollars(10), time.Now().UnixNano())
		if j := r.after(2); j.Price != dollars(150) {
			t.Errorf("an operator's price that the rule does not name: %+v", j)
		}
	})
}

func TestOptions(t *testing.T) {
	good := pythOnly
	good.Account, good.FeedID = account, feedID
	for name, change := range map[string]func(*Options){
		"no asset":             func(o *Options) { o.Assets = nil },
		"too many":             func(o *Options) { o.Assets = slices.Repeat(o.Assets, MaxAssets+1) },
		"a rule out of range":  func(o *Options) { o.Assets[0].Rule.MaxAge = 0 },
		"Pyth without account": func(o *Options) { o.Assets[0].Account = solana.Address{} },
		"a pool without pool":  func(o *Options) { o.Assets[0].Rule.Sources = []Source{Pool} },
	} {
		o := Options{Assets: []Asset{good}, Nodes: &chain{}}
		if _, err := NewFeed(o); err != nil {
			t.Fatal(err)
		}
		if change(&o); func() bool { _, err := NewFeed(o); return err == nil }() {
			t.Errorf("%s: accepted", name)
		}
	}
}
