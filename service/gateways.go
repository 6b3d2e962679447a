package service

import (
	"cmp"
	"context"
	"time"

	"blockdesk/catalog"
	"blockdesk/desk"
	"blockdesk/engine"
	"blockdesk/feed"
	"blockdesk/fixgw"
	"blockdesk/fixgw/messagelog"
	"blockdesk/fixgw/session"
	"blockdesk/httpgw"
	"blockdesk/httpgw/wire"
	"blockdesk/internal/solana"
	"blockdesk/market"
	"blockdesk/persist/leadership"
	"blockdesk/sdk"
	"blockdesk/service/config"
)

// newFeed makes the feed, without market data yet.
func (s *Service) newFeed() (*feed.Feed, error) {
	proxies, err := s.cfg.ProxyPrefixes()
	if err != nil {
		return nil, err
	}
	return feed.Open(feed.Options{
		MaxConnections: s.cfg.Feed.MaxConnections, MaxPerIP: s.cfg.Feed.ConnectionsPerIP,
		ClientIP: wire.NewProxies(proxies, "").Client, OtherShards: s.cfg.OtherShards(), Logger: s.log,
	}, s.instruments)
}

// listenFIX makes the FIX gateway and binds its address.
func (s *Service) listenFIX() (err error) {
	c := &s.cfg.FIX
	uses := fixgw.Dependencies{MarketData: s.feed}
	if s.cfg.RFQ.Enabled {
		uses.Desk = s.desk
	}
	if s.settlement != nil {
		uses.Settlement = s.settlement
	}
	if c.MessageLogDir != "" {
		s.messages, err = messagelog.Open(messagelog.Options{
			Dir: c.MessageLogDir, FileBytes: int64(c.MessageLogFileMiB) << 20, KeepFiles: c.MessageLogFiles, Logger: s.log,
		})
		if err != nil {
			return err
		}
	}
	var roll time.Duration
	if c.SequenceRoll != "" {
		if roll, err = config.ParseTimeOfDay(c.SequenceRoll); err != nil {
			return err
		}
	}
	s.fix, err = fixgw.New(fixgw.Options{Options: session.Options{
		Address: s.cfg.Listen.FIX, Listen: s.o.Listen, TLS: s.o.Inputs.tls, CompID: c.CompID, Participants: s.o.Inputs.Participants,
		Dictionary: s.o.Program.Dictionary, MaxSessions: c.MaxSessions, Rate: c.MessagesPerSecond, MessageLog: s.messages,
		KeepMessages: c.KeepMessages, KeepFor: time.Duration(c.KeepDays) * 24 * time.Hour, RollAt: roll, Prepared: s.o.Sessions, Leadership: s.leadershipFor(s.events.fix, nil), Logger: s.log,
	}, Group: s.cfg.GroupNumber(), Format1: s.storage.Format1}, fixEngine{s.eng, s.events.fix}, s.storage.FIX, uses, s.set)
	return err
}

// fixEngine is the engine as the FIX gateway uses it.
type fixEngine struct {
	*engine.Engine
	reports *engine.Consumer // the gateway's; nil on a replica, which submits nothing
}

// RunInline implements fixgw.Engine.
func (e fixEngine) RunInline(step func()) { e.Engine.RunInline(e.reports, step) }

// NextOrderID implements fixgw.Engine.
func (e fixEngine) NextOrderID() market.OrderID { return e.OrderIDs().Next() }

// NextOrderIDs implements fixgw.Engine.
func (e fixEngine) NextOrderIDs(n int) market.OrderID { return e.OrderIDs().NextN(n) }

// leadershipFor returns the leadership for a gateway whose state follows a consumer of the
// engine's events (see barrier); nil on a single node.
func (s *Service) leadershipFor(behind *engine.Consumer, viewed func(context.Context) error) *leadership.Leadership {
	switch t := s.storage.Leading; {
	case s.upstream != nil:
		return &leadership.Leadership{Leader: s.upstream.Leader, ReadOnly: true}
	case t != nil:
		return &leadership.Leadership{Leader: t.Leader, Deposed: t.Deposed, Barrier: barrier(s.eng, t.Confirm, behind, viewed)}
	}
	return nil
}

