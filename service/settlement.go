package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"blockdesk/desk"
	"blockdesk/engine"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw/admin"
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

// settlement settles claims on a chain. It implements what the gateways and the operators
// use: terms.Settlement, dvp.Cosigner and admin.Money.
type settlement struct {
	*settle.Settlement
	chain  *rpc.Client
	events *engine.Consumer
	access *access.Access
	log    *slog.Logger
	// symbols are the base tokens by instrument.
	symbols []string
}

// openSettlement makes the settlement of a desk. It asks the nodes for their network, and
// refuses those of a wrong one. clock is the engine's: what is due by a wall clock that was
// ahead would wait until that time has come.
func openSettlement(
	c *config.Config, signer cosign.Signer, d *desk.Desk, eng *engine.Engine, kv Store, tokens *access.Access, clock func() int64, log *slog.Logger,
) (*settlement, error) {
	stored, err := store.Open(kv)
	if err != nil {
		return nil, fmt.Errorf("settlement store: %w", err)
	}
	nodes, err := c.Chain.RPCOptions()
	if err != nil {
		return nil, err
	}
	options, err := settleOptions(c, log)
	if err != nil {
		return nil, err
	}
	options.Now = func() time.Time { return time.Unix(0, clock()) }
	p := &settlement{access: tokens, log: log}
	for i := range c.Instruments {
		base, _, _ := strings.Cut(c.Instruments[i].Symbol, "/")
		p.symbols = append(p.symbols, base)
	}
	if p.chain, err = rpc.New(nodes); err != nil {
		return nil, fmt.Errorf("chain: %w", err)
	}
	if p.Settlement, err = settle.New(options, d, p.chain, stored, signer); err != nil {
		p.chain.Close()
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), networkWait)
	defer cancel()
	if err := p.CheckNetwork(ctx); err != nil {
		p.chain.Close()
		return nil, err
	}
	p.events = eng.Consumer("settle").WakeFor(event.Desk)
	return p, nil
}

// networkWait bounds how long a start waits for the nodes to name their network. Nodes
// that do not answer are checked later.
const networkWait = 2 * time.Second

// start gives settlement the claims of the recovered state. searchSince is when the
// journal may have lost commands: payments from then on are looked for again.
func (p *settlement) start(state *engine.State, searchSince time.Time, nodes []string) {
	p.Start(state.Desk().EachClaim, searchSince)
	p.log.Info("settlement enabled", "nodes", nodes, "desk", solana.Base58(p.Health().Desk))
}

// lostSince returns the end of a journal that the stores were reconciled with. Zero:
// the journal is complete or empty.
func lostSince(state *engine.State, reconciled bool) (at time.Time) {
	if reconciled && state.Seq() > 0 {
		at = time.Unix(0, state.At())
	}
	return at
}

// unsettled counts the claims that are paid or signed.
func unsettled(m *rfq.Machine) (n int) {
	m.EachClaim(func(c *rfq.Claim, _ []rfq.Payment) bool {
		if c.State.Live() && c.State != rfq.ClaimReserved {
			n++
		}
		return true
	})
	return n
}

// openSigner opens the desk's key file, or connects to the signer process.
func openSigner(c *config.Settle) (cosign.Signer, error) {
	var address market.Address
	if c.Desk != "" {
		var err error
		if address, err = config.ParseAddress(c.Desk); err != nil {
			return nil, fmt.Errorf("settle.desk: %w", err)
		}
	}
	if path := c.SignerSocket; path != "" {
		signer, err := cosign.Dial(path, cosign.SocketOptions{Address: address})
		if err != nil {
			return nil, fmt.Errorf("settle.signer_socket: %w", err)
		}
		return signer, nil
	}
	signer, err := cosign.OpenKeyHardened(c.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("settle.key_file: %w", err)
	}
	if address != (market.Address{}) && address != signer.Address() {
		return nil, fmt.Errorf("settle.key_file: the key is that of %s, and settle.desk is %s", solana.Base58(signer.Address()), c.Desk)
	}
	return signer, nil
}

func settleOptions(cfg *config.Config, log *slog.Logger) (settle.Options, error) {
	c := &cfg.Settle
	treasury, err := c.TreasuryWallets()
	if err != nil {
		return settle.Options{}, err
	}
	dust, err := c.DustByRail()
	return settle.Options{
		Treasury: treasury, Budget: c.Budget(), SyncBuilds: cfg.Durability.Mode != "interval",
		BlockhashLife: uint64(cfg.Chain.BlockhashSlots),
		Broadcast:     broadcast.Options{ResendEvery: config.Millis(c.ResendMS), PollEvery: config.Millis(c.PollMS)},
		Payments: settle.Payments{
			ClockTolerance: config.Seconds(c.ClockToleranceS), WatchEvery: config.Millis(c.WatchMS), Dust: dust,
		},
		Network: solana.Network(cfg.Chain.Network), TrustSingleNode: cfg.Chain.TrustSingleNode,
		Logger: log,
	}, err
}

