package service

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"blockdesk/httpgw/admin"
	"blockdesk/service/metrics"
	"blockdesk/settle/broadcast"
)

// collectors returns the metrics of all packages.
func (s *Service) collectors() []prometheus.Collector {
	all := append(metrics.Process(s.cfg.Durability.Mode),
		metrics.Engine(s.eng.Stats), metrics.ConsumerLags(s.eng.Stats),
		metrics.Journal(s.storage.Journal.Health), metrics.JournalWrites(s.storage.Journal.Stats),
		metrics.JournalSyncs(s.storage.Journal.Stats),
		metrics.Feed(s.feed.Stats), metrics.History(s.history.Stats), metrics.FIX(s.fix.Stats), s.watchFigures(),
	)
	if !s.certificateEnds.IsZero() {
		all = append(all, admin.NewMetrics("blockdesk_fix_", func() time.Time { return s.certificateEnds }).
			Gauge("certificate_expiry_timestamp_seconds", "When the certificate of the FIX address, as it was read at the start, ends. After that no client gets in.",
				func(t *time.Time) float64 { return float64(t.Unix()) }))
	}
	if core := s.settlement.core; core != nil {
		all = append(all, metrics.Broadcast(func() broadcast.Stats { return core.Health().Tracker }))
	}
	if s.publication != nil {
		all = append(all, s.publication.figures())
	}
	all = append(all, s.storage.Metrics...)
	return append(all, s.http.Collectors()...)
}

// watchFigures are the metrics of the participants file.
func (s *Service) watchFigures() prometheus.Collector {
	return admin.NewMetrics("blockdesk_fix_participants_", func() *participantsWatch { return s.watch }).
		Counter("reloads_total", "Times that a changed participants file came in force.", func(w **participantsWatch) float64 { return float64((*w).Reloads()) }).
		Gauge("refused", "1 while the participants file as it is now is refused, and an older state is in force.", func(w **participantsWatch) float64 { return admin.BoolValue((*w).Status().Refused != "") })
}
