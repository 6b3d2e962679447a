package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"blockdesk/engine"
	"blockdesk/market"
	"blockdesk/persist/fanout"
	"blockdesk/persist/leadership"
)

// Upstream is the leader that a replica follows. Safe for concurrent use, except Run.
type Upstream struct {
	// Leader returns the current leader; zero if none is known.
	Leader func() leadership.Leader
	// Run applies the leader's durable frames to an engine until ctx ends.
	Run func(ctx context.Context, to fanout.Applier) error
	// Ready returns nil if the frames are recent.
	Ready   func() error
	Metrics prometheus.Collector
}

// errLacksInstruments: the leader has instruments that are not configured here.
var errLacksInstruments = errors.New("copy the leader's instruments into the configuration and restart")

// checkInstruments compares the instruments that the leader has defined with a follower's
// own. The follower may have more: the leader defines them later. An error that wraps
// errLacksInstruments means that it has fewer, and the others can be served; any other
// error means that an instrument differs.
func checkInstruments(leader, own []market.Instrument) error {
	for i := range min(len(leader), len(own)) {
		if err := engine.CheckRedefinition(&leader[i], &own[i]); err != nil {
			return fmt.Errorf("instrument %s differs from the leader's: %w", own[i].Symbol, err)
		}
	}
	if len(leader) <= len(own) {
		return nil
	}
	var more []string
	for _, in := range leader[len(own):] {
		more = append(more, in.Symbol)
	}
	return fmt.Errorf("%s: defined by the leader, missing in instruments: %w", strings.Join(more, ", "), errLacksInstruments)
}

// replicaEngine applies the leader's frames to the engine, and checks the instruments that
// they define. If the leader has an instrument that is not configured here, the other books
// are served and the service is not ready.
type replicaEngine struct {
	eng   *engine.Engine
	own   []market.Instrument
	log   *slog.Logger
	lacks atomic.Pointer[error] // wraps errLacksInstruments; nil: none is missing
}

// Apply implements fanout.Applier. It fails if the engine does, or if the leader has
// defined an instrument that is another one here: its book must not be shown.
func (r *replicaEngine) Apply(prior uint64, commands []engine.Command) error {
	if err := r.eng.Apply(prior, commands); err != nil {
		return err
	}
	if !slices.ContainsFunc(commands, func(c engine.Command) bool { return c.Kind == engine.DefineInstrument }) {
		return nil
	}
	return r.compare(r.eng.Instruments())
}

// compare compares the leader's instruments with the configured ones. It notes those that are
// missing here, and returns the error of one that differs. Not for concurrent use.
func (r *replicaEngine) compare(leader []market.Instrument) error {
	err := checkInstruments(leader, r.own)
	if !errors.Is(err, errLacksInstruments) {
		return err
	}
	if was := r.lacks.Swap(&err); was == nil || (*was).Error() != err.Error() {
		r.log.Error("not ready until a restart with the leader's instruments", "error", err)
	}
	return nil
}

// complete returns nil if all of the leader's instruments are configured here. Safe for
// concurrent use.
func (r *replicaEngine) complete() error {
	if err := r.lacks.Load(); err != nil {
		return *err
	}
	return nil
}
