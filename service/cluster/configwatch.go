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

// configEvery is the time between two looks at how the other nodes are configured.
const configEvery = 2 * time.Second

// configWatch tells which nodes of the group are configured differently from this
// one, so that it is known before one of them comes to lead and brings the group's
// state to its own configuration. It asks them what `cluster status` asks.
type configWatch struct {
	cfg   *config.Config
	log   *slog.Logger
	seeds []string // admin addresses of peers

	tried service.FileStamp // of the participants file that was read last; zero: none was

	mu  sync.Mutex
	own config.Fingerprint
	// apart has the parts in which a node differs, by its ID. One that does not answer
	// stays as it was: it will be so when it is back. It is replaced, never changed.
	apart map[string][]string
}

// newConfigWatch begins with the participants that are in force.
func newConfigWatch(cfg *config.Config, participants []participants.Participant, log *slog.Logger) *configWatch {
	w := &configWatch{cfg: cfg, log: log, own: config.FingerprintOf(cfg, participants), apart: map[string][]string{}}
	for i := range cfg.Peers {
		if p := &cfg.Peers[i]; p.Admin != "" {
			w.seeds = append(w.seeds, strings.TrimRight(p.Admin, "/"))
		}
	}
	return w
}

// Run looks until ctx ends.
func (w *configWatch) Run(ctx context.Context) error {
	if len(w.seeds) == 0 {
		<-ctx.Done() // nobody can be asked
		return nil
	}
	repeat.Every(ctx, configEvery, w.look)
	return nil
}

// look asks the nodes once.
func (w *configWatch) look(ctx context.Context) {
	w.readParticipants()
	v, err := operator.ReadGroup(ctx, w.seeds)
	if err != nil {
		return // nobody answers, which others tell
	}
	before, own := w.differing(), w.fingerprint()
	apart := map[string][]string{}
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
			apart[n.ID] = parts
		}
	}
	w.mu.Lock()
	w.apart = apart
	w.mu.Unlock()
	switch same := maps.EqualFunc(before, apart, slices.Equal); {
	case same:
	case len(apart) > 0:
		w.log.Warn("nodes of the group are configured differently from this one: whichever comes to lead brings the group's state to its own configuration",
			"nodes", operator.DifferencesText(apart))
	default:
		w.log.Info("the nodes of the group are configured alike")
	}
}

// readParticipants brings the fingerprint up to the participants file where that has
// changed. One that is refused changes nothing: the list of before is in force.
func (w *configWatch) readParticipants() {
	now := service.ParticipantsFileStamp(&w.cfg.FIX)
	if now == w.tried {
		return
	}
	w.tried = now
	list, err := service.LoadParticipants(w.cfg)
	if err != nil {
		return // who leads says so
	}
	own := config.FingerprintOf(w.cfg, list)
	w.mu.Lock()
	w.own = own
	w.mu.Unlock()
}

// fingerprint is this node's. Any goroutine.
func (w *configWatch) fingerprint() config.Fingerprint {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.own
}

// differing are the nodes that are configured differently, as this one has heard
// last, with the parts in which they are; not to be changed. Any goroutine.
func (w *configWatch) differing() map[string][]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.apart
}
