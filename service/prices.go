package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
	"blockdesk/mirror"
	"blockdesk/prices"
	"blockdesk/service/config"
	"blockdesk/service/task"
)

// priceFeed reads the sources of the configured prices and gives the engine their
// judgements. It implements what operators and documents use of them.
type priceFeed struct {
	*prices.Feed
	desk   requester
	assets []pricedAsset
	log    *slog.Logger
}

// requester is the desk as the feed of prices uses it.
type requester interface {
	Do(r rfq.Request) (*desk.Result, error)
}

// pricedAsset is an asset and what the engine prices by it.
type pricedAsset struct {
	prices.Asset
	rail  bool // its price is that of the rail SOL
	pairs []market.InstrumentID
}

// openPrices makes the feed of the configured prices; nil if no asset has a rule.
func openPrices(c *config.Config, d *desk.Desk, settles *settlement, mirror *chainMirror, log *slog.Logger) (*priceFeed, error) {
	if !c.RFQ.Enabled {
		return nil, nil
	}
	if by := c.PricedByOperator(); len(by) > 0 && settles != nil && !c.Demo {
		log.Warn("prices are set by hand: no source is configured", "assets", by, "key", "prices")
	}
	all, err := c.PriceAssets()
	if err != nil {
		return nil, err
	}
	sold, err := c.DeskPairs()
	if err != nil {
		return nil, err
	}
	p := &priceFeed{desk: d, log: log}
	for i := range all {
		a := pricedAsset{Asset: all[i], rail: all[i].Name == config.SolAsset}
		for j := range sold {
			if config.BaseOf(sold[j].Symbol) == a.Name {
				a.pairs = append(a.pairs, sold[j].Pair.Instrument)
			}
		}
		if !a.rail && len(a.pairs) == 0 {
			continue // of another group's pairs
		}
		if rule := c.Prices[a.Name]; rule.Has(prices.Pool) {
			a.Pool = mirror.poolPrice(rule.Pool)
		}
		a.OperatorPrice, a.OperatorPriceAt = lastOperatorPrice(d.View(), &a)
		p.assets = append(p.assets, a)
	}
	if len(p.assets) == 0 {
		return nil, nil
	}
	o := prices.Options{Publish: p.publish, Nodes: noNodes{}, Logger: log}
	for i := range p.assets {
		o.Assets = append(o.Assets, p.assets[i].Asset)
	}
	if settles != nil {
		o.Nodes = settles.chain
	}
	p.Feed, err = prices.NewFeed(o)
	return p, err
}

// noNodes are the nodes of a service without a chain.
type noNodes struct{}

// Upstreams implements prices.Nodes.
func (noNodes) Upstreams() int { return 1 }

// AccountsFromEach implements prices.Nodes.
func (noNodes) AccountsFromEach(context.Context, []solana.Address, rpc.Commitment, uint64) ([]rpc.NodeAccounts, error) {
	return nil, errNoNode
}

// lastOperatorPrice returns the price of an asset if an operator has set the one in force.
func lastOperatorPrice(v *rfq.View, a *pricedAsset) (price market.USDPrice, at int64) {
	if a.rail {
		for i := range v.RailPrices {
			if r := &v.RailPrices[i]; r.Rail == market.RailSOL && byOperator(r.Source) {
				return r.Price, r.At
			}
		}
	}
	for _, in := range a.pairs {
		if pair := v.Pair(in); pair != nil && byOperator(pair.AnchorSource) {
			return pair.Anchor, pair.AnchorAt
		}
	}
	return 0, 0
}

func byOperator(o rfq.PriceOrigin) bool { return o == rfq.OriginOperator || o == rfq.OriginUnknown }

// errRefused means that the engine has refused a price.
var errRefused = errors.New("the engine refuses the price")

// publish gives the engine the price of an asset, or that it has none.
func (p *priceFeed) publish(_ context.Context, i int, j prices.Judgement) error {
	a := &p.assets[i]
	withdrawn := j.Fault != prices.NoFault
	var requests []rfq.Request
	if a.rail {
		requests = append(requests, &rfq.SetRailPrice{
			Rail: market.RailSOL, Price: j.Price, MaxAge: a.Rule.MaxAge, Source: rfq.PriceOrigin(j.Source),
			Confidence: j.Confidence, PublishedAt: j.At, Withdrawn: withdrawn,
		})
	}
	for _, in := range a.pairs {
		requests = append(requests, &rfq.SetAnchor{
			Instrument: in, Price: j.Price, Source: rfq.PriceOrigin(j.Source),
			Confidence: j.Confidence, PublishedAt: j.At, Withdrawn: withdrawn,
		})
	}
	for _, r := range requests {
		result, err := p.desk.Do(r)
		if err != nil {
			return err
		}
		if result.Reason != 0 {
			return fmt.Errorf("%w: %s", errRefused, result.Reason)
		}
	}
	return nil
}

// run starts the feed in a group, and waits until it has read its sources once, so that
// the first client finds prices.
func (p *priceFeed) run(ctx context.Context, group *errgroup.Group) {
	task.Go(ctx, group, task.Task{Name: "prices", Run: p.Run})
	select {
	case <-p.First():
	case <-ctx.Done():
	}
}

// TryPrice checks a price that an operator wants to set for an asset. It returns a
// function to call once the engine has taken the price.
func (p *priceFeed) TryPrice(asset string, price market.USDPrice) (taken func(), err error) {
	i := slices.IndexFunc(p.assets, func(a pricedAsset) bool { return a.Name == asset })
	if i < 0 {
		return func() {}, nil
	}
	if err := p.CheckOperatorPrice(i, price); err != nil {
		return nil, err
	}
	return func() { p.SetOperatorPrice(i, price, time.Now().UnixNano()) }, nil
}

// AssetPrices returns the prices of the assets that have rules.
func (p *priceFeed) AssetPrices() []desk.AssetPrice {
	states := p.State()
	out := make([]desk.AssetPrice, len(states))
	for i := range states {
		s, rule := &states[i], &p.assets[i].Rule
		out[i] = desk.AssetPrice{
			Asset: p.assets[i].Name, Price: s.Price, Confidence: s.Confidence, PublishedAt: s.At,
			Fault: s.Fault.String(), MaxAge: rule.MaxAge,
		}
		if s.Price != 0 {
			out[i].Source = s.Source.String()
		} else if s.ReadAt == 0 {
			out[i].Fault = prices.Missing.String()
		}
		for k, source := range rule.Sources {
			one := desk.PriceSource{Name: source.String(), Fault: s.Faults[k].String()}
			for _, o := range s.Observed {
				if o.Source == source {
					one.Price, one.PublishedAt = o.Price, o.At
				}
			}
			out[i].Sources = append(out[i].Sources, one)
		}
	}
	return out
}

// poolPrice returns a function that returns the spot price of a pair's pool in dollars and
// the chain's time of it.
func (m *chainMirror) poolPrice(symbol string) func() (market.USDPrice, int64, bool) {
	return func() (market.USDPrice, int64, bool) {
		state := m.State()
		i := slices.IndexFunc(state.Pairs, func(p mirror.PairState) bool { return p.Instrument.Symbol == symbol })
		if i < 0 {
			return 0, 0, false
		}
		pair := &state.Pairs[i]
		if pair.Pool == nil || pair.Pool.Stopped || !pair.Fresh() {
			return 0, 0, false
		}
		price, ok := pair.Pool.Spot(market.USDPriceDecimals)
		return market.USDPrice(price), pair.Pool.At.Unix * int64(time.Second), ok && price <= uint64(market.MaxUSDPrice)
	}
}
