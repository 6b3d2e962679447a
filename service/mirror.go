package service

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"blockdesk/desk"
	"blockdesk/engine"
	"blockdesk/engine/marketdata"
	"blockdesk/feed"
	"blockdesk/httpgw/admin"
	marketapi "blockdesk/httpgw/market"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
	"blockdesk/mirror"
	"blockdesk/service/config"
	"blockdesk/service/demo"
	"blockdesk/service/task"
)

// chainWait is how long a start waits for the chain before the service is ready without
// it: orders, market data and quotes do not need it.
const chainWait = 30 * time.Second

// chainMirror reads mirrored instruments from the chain. Its client is its own, so that
// a book of many megabytes does not delay settlement.
type chainMirror struct {
	*mirror.Service
	chain   *rpc.Client
	network nodesNetwork
	every   time.Duration // between two readings
	log     *slog.Logger
}

// openMirror makes the mirror on the recovered state; nil if no markets are mirrored.
// It sends nothing to a node.
func openMirror(c *config.Config, instruments []market.Instrument, eng *engine.Engine, views *feed.Feed, state *engine.State, kv Store, log *slog.Logger) (*chainMirror, error) {
	for _, symbol := range c.UnreadInstruments() {
		if c.Demo && symbol == demo.PoolSymbol {
			continue // there is no chain, which has been said
		}
		log.Warn("mirrored instrument is not in mirror.pairs: it gets no data", "symbol", symbol)
	}
	if !c.Mirrors() {
		return nil, nil
	}
	options, err := c.MirrorOptions(instruments)
	if err != nil {
		return nil, err
	}
	client := rpc.DefaultOptions()
	if client.Upstreams, err = c.MirrorNodes(); err != nil {
		return nil, err
	}
	client.MaxAnswer = mirrorAnswer
	client.Timeout, client.AttemptTimeout = config.Millis(c.Chain.TimeoutMS), config.Millis(c.Chain.AttemptTimeoutMS)
	client.ProbeEvery, client.BlockhashEvery = min(mirrorProbe, options.Every), noBlockhash
	m := &chainMirror{every: options.Every, log: log}
	if m.chain, err = rpc.New(client); err != nil {
		return nil, err
	}
	port := &mirrorEngine{eng: eng, views: views, recovered: map[market.InstrumentID]mirror.Durable{}}
	for i := range options.Pairs {
		in := options.Pairs[i].Instrument.ID
		slot, ordinal := state.MirrorPosition(in)
		port.recovered[in] = mirror.Durable{Slot: slot, Ordinal: ordinal}
	}
	if m.Service, err = mirror.New(options, m.chain, port, kv); err != nil {
		m.chain.Close()
		return nil, err
	}
	return m, nil
}

// run starts the mirror's goroutines in a group. The instruments must be defined.
func (m *chainMirror) run(ctx context.Context, group *errgroup.Group) {
	task.Go(ctx, group, task.Task{Name: "mirror's nodes", Run: m.chain.Run}, task.Task{Name: "mirror", Run: m.Run},
		task.Task{Name: "mirror's network", Run: func(ctx context.Context) error { return m.network.learn(ctx, m.chain, m.every, m.log) }})
}

// errNotMirrored means that every mirrored instrument is stale.
var errNotMirrored = errors.New("all mirrored instruments are stale: see mirror.stale_after_ms and the nodes of mirror.rpc_urls")

// ready returns nil if at least one mirrored instrument is fresh; the documents report
// the others.
func (m *chainMirror) ready() error {
	state := m.State()
	for i := range state.Pairs {
		if state.Pairs[i].Fresh() {
			return nil
		}
	}
	return errNotMirrored
}

