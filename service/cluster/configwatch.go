package cluster

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"blockdesk/fixgw/participants"
	"blockdesk/internal/repeat"
	"blockdesk/service"
	"blockdesk/service/config"
	"blockdesk/service/operator"
)

// configEvery is the time between two comparisons with the other nodes.
const configEvery = 2 * time.Second

// configWatch compares the configurations of the group's nodes, because each new leader
// applies its own to the group's state. It requests the same pages as `cluster status`.
type configWatch struct {
	cfg   *config.Config
	log   *slog.Logger
	seeds []string // admin addresses of peers

	tried service.FileStamp // of the participants file that was read last

	mu  sync.Mutex
	own config.Fingerprint
	// differs has the parts in which a node differs, by its ID; those of a node that does
	// not answer stay. The map is replaced, never changed.
	differs map[string][]string
}

// newConfigWatch begins with the participants in force.
func newConfigWatch(cfg *config.Config, participants []participants.Participant, log *slog.Logger) *configWatch {
	w := &configWatch{cfg: cfg, log: log, own: config.FingerprintOf(cfg, participants), differs: map[string][]string{}}
	for i := range cfg.Peers {
		if p := &cfg.Peers[i]; p.Admin != "" {
			w.seeds = append(w.seeds, strings.TrimRight(p.Admin, "/"))
		}
	}
	return w
}

// Run compares until ctx ends.
func (w *configWatch) Run(ctx context.Context) error {
	if len(w.seeds) == 0 {
		<-ctx.Done() // no peer has an admin address
		return nil
	}
	repeat.Every(ctx, configEvery, w.compare)
	return nil
}

// compare requests the configurations of the nodes once.
func (w *configWatch) compare(ctx context.Context) {
	w.readParticipants()
	v, err := operator.ReadGroup(ctx, w.seeds)
	if err != nil {
		return // no node answers, which other checks report
	}
	before, own := w.differing(), w.fingerprint()
	differs := map[string][]string{}
	for i := range v.Nodes {
		n := &v.Nodes[i]
		var parts []string
		switch {
		case n.ID == w.cfg.Cluster.ID:
		case n.Status == nil:
			parts = before[n.ID]
		case n.Status.ConfigFingerprint != "": // else its program is older
			parts = config.DifferentParts(own.Parts, n.Status.ConfigParts)
		}
		if len(parts) > 0 {
			differs[n.ID] = parts
		}
	}
	w.mu.Lock()
	w.differs = differs
	w.mu.Unlock()
	switch same := maps.EqualFunc(before, differs, slices.Equal); {
	case same:
	case len(differs) > 0:
		w.log.Warn("nodes of the group are configured differently: each new leader applies its own configuration",
			"nodes", operator.DifferencesText(differs))
	default:
		w.log.Info("all nodes of the group have the same configuration")
	}
}

// readParticipants updates the fingerprint if the participants file has changed. A refused
// file changes nothing.
func (w *configWatch) readParticipants() {
	now := service.ParticipantsFileStamp(&w.cfg.FIX)
	if now == w.tried {
		return
	}
	w.tried = now
	list, err := service.LoadParticipants(w.cfg)
	if err != nil {
		return // the leader reports it
	}
	own := config.FingerprintOf(w.cfg, list)
	w.mu.Lock()
	w.own = own
	w.mu.Unlock()
}

// fingerprint returns that of this node. Safe for concurrent use.
func (w *configWatch) fingerprint() config.Fingerprint {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.own
}

// differing returns the nodes that are configured differently, with the parts that differ.
// Do not change the map. Safe for concurrent use.
func (w *configWatch) differing() map[string][]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.differs
}
