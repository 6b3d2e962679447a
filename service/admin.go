package service

import (
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"blockdesk/catalog"
	"blockdesk/engine"
	"blockdesk/httpgw/admin"
	"blockdesk/persist"
	"blockdesk/service/metrics"
	"blockdesk/settle/broadcast"
)

// maxFeedLag is how far the feed may be behind before the service is not ready: our
// choice.
const maxFeedLag = 5 * time.Second

// feedConsumer is the feed's name among the engine's consumers.
const feedConsumer = "feed"

func (s *Service) adminOptions() admin.Options {
	readOnly := func() error {
		if st := s.eng.Stats(); st.Failed != nil {
			return fmt.Errorf("read-only: %w", st.Failed)
		}
		return nil
	}
	o := admin.Options{
		Addr: s.cfg.Listen.Admin, Listen: s.o.Listen, Operate: s.operations(),
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
				switch h := s.storage.Journal.Health(); h.Disk {
				case persist.DiskLow:
					return fmt.Errorf("%d %% of the disk free, below journal.disk_low_percent: only cancels are admitted", h.FreePercent)
				case persist.DiskCritical:
					return fmt.Errorf("%d %% of the disk free, below journal.disk_critical_percent: only cancels are admitted, no backups", h.FreePercent)
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
	if s.mirror != nil {
		o.Ready = append(o.Ready, admin.Check{Name: "mirror", Err: s.mirror.ready, Grace: mirrorWait(&s.cfg.Mirror)})
		o.Mirror = s.mirror.sources()
	}
	if s.settlement != nil {
		o.Ready = append(o.Ready, admin.Check{Name: "chain", Err: s.settlement.Ready, Grace: chainWait},
			admin.Check{Name: "desk_balance", Err: s.settlement.balanceReady, Grace: 1}) // it never holds up a start
		o.Settlement = s.settlement.sources()
	}
	return o
}

// feedReady returns nil if the feed is not far behind.
func (s *Service) feedReady() error {
	return feedBehind(s.feed.Stats().Lag, s.eng.Stats().Consumers)
}

// feedBehind returns an error if the feed's last batch was late by more than maxFeedLag
// while further events wait. Without waiting events the feed is current: a follower may
// begin on a quiet market with a batch that is an hour old.
func feedBehind(lag time.Duration, consumers []engine.Lag) error {
	if lag <= maxFeedLag || !slices.ContainsFunc(consumers, func(c engine.Lag) bool { return c.Name == feedConsumer && c.Events > 0 }) {
		return nil
	}
	return fmt.Errorf("market data is %v behind the journal, at most %v", lag.Round(time.Millisecond), maxFeedLag)
}

// operations are what operators can do.
func (s *Service) operations() *admin.Operations {
	o := &admin.Operations{
		Instruments: s.set, Operators: s.setup.operators, Backup: s.backups.run, FIX: fixSessions{s.fix, s.watch}, Cluster: s.storage.Cluster,
		Markets: marketAdmin{s.eng, s.feed.View, s.storage.Format1},
	}
	if s.cfg.RFQ.Enabled {
		o.Desk = s.desk
		o.Status = admin.StatusSources{Accepting: s.http.Accepting, Unpriced: s.http.Unpriced, Network: func() string { return catalog.NetworkName(s.network()) }}
	}
	if s.prices != nil {
		o.Prices = s.prices
	}
	if s.settlement != nil {
		o.Money = s.settlement
		o.Status.Chain = s.settlement.chainHealth
	}
	if s.tokens != nil {
		o.Tokens = tokenAdmin{s.tokens}
	}
	return o
}

func (s *Service) adminURL() string { return "http://" + s.admin.Addr().String() }

// collectors returns the metrics of all packages.
func (s *Service) collectors() []prometheus.Collector {
	all := append(metrics.Process(s.cfg.Durability.Mode),
		metrics.Engine(s.eng.Stats), metrics.ConsumerLags(s.eng.Stats),
		metrics.Journal(s.storage.Journal.Health), metrics.JournalWrites(s.storage.Journal.Stats),
		metrics.JournalSyncs(s.storage.Journal.Stats),
		metrics.Feed(s.feed.Stats), metrics.History(s.history.Stats), metrics.FIX(s.fix.Stats), s.watch.collector(),
	)
	if secure := s.o.Inputs.tls; secure != nil {
		end := secure.Certificates[0].Leaf.NotAfter
		all = append(all, admin.NewMetrics("blockdesk_fix_", func() time.Time { return end }).
			Gauge("certificate_expiry_timestamp_seconds", "When the FIX certificate ends. Then no client gets in.",
				func(t *time.Time) float64 { return float64(t.Unix()) }))
	}
	if s.settlement != nil {
		all = append(all, metrics.Broadcast(func() broadcast.Stats { return s.settlement.Health().Tracker }))
	}
	if s.clockGuard != nil {
		all = append(all, s.clockGuard.collector())
	}
	if s.prices != nil {
		all = append(all, metrics.Prices(s.prices.AssetPrices))
	}
	if s.publication != nil {
		all = append(all, s.publication.collector())
	}
	if s.storage.Sizes != nil {
		all = append(all, metrics.Sizes(s.storage.Sizes))
	}
	all = append(all, s.storage.Metrics...)
	return append(all, s.http.Collectors()...)
}
