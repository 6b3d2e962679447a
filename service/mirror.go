package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"blockdesk/desk"
	"blockdesk/engine"
	"blockdesk/httpgw/admin"
	marketapi "blockdesk/httpgw/market"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
	"blockdesk/mirror"
	"blockdesk/service/config"
	"blockdesk/service/task"
)

// chainMirror is the room that reads mirrored instruments from the chain; the zero
// value where nothing is read. Its nodes are asked by a client of its own, so that
// a book of many megabytes is in no settlement's way.
type chainMirror struct {
	service *mirror.Service
	chain   *rpc.Client
}

// openMirror joins the room to the recovered state. It asks no node. It comes
// after the feed, whose views tell what is durable.
func (s *Service) openMirror(state *engine.State) error {
	for _, symbol := range s.cfg.UnreadInstruments() {
		s.log.Warn("nothing is read for a mirrored instrument: mirror.pairs does not name it", "symbol", symbol)
	}
	if !s.cfg.Mirrors() {
		return nil
	}
	options, err := s.cfg.MirrorOptions(s.instruments)
	if err != nil {
		return err
	}
	nodes, err := s.cfg.MirrorNodes()
	if err != nil {
		return err
	}
	client := rpc.DefaultOptions()
	client.Upstreams, client.MaxAnswer = nodes, mirrorAnswer
	client.Timeout, client.AttemptTimeout = config.Millis(s.cfg.Chain.TimeoutMS), config.Millis(s.cfg.Chain.AttemptTimeoutMS)
	client.ProbeEvery, client.BlockhashEvery = min(mirrorProbe, options.Every), noBlockhash
	if s.mirror.chain, err = rpc.New(client); err != nil {
		return fmt.Errorf("mirror: %w", err)
	}
	door := &mirrorEngine{eng: s.eng, views: s.feed, recovered: map[market.InstrumentID]mirror.Durable{}}
	for i := range options.Pairs {
		in := options.Pairs[i].Instrument.ID
		slot, ordinal := state.MirrorPosition(in)
		door.recovered[in] = mirror.Durable{Slot: slot, Ordinal: ordinal}
	}
	s.mirror.service, err = mirror.New(options, s.mirror.chain, door, s.storage.Mirror)
	return err
}

// runMirror runs what there is of the room. The instruments must be defined.
func (s *Service) runMirror(ctx context.Context, group *errgroup.Group) {
	if s.mirror.service == nil {
		return
	}
	task.Go(ctx, group, task.Task{Name: "mirror's nodes", Run: s.mirror.chain.Run}, task.Task{Name: "mirror", Run: s.mirror.service.Run})
}

// mirrorState is what is known of the chain's markets; nil where nothing is read.
func (s *Service) mirrorState() *mirror.State {
	if s.mirror.service == nil {
		return nil
	}
	return s.mirror.service.State()
}

// errNotMirrored means that no mirrored instrument is of now.
var errNotMirrored = errors.New("no mirrored instrument has been read lately")

// mirrorReady returns nil where one mirrored instrument at least is of now: of the
// others the documents tell.
func (s *Service) mirrorReady() error {
	state := s.mirrorState()
	for i := range state.Pairs {
		if state.Pairs[i].Fresh() {
			return nil
		}
	}
	return errNotMirrored
}

// mirrorSources are what metrics are made of; nil functions where nothing is read.
func (s *Service) mirrorSources() (m admin.MirrorSources) {
	if s.mirror.service == nil {
		return m
	}
	return admin.MirrorSources{Pairs: func() []admin.MirrorPair {
		state := s.mirrorState()
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
		state := s.mirrorState()
		out := make([]desk.ChainNode, len(state.Upstreams))
		for i := range state.Upstreams {
			u := &state.Upstreams[i]
			out[i] = desk.ChainNode{Name: u.Name, Available: u.Available && u.Refused == nil, Slot: u.Slot, Lag: state.MaxSlot - min(u.Slot, state.MaxSlot)}
		}
		return out
	}}
}

// mirrorEngine is the engine as the mirror uses it.
type mirrorEngine struct {
	eng interface {
		Submit(c *engine.Command) error
		SubmitAll(cs []engine.Command) error
	}
	views interface {
		View(in market.InstrumentID) *engine.View
	}
	// recovered is what the journal had at the start. It does not change.
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

// Told reads the view, which is of durable events only.
func (d *mirrorEngine) Durable(in market.InstrumentID) mirror.Durable {
	told := d.recovered[in]
	v := d.views.View(in)
	if v == nil {
		return told
	}
	told.Slot = max(told.Slot, v.Slot)
	if len(v.Trades) > 0 && v.Trades[0].Ordinal >= told.Ordinal {
		told.Ordinal, told.TradedAt = v.Trades[0].Ordinal, v.Trades[0].At
	}
	return told
}

// tradeSignatures tells REST of which transactions trades were.
type tradeSignatures struct{ service *mirror.Service }

func (t tradeSignatures) Signatures(in market.InstrumentID, from, to uint64) ([][64]byte, error) {
	list, err := t.service.Signatures(in, from, to)
	out := make([][64]byte, len(list))
	for i := range list {
		out[i] = list[i]
	}
	return out, err
}

// signatures is nil where nothing is read from a chain.
func (s *Service) signatures() marketapi.Signatures {
	if s.mirror.service == nil {
		return nil
	}
	return tradeSignatures{s.mirror.service}
}

// mirrorWait is how long a start waits for the chain's markets before it is ready
// without them: two cycles at least.
func mirrorWait(c *config.Mirror) time.Duration { return max(chainWait, 2*config.Millis(c.EveryMS)) }

// mirrorAnswer bounds a node's answer: the largest book's account in base64, and
// what is around it.
const mirrorAnswer = 16 << 20

// mirrorProbe is how often each node is asked how it is.
const mirrorProbe = 5 * time.Second

// noBlockhash is how often a blockhash is asked for that nobody here needs.
const noBlockhash = 24 * time.Hour
