package prices

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"blockdesk/internal/repeat"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/pyth"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
)

// Defaults and limits of a Feed.
const (
	MaxAssets      = 64
	DefaultEvery   = time.Second
	minPublishMove = 1 // basis points
	// publishPerAge is how often an unchanged price is published within the age that
	// its rule allows.
	publishPerAge = 4
)

// Nodes is what a Feed asks the chain for.
type Nodes interface {
	// AccountsFromAll reads accounts from every configured node.
	AccountsFromAll(ctx context.Context, list []solana.Address, level rpc.Commitment, minSlot uint64) ([]rpc.NodeAccounts, error)
	// Upstreams returns how many nodes are configured.
	Upstreams() int
}

// Asset is one asset to be priced.
type Asset struct {
	Name string // as the configuration calls it
	Rule Rule
	// Account holds the price updates of FeedID. Both are zero where the rule has no Pyth.
	Account solana.Address
	FeedID  pyth.Feed
	// Pool returns the price of the asset's pool now and the time of its bank in Unix
	// nanoseconds, false where the mirror has none. Nil where the rule has no Pool. Window
	// is that of the average.
	Pool   func() (price market.USDPrice, at int64, ok bool)
	Window time.Duration
	// Typed returns the price that an operator typed last and when, 0 for none. Nil where
	// the rule has no Operator.
	Typed func() (price market.USDPrice, at int64)
}

// Options are those of a Feed.
type Options struct {
	Assets []Asset // 1 to MaxAssets
	Nodes  Nodes
	// Receiver is Pyth's receiver program. Zero: that of mainnet.
	Receiver solana.Address
	Every    time.Duration // how often the sources are read; 0: DefaultEvery
	// Publish gives the engine an asset's price, or the reason why it has none. An error
	// is logged, and the price is published again.
	Publish func(ctx context.Context, asset int, j Judgement) error
	Now     func() time.Time // nil: the clock
	Logger  *slog.Logger     // nil: slog's default
}

// Feed reads the sources of all assets at a steady pace and publishes what the rules
// make of them.
//
// Concurrency: State may be called by any goroutine while Run runs.
type Feed struct {
	o        Options
	averages []*Average // nil without a pool; Run's

	mu    sync.Mutex
	state []State
}

// State is what is known of one asset.
type State struct {
	Judgement
	Observed  []Observation // by the rule's sources, of the last reading
	Nodes     int           // nodes that returned a usable update of Pyth's
	ReadAt    int64         // Unix nanoseconds; 0: never
	published Judgement
	sentAt    int64
}

// ErrOptions means that a Feed cannot be made of its options.
var ErrOptions = errors.New("prices: options")

// NewFeed makes a feed. It reads nothing. Errors: [ErrOptions], [ErrRule].
func NewFeed(o Options) (*Feed, error) {
	if len(o.Assets) == 0 || len(o.Assets) > MaxAssets {
		return nil, fmt.Errorf("%w: %d assets, must be 1 to %d", ErrOptions, len(o.Assets), MaxAssets)
	}
	f := &Feed{o: o, averages: make([]*Average, len(o.Assets)), state: make([]State, len(o.Assets))}
	for i := range o.Assets {
		a := &o.Assets[i]
		if err := a.Rule.Validate(); err != nil {
			return nil, fmt.Errorf("%s: %w", a.Name, err)
		}
		for s, missing := range map[Source]bool{Pyth: a.Account == (solana.Address{}) || a.FeedID == (pyth.Feed{}), Pool: a.Pool == nil || a.Window <= 0, Operator: a.Typed == nil} {
			if missing && slices.Contains(a.Rule.Sources, s) {
				return nil, fmt.Errorf("%w: %s: source %v is not described", ErrOptions, a.Name, s)
			}
		}
		if a.Pool != nil {
			f.averages[i] = NewAverage(int64(a.Window))
		}
	}
	if f.o.Receiver == (solana.Address{}) {
		f.o.Receiver = solana.PythReceiverProgram
	}
	if f.o.Every == 0 {
		f.o.Every = DefaultEvery
	}
	if f.o.Now == nil {
		f.o.Now = time.Now
	}
	if f.o.Logger == nil {
		f.o.Logger = slog.Default()
	}
	return f, nil
}

