package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"blockdesk/engine"
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
	"blockdesk/service/config"
	"blockdesk/service/task"
	"blockdesk/settle"
	"blockdesk/settle/access"
	"blockdesk/settle/broadcast"
	"blockdesk/settle/cosign"
	"blockdesk/settle/store"
)

// settlement is the room that claims are settled in. Tokens are given without a
// chain too: whoever has one is told that there is none.
type settlement struct {
	access *access.Access // nil: the desk is not enabled
	// The rest is nil where no chain is configured.
	chain  *rpc.Client
	core   *settle.Settlement
	events *engine.Consumer
}

// openSettlement joins the package to the desk. It asks no node. A replica settles
// nothing.
func (s *Service) openSettlement() error {
	if !s.cfg.RFQ.Enabled || s.upstream != nil {
		return nil
	}
	var err error
	if s.settlement.access, err = access.Open(access.Options{}, s.storage.Settlement); err != nil {
		return fmt.Errorf("settlement store: %w", err)
	}
	if !s.cfg.Settles() {
		return nil
	}
	stored, err := store.Open(s.storage.Settlement)
	if err != nil {
		return fmt.Errorf("settlement store: %w", err)
	}
	signer, err := s.openSigner()
	if err != nil {
		return err
	}
	nodes, err := s.cfg.Chain.RPCOptions()
	if err != nil {
		return err
	}
	if s.settlement.chain, err = rpc.New(nodes); err != nil {
		return fmt.Errorf("chain: %w", err)
	}
	options, err := s.settleOptions()
	if err != nil {
		return err
	}
	if s.settlement.core, err = settle.New(options, s.desk, s.settlement.chain, stored, signer); err != nil {
		return err
	}
	s.settlement.events = s.eng.Consumer("settle")
	s.log.Info("settlement is on", "nodes", s.cfg.ChainHosts(), "desk", solana.Text(signer.Address()))
	return nil
}

// startSettlement gives settlement the claims of the recovered state.
func (s *Service) startSettlement(state *engine.State) {
	recovered := state.Desk()
	if core := s.settlement.core; core != nil {
		core.Start(recovered.EachClaim, s.lostSince(state))
	} else if n := unsettled(recovered); n > 0 && s.cfg.RFQ.Enabled {
		s.log.Warn("claims wait for a chain: none is configured", "claims", n)
	}
}

// lostSince is when the journal ends, where it counts more than the stores: what
// was booked later is to be found again. Zero: it is whole, or empty.
func (s *Service) lostSince(state *engine.State) (at time.Time) {
	if s.rebase && state.Seq() > 0 {
		at = time.Unix(0, state.At())
	}
	return at
}

// unsettled counts the claims that somebody has paid or signed for.
func unsettled(m *rfq.Machine) (n int) {
	m.EachClaim(func(c *rfq.Claim, _ []rfq.Payment) bool {
		if c.State.Live() && c.State != rfq.ClaimReserved {
			n++
		}
		return true
	})
	return n
}

// openSigner finds the desk's key, in its file or behind its socket.
func (s *Service) openSigner() (cosign.Signer, error) {
	var address market.Address
	if s.cfg.Settle.Desk != "" {
		var err error
		if address, err = config.ParseAddress(s.cfg.Settle.Desk); err != nil {
			return nil, fmt.Errorf("settle.desk: %w", err)
		}
	}
	if path := s.cfg.Settle.SignerSocket; path != "" {
		signer, err := cosign.Dial(path, cosign.SocketOptions{Address: address})
		if err != nil {
			return nil, fmt.Errorf("settle.signer_socket: %w", err)
		}
		return signer, nil
	}
	signer, err := cosign.OpenKeyHardened(s.cfg.Settle.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("settle.key_file: %w", err)
	}
	if address != (market.Address{}) && address != signer.Address() {
		return nil, fmt.Errorf("settle.key_file: the key is that of %s, and settle.desk is %s", solana.Text(signer.Address()), s.cfg.Settle.Desk)
	}
	return signer, nil
}

func (s *Service) settleOptions() (settle.Options, error) {
	c := &s.cfg.Settle
	treasury, err := c.TreasuryWallets()
	if err != nil {
		return settle.Options{}, err
	}
	dust, err := c.DustByRail()
	return settle.Options{
		Treasury: treasury, Budget: c.Budget(), SyncBuilds: s.cfg.Durability.Mode != "interval",
		BlockhashLife: uint64(s.cfg.Chain.BlockhashSlots),
		Broadcast:     broadcast.Options{ResendEvery: config.Millis(c.ResendMS), PollEvery: config.Millis(c.PollMS)},
		Payments: settle.Payments{
			ClockTolerance: config.Seconds(c.ClockToleranceS), WatchEvery: config.Millis(c.WatchMS), Dust: dust,
		},
		Logger: s.log,
	}, err
}

// runSettlement runs what there is of the package.
func (s *Service) runSettlement(ctx context.Context, group *errgroup.Group) {
	p := &s.settlement
	if p.access != nil {
		task.Go(ctx, group, task.Task{Name: "tokens", Run: func(ctx context.Context) error { return s.sitOut(ctx, "tokens", p.access.Run(ctx)) }})
	}
	if p.core == nil {
		return
	}
	task.Go(ctx, group, task.Task{Name: "chain", Run: p.chain.Run}, task.Task{Name: "settlement", Run: func(ctx context.Context) error {
		defer p.events.Close()
		return s.sitOut(ctx, "settlement", p.core.Run(ctx, p.events))
	}})
}

// errNoNode means that no node has answered for a while.
var errNoNode = errors.New("no node of the chain answers")

// ready returns nil where a claim can be settled now.
func (p *settlement) ready() error {
	for _, node := range p.chain.Health() {
		if node.Available {
			return p.core.Ready()
		}
	}
	return errNoNode
}
