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
	// publishPerAge is how often an unchanged price is published within its maximum age.
	publishPerAge = 4
	// readTimeout bounds how long a node that hangs delays the other sources.
	readTimeout = 2 * time.Second
)

// Nodes reads accounts of the chain.
type Nodes interface {
	// AccountsFromEach reads accounts from every configured node.
	AccountsFromEach(ctx context.Context, list []solana.Address, level rpc.Commitment, minSlot uint64) ([]rpc.NodeAccounts, error)
	// Upstreams returns how many nodes are configured.
	Upstreams() int
}

// Asset is one asset to be priced.
type Asset struct {
	Name string // symbol of the asset
	Rule Rule
	// Account has the price updates of FeedID. Both are zero if the rule has no Pyth.
	Account solana.Address
	FeedID  pyth.Feed
	// Pool returns the current price of the asset's pool and the chain's time of it in
	// Unix nanoseconds; false if there is none. Nil if the rule has no Pool. Window is that
	// of the average.
	Pool   func() (price market.USDPrice, at int64, ok bool)
	Window time.Duration
	// OperatorPrice is the last price that an operator has set, and OperatorPriceAt when; 0: none.
	OperatorPrice   market.USDPrice
	OperatorPriceAt int64 // Unix nanoseconds
}

// Options are those of a Feed.
type Options struct {
	Assets []Asset // 1 to MaxAssets
	Nodes  Nodes
	// Receiver is Pyth's receiver program. Zero: that of mainnet.
	Receiver solana.Address
	Every    time.Duration // how often the sources are read; 0: DefaultEvery
	// Publish submits an asset's price to the engine, or that it has none. After an error
	// the judgement is published again in the next cycle.
	Publish func(ctx context.Context, asset int, j Judgement) error
	Now     func() time.Time // nil: the clock
	Logger  *slog.Logger     // nil: slog's default
}

// Feed reads the sources of all assets at a steady pace and publishes the judgements of
// their rules.
//
// Concurrency: State, SetOperatorPrice and CheckOperatorPrice may be called from any goroutine.
type Feed struct {
	o        Options
	averages []*Average    // of Run's goroutine; nil without a pool
	last     []Observation // the newest agreed price of Pyth, of Run's goroutine; Price 0: none
	first    chan struct{} // closed after the first cycle

	mu             sync.Mutex
	state          []State
	operatorPrices []Observation // by operators; Price 0: none
}

// State is the state of one asset.
type State struct {
	Judgement
	Observed  []Observation // of the last reading
	Nodes     int           // nodes that returned a usable update of Pyth
	ReadAt    int64         // Unix nanoseconds; 0: never
	published Judgement
	sentAt    int64
	refused   bool // the last publication failed
}

// ErrOptions means that the options of a Feed are incomplete or out of range.
var ErrOptions = errors.New("prices: invalid options")