// sources are what /metrics reads of the mirror.
func (m *chainMirror) sources() admin.MirrorSources {
	return admin.MirrorSources{Pairs: func() []admin.MirrorPair {
		state := m.State()
		out := make([]admin.MirrorPair, len(state.Pairs))
		for i := range state.Pairs {
			p := &state.Pairs[i]
			out[i] = admin.MirrorPair{
				Symbol: p.Instrument.Symbol, Slot: p.At.Slot, AgreeingNodes: p.AgreeingNodes, Trades: p.Swaps.Numbered,
				OmittedSwaps: p.Swaps.OmittedSwaps, Pending: p.Swaps.Pending, OmittedOrders: p.OmittedOrders, Degraded: p.Reasons != 0,
			}
			if !p.ReadAt.IsZero() {
				out[i].Age = state.At.Sub(p.ReadAt)
			}
		}
		return out
	}, Nodes: func() []desk.ChainNode {
		state := m.State()
		out := make([]desk.ChainNode, len(state.Upstreams))
		for i := range state.Upstreams {
			u := &state.Upstreams[i]
			out[i] = desk.ChainNode{Name: u.Name, Available: u.Available && u.Refused == nil, Slot: u.Slot, Lag: state.MaxSlot - min(u.Slot, state.MaxSlot)}
		}
		return out
	}}
}

// Signatures implements marketapi.Signatures: it returns the transactions of trades.
func (m *chainMirror) Signatures(in market.InstrumentID, from, to uint64) ([][64]byte, error) {
	list, err := m.Service.Signatures(in, from, to)
	out := make([][64]byte, len(list))
	for i := range list {
		out[i] = list[i]
	}
	return out, err
}

// ChainSwaps implements marketapi.Swaps.
func (m *chainMirror) ChainSwaps(in market.InstrumentID, from, to uint64) ([]marketapi.ChainSwap, error) {
	list, err := m.Service.ChainSwaps(in, from, to)
	out := make([]marketapi.ChainSwap, len(list))
	for i := range list {
		s := &list[i]
		out[i] = marketapi.ChainSwap{
			Signature: s.Signature, Payer: solana.Base58(s.Payer), Slot: s.Slot, Base: s.Base, Quote: s.Quote,
			BaseDecimals: s.BaseDecimals, QuoteDecimals: s.QuoteDecimals,
		}
	}
	return out, err
}

// mirrorEngine is the engine as the mirror uses it.
type mirrorEngine struct {
	eng interface {
		Submit(c *engine.Command) error
		SubmitAll(cs []engine.Command) error
	}
	views interface {
		View(in market.InstrumentID) *marketdata.View
	}
	// recovered is the position of the journal at the start.
	recovered map[market.InstrumentID]mirror.Durable
}

func (d *mirrorEngine) Refresh(r mirror.Refresh) error {
	commands, err := engine.MirrorRefreshCommands(nil, &engine.MirrorBook{
		Instrument: r.Instrument, Slot: r.Slot, Bids: r.Bids, Asks: r.Asks,
	})
	if err != nil {
		return err
	}
	return d.eng.SubmitAll(commands)
}

func (d *mirrorEngine) Trade(t mirror.Trade) error {
	c, err := engine.MirrorTradeCommand(&engine.MirrorSwap{
		Instrument: t.Instrument, Ordinal: t.Ordinal, Price: t.Price, Qty: t.Qty, Side: t.Side, At: t.At, Slot: t.Slot,
	})
	if err != nil {
		return err
	}
	return d.eng.Submit(&c)
}

// Durable reads the view, which has durable events only.
func (d *mirrorEngine) Durable(in market.InstrumentID) mirror.Durable {
	durable := d.recovered[in]
	v := d.views.View(in)
	if v == nil {
		return durable
	}
	durable.Slot = max(durable.Slot, v.Slot)
	if len(v.Trades) > 0 && v.Trades[0].Ordinal >= durable.Ordinal {
		durable.Ordinal, durable.TradedAt = v.Trades[0].Ordinal, v.Trades[0].At
	}
	return durable
}

// mirrorWait is how long a start waits for the chain's markets before it is ready
// without them: two cycles at least.
func mirrorWait(c *config.Mirror) time.Duration { return max(chainWait, 2*config.Millis(c.EveryMS)) }

// mirrorAnswer bounds a node's answer, in bytes: the account of the largest book in
// base64.
const mirrorAnswer = 16 << 20

// mirrorProbe is the time between two health checks of a node.
const mirrorProbe = 5 * time.Second

// noBlockhash is the time between two fetches of a blockhash, which the mirror does not
// need.
const noBlockhash = 24 * time.Hour