// run starts the settlement's goroutines in a group.
func (p *settlement) run(ctx context.Context, group *errgroup.Group) {
	task.Go(ctx, group, task.Task{Name: "chain", Run: p.chain.Run}, task.Task{Name: "settlement", Run: func(ctx context.Context) error {
		defer p.events.Close()
		return awaitEndIfFailed(ctx, p.log, "settlement", p.Run(ctx, p.events))
	}})
}

// errNoNode means that no node of the chain has answered lately.
var errNoNode = errors.New("no Solana node of chain.rpc_urls answers")

// Ready returns nil if a claim can be settled now.
func (p *settlement) Ready() error {
	for _, node := range p.chain.Health() {
		if node.Available {
			return p.Settlement.Ready()
		}
	}
	return errNoNode
}

// balanceReady returns nil if no balance of the desk's wallet is low.
func (p *settlement) balanceReady() error {
	list := p.chainHealth().Balances
	for i := range list {
		if b := &list[i]; b.Problem() != "" {
			return fmt.Errorf("%s: the desk's wallet holds %d atoms of %s, and needs %d", b.Problem(), b.Atoms, b.Asset, b.Needed)
		}
	}
	return nil
}

// chainHealth returns the state of the chain as gateways publish it.
func (p *settlement) chainHealth() desk.ChainHealth {
	h := p.Health()
	out := desk.ChainHealth{
		Desk: h.Desk, Tracked: h.Working, Landed: h.Tracker.Landed, Network: string(p.Network()), Balances: slices.Clone(p.Balances()),
	}
	for i := range out.Balances {
		if b := &out.Balances[i]; b.Base && int(b.Instrument) < len(p.symbols) {
			b.Asset = p.symbols[b.Instrument]
		}
	}
	if !h.Blockhash.FetchedAt.IsZero() {
		out.BlockhashAge = max(time.Since(h.Blockhash.FetchedAt), 1)
		out.BlockhashSlot = h.Blockhash.Slot
	}
	for i := range h.Nodes {
		n := &h.Nodes[i]
		out.Nodes = append(out.Nodes, desk.ChainNode{Name: n.Name, Available: n.Available, Slot: n.Slot, Lag: n.Lag})
		out.Slot = max(out.Slot, n.Slot)
	}
	return out
}

// sources are what /metrics reads of settlement.
func (p *settlement) sources() admin.SettlementSources {
	return admin.SettlementSources{
		Chain: p.chainHealth, Money: p.MoneyCounts, Tokens: p.access.Live, SignerLimits: p.SignerLimits,
		Counts: admin.NewMetrics("blockdesk_settlement_", p.Settlement.Counts).
			Counter("packages_total", "Transactions built for clients.", func(c *settle.Counts) float64 { return float64(c.Built) }).
			Counter("refused_total", "Submissions and builds refused for price, balance, lock or terms.", func(c *settle.Counts) float64 { return float64(c.Refused) }).
			Counter("cosigned_total", "Atomic transactions signed by the desk.", func(c *settle.Counts) float64 { return float64(c.Cosigned) }).
			Counter("deliveries_total", "Deliveries signed by the desk.", func(c *settle.Counts) float64 { return float64(c.Delivered) }).
			Counter("settled_total", "Settled claims.", func(c *settle.Counts) float64 { return float64(c.Settled) }).
			Counter("released_total", "Released atomic claims.", func(c *settle.Counts) float64 { return float64(c.Released) }).
			Counter("deliveries_expired_total", "Deliveries expired without delivering.", func(c *settle.Counts) float64 { return float64(c.Expired) }).Formerly("lapsed_total").
			Counter("refund_transactions_total", "Refund transactions signed by the desk.", func(c *settle.Counts) float64 { return float64(c.Refunds) }).
			Counter("refunded_total", "Payments paid back by the desk.", func(c *settle.Counts) float64 { return float64(c.Refunded) }).
			Counter("refunds_expired_total", "Refunds expired or failed, and due again.", func(c *settle.Counts) float64 { return float64(c.RefundsExpired) }),
	}
}