// State returns the assets' states, in the order of the options.
func (f *Feed) State() []State {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.state)
}

// Run reads and publishes until ctx ends.
func (f *Feed) Run(ctx context.Context) error {
	repeat.Every(ctx, f.o.Every, f.cycle)
	return nil
}

// cycle reads every source once.
func (f *Feed) cycle(ctx context.Context) {
	views := f.read(ctx)
	now := f.o.Now().UnixNano()
	for i := range f.o.Assets {
		a := &f.o.Assets[i]
		s := State{ReadAt: now}
		s.Observed, s.Nodes = f.observe(i, views, now)
		s.Judgement = a.Rule.Judge(now, s.Observed)
		f.mu.Lock()
		s.published, s.sentAt = f.state[i].published, f.state[i].sentAt
		f.mu.Unlock()
		if s.due(now, a.Rule.MaxAge) {
			if err := f.o.Publish(ctx, i, s.Judgement); err != nil && ctx.Err() == nil {
				f.o.Logger.Warn("price not published", "asset", a.Name, "error", err)
			} else {
				s.published, s.sentAt = s.Judgement, now
			}
		}
		f.mu.Lock()
		f.state[i] = s
		f.mu.Unlock()
	}
}

// due reports whether the engine should have the judgement: it has another fault, source
// or price, or the engine's price has used up a part of the age that it may have.
func (s *State) due(now, maxAge int64) bool {
	p := &s.published
	switch {
	case s.sentAt == 0 || s.Fault != p.Fault || s.Source != p.Source:
		return true
	case s.Fault != NoFault:
		return false
	}
	return apart(s.Price, p.Price, minPublishMove) || s.At > p.At && now-s.sentAt >= maxAge/publishPerAge
}

// read asks all nodes for the accounts of all assets; nil where there are none.
func (f *Feed) read(ctx context.Context) []rpc.NodeAccounts {
	var list []solana.Address
	for i := range f.o.Assets {
		if a := f.o.Assets[i].Account; a != (solana.Address{}) {
			list = append(list, a)
		}
	}
	if len(list) == 0 {
		return nil
	}
	// Confirmed: a price of a fork that dies is still the price that Pyth published.
	views, err := f.o.Nodes.AccountsFromAll(ctx, list, rpc.Confirmed, 0)
	if err != nil {
		return nil
	}
	return views
}

// observe gathers what the sources of asset i say, and counts the nodes whose update of
// Pyth's can be used.
func (f *Feed) observe(i int, views []rpc.NodeAccounts, now int64) (observed []Observation, nodes int) {
	a := &f.o.Assets[i]
	if a.Account != (solana.Address{}) {
		var usable, all []pyth.Update
		for _, v := range views {
			at := slices.IndexFunc(v.Accounts, func(x *rpc.Account) bool { return x != nil && x.Address == a.Account })
			if at < 0 {
				continue
			}
			u, err := pyth.Read(v.Accounts[at], f.o.Receiver, a.FeedID)
			if err != nil {
				continue
			}
			all = append(all, u)
			if a.Rule.fault(now, observationOf(u)) == NoFault {
				usable = append(usable, u)
			}
		}
		nodes = len(usable)
		// Where the usable ones are no majority, what all agree on names the fault.
		for _, updates := range [][]pyth.Update{usable, all} {
			if u, ok := agree(updates, f.o.Nodes.Upstreams(), a.Rule.MaxSpreadBps); ok {
				observed = append(observed, *observationOf(u))
				break
			}
		}
	}
	if a.Pool != nil {
		if price, at, ok := a.Pool(); ok {
			f.averages[i].Add(at, price)
		}
		if price, at, ok := f.averages[i].Price(now); ok {
			observed = append(observed, Observation{Source: Pool, Price: price, At: at})
		}
	}
	if a.Typed != nil {
		if price, at := a.Typed(); price != 0 {
			observed = append(observed, Observation{Source: Operator, Price: price, At: at})
		}
	}
	return observed, nodes
}

func observationOf(u pyth.Update) *Observation {
	return &Observation{Source: Pyth, Price: u.Price, Confidence: u.Confidence, At: u.PublishedAt * int64(time.Second)}
}