// NewFeed makes a feed; it reads no source yet. Errors: [ErrOptions], [ErrRule].
func NewFeed(o Options) (*Feed, error) {
	if len(o.Assets) == 0 || len(o.Assets) > MaxAssets {
		return nil, fmt.Errorf("%w: %d assets: must be 1 to %d", ErrOptions, len(o.Assets), MaxAssets)
	}
	f := &Feed{o: o, averages: make([]*Average, len(o.Assets)), state: make([]State, len(o.Assets)), operatorPrices: make([]Observation, len(o.Assets)), last: make([]Observation, len(o.Assets)), first: make(chan struct{})}
	for i := range o.Assets {
		a := &o.Assets[i]
		if err := a.Rule.Validate(); err != nil {
			return nil, fmt.Errorf("%s: %w", a.Name, err)
		}
		for s, missing := range map[Source]bool{Pyth: a.Account == (solana.Address{}) || a.FeedID == (pyth.Feed{}), Pool: a.Pool == nil || a.Window <= 0} {
			if missing && slices.Contains(a.Rule.Sources, s) {
				return nil, fmt.Errorf("%w: %s: source %v is in the rule, but is not configured", ErrOptions, a.Name, s)
			}
		}
		f.operatorPrices[i] = Observation{Source: Operator, Price: a.OperatorPrice, At: a.OperatorPriceAt}
		if a.Pool != nil {
			f.averages[i] = NewAverage(int64(a.Window), a.Rule.MaxAge)
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

// State returns the states of the assets, in the order of the options.
func (f *Feed) State() []State {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.state)
}

// ErrNoOperator means that the rule of an asset does not have the source operator.
var ErrNoOperator = errors.New("the price of this asset is not set by hand")

// ErrDisagrees means that a price is further from another source than the rule allows.
var ErrDisagrees = errors.New("the price is too far from another source")

// CheckOperatorPrice checks a price that an operator wants to set for asset i now. Errors:
// [ErrNoOperator], [ErrDisagrees].
func (f *Feed) CheckOperatorPrice(i int, price market.USDPrice) error {
	rule := &f.o.Assets[i].Rule
	if !slices.Contains(rule.Sources, Operator) {
		return fmt.Errorf("%w: its sources are %v: add operator to prices.<asset>.sources", ErrNoOperator, rule.Sources)
	}
	now := f.o.Now().UnixNano()
	f.mu.Lock()
	observed := slices.Clone(f.state[i].Observed)
	f.mu.Unlock()
	for _, o := range observed {
		if o.Source != Operator && slices.Contains(rule.Sources, o.Source) && rule.fault(now, &o) == NoFault && apart(o.Price, price, rule.MaxSpreadBps) {
			return fmt.Errorf("%w: %v has %s, and they may differ by %d bps at most", ErrDisagrees, o.Source,
				market.AppendDecimal(nil, uint64(o.Price), market.USDPriceDecimals), rule.MaxSpreadBps)
		}
	}
	return nil
}

// SetOperatorPrice sets the price of asset i that an operator has set at a time, in Unix
// nanoseconds.
func (f *Feed) SetOperatorPrice(i int, price market.USDPrice, at int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.operatorPrices[i] = Observation{Source: Operator, Price: price, At: at}
}

// operatorPrice returns the price of asset i that an operator has set; none: empty.
func (f *Feed) operatorPrice(i int) []Observation {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.operatorPrices[i].Price == 0 {
		return nil
	}
	return f.operatorPrices[i : i+1 : i+1]
}

// First returns a channel that is closed once all sources were read and their judgements
// published.
func (f *Feed) First() <-chan struct{} { return f.first }

// Run reads and publishes until ctx ends. Call it once.
func (f *Feed) Run(ctx context.Context) error {
	first := sync.OnceFunc(func() { close(f.first) })
	repeat.Every(ctx, f.o.Every, func(ctx context.Context) {
		f.cycle(ctx)
		first()
	})
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
		s.Observed = append(s.Observed, f.operatorPrice(i)...)
		s.Judgement = a.Rule.Judge(now, s.Observed)
		f.mu.Lock()
		s.published, s.sentAt, s.refused = f.state[i].published, f.state[i].sentAt, f.state[i].refused
		f.mu.Unlock()
		if s.due(now, a.Rule.MaxAge) {
			s = f.publish(ctx, i, s, now)
		}
		f.mu.Lock()
		f.state[i] = s
		f.mu.Unlock()
	}
}

// publish publishes a state of asset i. It logs the first failure of several, and each
// change between a price and none.
func (f *Feed) publish(ctx context.Context, i int, s State, now int64) State {
	name := f.o.Assets[i].Name
	err := f.o.Publish(ctx, i, s.Judgement)
	if err != nil {
		if !s.refused && ctx.Err() == nil {
			f.o.Logger.Warn("price was not published to the desk", "asset", name, "error", err)
		}
		s.refused = true
		return s
	}
	switch began := s.sentAt == 0; {
	case s.Fault != NoFault && (began || s.published.Fault != s.Fault):
		f.o.Logger.Warn("asset has no price", "asset", name, "reason", s.Fault.String())
	case s.Fault == NoFault && (began || s.published.Fault != NoFault || s.published.Source != s.Source):
		f.o.Logger.Info("asset is priced", "asset", name, "source", s.Source.String())
	}
	s.published, s.sentAt, s.refused = s.Judgement, now, false
	return s
}

// due reports whether the judgement must be published: its fault, source or price differs
// from the published one, or the published price has reached a part of its maximum age.
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

// read reads the accounts of all assets from all nodes; nil if no asset has one.
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
	// Confirmed is enough: a price on an abandoned fork is still one that Pyth published.
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	views, err := f.o.Nodes.AccountsFromEach(ctx, list, rpc.Confirmed, 0)
	if err != nil {
		return nil
	}
	return views
}

// observe returns the prices of the sources of asset i, and how many nodes returned a
// usable update of Pyth.
func (f *Feed) observe(i int, views []rpc.NodeAccounts, now int64) (observed []Observation, nodes int) {
	a := &f.o.Assets[i]
	if a.Account != (solana.Address{}) {
		var quorum bool
		nodes, quorum = f.observePyth(i, views, now)
		last := f.last[i]
		if last.Source, last.NoQuorum = Pyth, !quorum; last.Price != 0 || last.NoQuorum {
			observed = append(observed, last)
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
	return observed, nodes
}

// observePyth updates the last price of Pyth of asset i. It returns how many nodes
// returned a usable update, and whether a majority of the nodes agrees on a price or on
// having none.
func (f *Feed) observePyth(i int, views []rpc.NodeAccounts, now int64) (nodes int, quorum bool) {
	a := &f.o.Assets[i]
	var usable, all []pyth.Update
	answers := 0
	for _, v := range views {
		if v.Err == nil {
			answers++
		}
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
	configured := f.o.Nodes.Upstreams()
	newest := f.last[i]
	// If too few nodes answer for a majority, the last price holds until it is too old.
	if answers > configured/2 {
		f.last[i] = Observation{}
		quorum = len(all) == 0
	}
	// Without a majority of usable updates, that of all updates shows the fault. An older
	// update than the last one comes from nodes that are behind.
	for _, updates := range [][]pyth.Update{usable, all} {
		u, ok := agree(updates, configured, a.Rule.MaxSpreadBps)
		if !ok {
			continue
		}
		if f.last[i] = *observationOf(u); newest.At > f.last[i].At {
			f.last[i] = newest
		}
		return len(usable), true
	}
	return len(usable), quorum
}

func observationOf(u pyth.Update) *Observation {
	return &Observation{Source: Pyth, Price: u.Price, Confidence: u.Confidence, At: u.PublishedAt * int64(time.Second)}
}
