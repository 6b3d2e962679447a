package service

import (
	"fmt"
	"slices"
	"time"

	"blockdesk/engine"
	"blockdesk/httpgw/admin"
)

// maxFeedLag is how long readers may be behind before the service says that it
// is not ready: our choice.
const maxFeedLag = 5 * time.Second

// feedConsumer is the feed's name among the engine's consumers.
const feedConsumer = "feed"

// chainWait is how long a start waits for the chain before it is ready without
// it: orders, market data and quotes need none.
const chainWait = 30 * time.Second

func (s *Service) adminOptions() admin.Options {
	readOnly := func() error {
		if st := s.eng.Stats(); st.Failed != nil {
			return fmt.Errorf("read-only: %w", st.Failed)
		}
		return nil
	}
	o := admin.Options{
		Addr: s.cfg.Listen.Admin, Listen: s.listenOn, Operate: s.operate(),
		Ready: []admin.Check{
			{Name: "engine", Err: readOnly},
			{Name: "journal", Err: func() error { return s.storage.Journal.Health().Failed }},
			{Name: "fix_store", Err: s.storage.FIX.Failed},
			{Name: "desk_store", Err: s.storage.Desk.Failed},
			{Name: "history_store", Err: s.storage.History.Failed},
			{Name: "settlement_store", Err: s.storage.Settlement.Failed},
			{Name: "mirror_store", Err: s.storage.Mirror.Failed},
			{Name: "feed", Err: s.feedReady},
			{Name: "disk", Err: func() error {
				if h := s.storage.Journal.Health(); h.DiskLow {
					return fmt.Errorf("%d %% free: only cancels are taken", h.FreePercent)
				}
				return nil
			}},
			{Name: "snapshot", Err: func() error { return s.storage.Journal.Health().SnapshotFailed }},
		},
		Desk:       admin.DeskSources{Stats: s.desk.Stats, View: s.desk.View, Instruments: s.set, Now: func() int64 { return time.Now().UnixNano() }},
		Collectors: s.collectors(), Logger: s.log,
	}
	if s.storage.Leading != nil {
		o.ShutdownTimeout = deposedGrace
	}
	if s.mirror.service != nil {
		o.Ready = append(o.Ready, admin.Check{Name: "mirror", Err: s.mirrorReady, Grace: mirrorWait(&s.cfg.Mirror)})
		o.Mirror = s.mirrorSources()
	}
	if core := s.settleGateway(); core != nil {
		o.Ready = append(o.Ready, admin.Check{Name: "chain", Err: core.Ready, Grace: chainWait})
		o.Settlement = core.sources()
	}
	return o
}

// feedReady returns nil where readers are not far behind.
func (s *Service) feedReady() error {
	return feedBehind(s.feed.Stats().Lag, s.eng.Stats().Consumers)
}

// feedBehind is the error of a feed whose last batch was late by lag while further
// events wait for it. If none do it is level, whenever the last ones were of: a
// follower may begin on a quiet market with a batch that is an hour old.
func feedBehind(lag time.Duration, consumers []engine.Lag) error {
	if lag <= maxFeedLag || !slices.ContainsFunc(consumers, func(c engine.Lag) bool { return c.Name == feedConsumer && c.Events > 0 }) {
		return nil
	}
	return fmt.Errorf("readers are %v behind", lag.Round(time.Millisecond))
}

// operate is what operators command.
func (s *Service) operate() *admin.Operations {
	o := &admin.Operations{
		Instruments: s.set, Operators: s.operators, Backup: s.backUp, FIX: fixSessions{s.fix, s.watch}, Cluster: s.storage.Cluster,
	}
	if s.cfg.RFQ.Enabled {
		o.Desk = s.desk
	}
	if core := s.settleGateway(); core != nil {
		o.Money = core
	}
	if tokens := s.settlement.access; tokens != nil {
		o.Tokens = tokenAdmin{tokens}
	}
	return o
}

func (s *Service) adminURL() string { return "http://" + s.admin.Addr().String() }