// listen makes the REST and the admin gateway and binds their addresses.
func (s *Service) listen() error {
	proxies, err := s.cfg.ProxyPrefixes()
	if err != nil {
		return err
	}
	specification, err := sdk.Files.ReadFile(sdk.Specification)
	if err != nil {
		return err
	}
	limits := &s.cfg.HTTP
	options := httpgw.Options{
		Base: s.cfg.Listen.Base, API: s.cfg.Listen.API, WS: s.cfg.Listen.WS, Listen: s.o.Listen,
		URLs: catalog.URLs{
			Base: s.cfg.URLs.Base, API: s.cfg.URLs.API, WS: s.cfg.URLs.WS, Mirror: s.cfg.URLs.Mirror, Native: s.cfg.URLs.Native,
		},
		Instruments: s.set, Shards: s.o.Inputs.shards, Specification: specification, Downloads: s.o.Program.Downloads, TrustedProxies: proxies, Logger: s.log,
		Description: wire.Description{Operator: s.cfg.Operator.Name, Contacts: s.cfg.Operator.Contacts, GitHub: s.cfg.Operator.GitHub},
		Market:      rate(limits.MarketDataPerMinute, limits.MarketDataBurst),
		Partner:     rate(limits.PartnerPerMinute, limits.PartnerBurst),
		RFQWrite:    rate(limits.RFQWritesPerMinute, limits.RFQWritesBurst),
		Handshake:   rate(limits.HandshakePerMinute, max(1, limits.HandshakePerMinute)),
		DvP:         window(limits.DvPPerMinute),
		TokenWindow: s.cfg.TokenWindow(), FeeBps: s.cfg.RFQ.FeeBps,
		Leadership: s.leadershipFor(s.events.desk, s.desk.AwaitView), RedirectTargets: s.cfg.NodeURLs(),
		NoLimits: limits.MarketDataPerMinute == 0 && limits.PartnerPerMinute == 0 && limits.RFQWritesPerMinute == 0 &&
			limits.HandshakePerMinute == 0 && limits.DvPPerMinute == 0,
	}
	if s.chain != nil {
		options.DemoChain = s.chain.URL()
	}
	if s.storage.Leading != nil {
		options.ShutdownTimeout = deposedGrace
	}
	if s.http, err = httpgw.New(options, s.feed, s.dependencies()); err != nil {
		return err
	}
	if s.cfg.RFQ.Enabled {
		s.feed.ServeTickets(s.http.Tickets, s.http.TicketsHold)
		if s.upstream == nil { // a follower has no settlement, and sales only since it has joined
			s.feed.ServeSales(s.http.Sales)
		}
	}
	return nil
}

// dependencies returns what the REST gateway uses. Without a chain there is no
// settlement, and claims answer that the chain is unavailable.
func (s *Service) dependencies() httpgw.Dependencies {
	d := httpgw.Dependencies{History: s.history, Facts: s.facts().Facts, Network: func() string { return catalog.NetworkName(s.network()) }}
	if s.upstream != nil {
		d.History = replicaHistory{s.history}
	}
	if s.cfg.Role != config.RoleNode {
		d.WebSocket, d.Stream, d.WebSocketHealth = s.feed.Handler, s.feed.Stream, func() any { return s.feed.Health() }
	}
	if s.cfg.RFQ.Enabled {
		d.Desk = s.desk
	}
	if s.tokens != nil {
		d.Handshake = s.tokens
	}
	if s.settlement != nil {
		d.Settlement, d.Cosigner, d.ChainHealth = s.settlement, s.settlement, s.settlement.chainHealth
	}
	if s.prices != nil {
		d.Prices = s.prices.AssetPrices
	}
	if s.mirror != nil {
		d.Signatures, d.Swaps = s.mirror, s.mirror
	}
	return d
}

// network returns the network on which trades execute: that of settlement's nodes, or else
// of the mirror's, or the configured one before enough of them have answered; "" = unknown.
func (s *Service) network() string {
	nodes := solana.Network("")
	switch {
	case s.settlement != nil:
		nodes = s.settlement.Network()
	case s.mirror != nil:
		nodes = s.mirror.network.get()
	}
	return cmp.Or(string(nodes), s.cfg.Chain.Network)
}

// maxRefunds bounds the refunds that are summed up; more are only counted.
const maxRefunds = 10_000

// maxUnmatched bounds the unmatched payments that are summed up; more are only counted.
const maxUnmatched = 1000

// facts returns the facts of the published documents, with the token list numbered.
func (s *Service) facts() *catalog.Cache {
	about := describeService(s.cfg, s.o.Program.Hash)
	tokens, pairs := catalogTokens(s.cfg), catalogPairs(s.cfg)
	edition, err := numberList(s.storage.Files, &catalog.Facts{Service: about, Tokens: tokens})
	if err != nil {
		s.log.Error("token list version not stored: it may repeat a published version", "error", err)
	}
	about.TokenListEdition = edition
	return catalog.NewCache(func(at catalog.Time) *catalog.Input {
		about := about
		about.Network, about.NetworkUnknown = catalog.NetworkName(s.network()), (s.settlement != nil || s.mirror != nil) && s.network() == ""
		in := &catalog.Input{
			At: at, Service: about, URLs: s.http.URLs(), Tokens: tokens, Instruments: s.instruments,
			Views: s.feed, History: s.history, Mirror: catalog.Mirror{Pairs: pairs}, DeskEnabled: s.cfg.RFQ.Enabled,
		}
		if s.mirror != nil {
			in.Mirror.State, in.Mirror.Trades = s.mirror.State(), s.mirror
		}
		if in.DeskEnabled {
			in.Desk = s.desk.View()
			if s.upstream == nil { // a follower has the sales since it has joined
				in.Sales = s.desk
			}
		}
		if s.settlement != nil {
			h := s.settlement.Health()
			in.Settlement = &catalog.Settlement{
				Nodes: h.Nodes, UnderWay: h.Working, RefundsDue: h.Money.RefundsDue, Refunds: s.settlement.RefundsDue(solana.Signature{}, maxRefunds),
				Unmatched: h.Money.Unmatched, Balances: s.settlement.Balances(),
			}
			if h.Money.Unmatched > 0 {
				// If the store cannot be read, which its readiness check reports, there is the number alone.
				in.Settlement.UnmatchedItems, _ = s.settlement.Money(desk.MoneyUnmatched, desk.MoneyCursor{}, maxUnmatched)
			}
		}
		return in
	}, time.Now)
}
