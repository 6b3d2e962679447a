package service

import (
	"fmt"

	"blockdesk/desk"
	"blockdesk/engine"
	"blockdesk/feed"
	"blockdesk/feed/archive"
	"blockdesk/fixgw"
	"blockdesk/fixgw/session"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// join makes the packages that use the engine. Those that follow the journal have to
// exist before it is replayed. FIX comes last, because it uses the others.
func (s *Service) join() (err error) {
	if s.feed, err = s.openFeed(); err != nil {
		return err
	}
	failed := func() error { return s.eng.Stats().Failed }
	s.desk, err = desk.New(desk.Options{Failed: failed, OnView: s.feed.TicketsChanged, Group: s.cfg.GroupNumber()}, s.eng, s.storage.Desk)
	if err != nil {
		return err
	}
	if s.history, err = archive.New(archiveOptions(s.cfg.History), s.storage.History); err != nil {
		return fmt.Errorf("history store: %w", err)
	}
	if err := s.openSettlement(); err != nil {
		return err
	}
	if err := s.openFIX(); err != nil {
		return err
	}
	s.feed.Attach(s.fix)
	return nil
}

// openFIX binds the FIX address.
func (s *Service) openFIX() error {
	secure, err := s.cfg.FIX.ServerTLS()
	if err != nil {
		return err
	}
	if secure != nil {
		s.certificateEnds = secure.Certificates[0].Leaf.NotAfter
	}
	uses := fixgw.Dependencies{MarketData: s.feed}
	if s.cfg.RFQ.Enabled {
		uses.Desk = s.desk
	}
	if core := s.settleGateway(); core != nil {
		uses.Settlement = core
	}
	messages, err := openMessageLog(&s.cfg.FIX, s.log)
	if err != nil {
		return err
	}
	options := fixgw.Options{Options: session.Options{
		Address: s.cfg.Listen.FIX, Listen: s.listenOn, TLS: secure, CompID: s.cfg.FIX.CompID, Participants: s.participants,
		Dictionary: s.program.Dictionary, MaxSessions: s.cfg.FIX.MaxSessions, Rate: s.cfg.FIX.MessagesPerSecond, MessageLog: messages,
		Prepared: s.early, Leadership: s.leadershipFor(s.events.fix, nil), Logger: s.log,
	}, Group: s.cfg.GroupNumber()}
	s.fix, err = fixgw.New(options, fixEngine{s.eng, s.events.fix}, s.storage.FIX, uses, s.set)
	return err
}

// fixEngine is the engine as the FIX gateway uses it.
type fixEngine struct {
	*engine.Engine
	reports *engine.Consumer // the gateway's; nil on a replica, which submits nothing
}

// Turn implements fixgw.Engine.
func (e fixEngine) RunInline(step func()) { e.Engine.RunInline(e.reports, step) }

// NextOrderID implements fixgw.Engine.
func (e fixEngine) NextOrderID() market.OrderID { return e.OrderIDs().Next() }

// tickets is what the feed's channel tickets says: what the REST gateway does,
// which listens before the feed runs. Nil where no desk is enabled.
func (s *Service) tickets() feed.Tickets {
	if !s.cfg.RFQ.Enabled {
		return nil
	}
	return func(each func(market.InstrumentID, market.TicketID, []byte)) (uint64, int64) {
		return s.http.Tickets(each)
	}
}

// openFeed makes the feed, without market data yet.
func (s *Service) openFeed() (*feed.Feed, error) {
	proxies, err := s.cfg.ProxyPrefixes()
	if err != nil {
		return nil, err
	}
	return feed.Open(feed.Options{
		MaxConnections: s.cfg.Feed.MaxConnections, MaxPerIP: s.cfg.Feed.ConnectionsPerIP,
		Tickets: s.tickets(), ClientIP: wire.ClientIP(proxies, ""), OtherShards: s.cfg.OtherShards(), Logger: s.log,
	}, s.instruments)
}
