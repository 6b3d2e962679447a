package mirror

import (
	"context"
	"sync"
	"time"

	"blockdesk/internal/solana"
	"blockdesk/persist/kv"
)

// Service mirrors the pairs of its options: it reads their accounts and their pools'
// histories from the chain and publishes books and trades to the engine.
//
// State, Signature and Signatures may be called by any goroutine, also while Run is not
// running.
type Service struct {
	o       Options
	node    Node
	readers []*reader
	swaps   []*swapTracker // nil for a pair without a pool
}

// New makes a service. It does not call the node. Errors: [ErrOptions], [ErrListing];
// [ErrRecord] for a store with an unknown layout.
func New(o Options, node Node, engine Engine, kv kv.Store) (*Service, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if err := checkVersion(kv); err != nil {
		return nil, err
	}
	s := &Service{o: o.withDefaults(), node: node}
	for i := range s.o.Pairs {
		p := &s.o.Pairs[i]
		r := &reader{o: &s.o, node: node, engine: engine, pair: p, opened: make(chan struct{})}
		r.offset = s.o.Every * time.Duration(i) / time.Duration(len(s.o.Pairs))
		s.readers = append(s.readers, r)
		var w *swapTracker
		if p.Pool.Pool != (solana.Address{}) {
			w = &swapTracker{o: &s.o, lists: listQuorum{node: node}, engine: engine, reader: r, pair: p}
			w.store = newRecords(kv, p.Instrument.ID, p.Pool.history())
		}
		s.swaps = append(s.swaps, w)
	}
	return s, nil
}

// Run follows the chain until ctx ends. [Service.State] reports failures; Run returns
// nil.
func (s *Service) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for i, r := range s.readers {
		wg.Go(func() { r.run(ctx) })
		if w := s.swaps[i]; w != nil {
			wg.Go(func() { w.run(ctx) })
		}
	}
	wg.Wait()
	return nil
}

// State returns the current state.
func (s *Service) State() *State {
	now := s.o.Now()
	out := &State{At: now, Pairs: make([]PairState, len(s.readers))}
	refused := map[string]error{}
	var newest TxRef
	for i, r := range s.readers {
		p := r.state(now)
		if w := s.swaps[i]; w != nil {
			shown, reasons, err := w.state(now)
			p.Swaps, p.Reasons = shown, p.Reasons|reasons
			if p.Err == nil {
				p.Err = err
			}
		}
		r.mu.Lock()
		for name, err := range r.refused {
			if err != nil {
				refused[name] = err
			}
		}
		r.mu.Unlock()
		if p.At.Slot >= out.Slot && !p.ReadAt.IsZero() {
			out.Slot, out.SyncedAt = p.At.Slot, p.ReadAt
		}
		if m := p.Swaps.Newest; m.Slot >= newest.Slot {
			newest = m
		}
		out.Reasons |= p.Reasons
		out.Pairs[i] = p
	}
	out.LastSignature = newest.Signature
	out.addUpstreams(s.node, refused)
	return out
}

// addUpstreams adds the state of the nodes.
func (s *State) addUpstreams(node Node, refused map[string]error) {
	for i, h := range node.Health() {
		s.Upstreams = append(s.Upstreams, UpstreamState{h, refused[h.Name]})
		s.MaxSlot = max(s.MaxSlot, h.Slot)
		if s.Active == "" && h.Available {
			s.Active, s.Failover = h.Name, i > 0
		}
	}
	s.MaxSlot = max(s.MaxSlot, s.Slot)
	s.Lag = s.MaxSlot - s.Slot
	if s.Failover {
		s.Reasons = s.Reasons.With(Failover)
	}
}
