package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"blockdesk/engine"
	"blockdesk/fixgw"
	"blockdesk/fixgw/participants"
	"blockdesk/fixgw/session"
	"blockdesk/httpgw/admin"
	"blockdesk/market"
	"blockdesk/service/config"
	"blockdesk/service/demo"
)

// participantsPoll is the time between two checks of the participants file.
const participantsPoll = 2 * time.Second

// participantsWatch applies a changed participants file: on SIGHUP at once, otherwise
// when the file has not changed for a poll, so that a file that is being written is not
// read. A refused file changes nothing.
type participantsWatch struct {
	cfg         *config.Config
	log         *slog.Logger
	instruments []market.Instrument
	eng         *engine.Engine
	fix         *fixgw.Gateway
	follower    bool                       // the leader sets the limits
	demo        []participants.Participant // not in the file
	// limits are the last submitted limits, by instrument; a removed participant keeps
	// its limits.
	limits map[market.ParticipantID][]engine.Limits
	tried  FileStamp // of the file that was read last

	mu      sync.Mutex
	status  admin.FIXParticipants
	reloads uint64
}

// FileStamp identifies a version of a file; zero = the file cannot be read.
type FileStamp struct {
	size     int64
	modified time.Time
}

// newParticipantsWatch begins with the participants in force, those of o.Inputs.
func newParticipantsWatch(o *Options, instruments []market.Instrument, eng *engine.Engine, fix *fixgw.Gateway, follower bool) (*participantsWatch, error) {
	list := o.Inputs.Participants
	w := &participantsWatch{
		cfg: o.Config, log: o.Log, instruments: instruments, eng: eng, fix: fix, follower: follower,
		limits: make(map[market.ParticipantID][]engine.Limits), tried: o.Inputs.stamp,
		status: admin.FIXParticipants{File: o.Config.FIX.ParticipantsFile, LoadedAt: time.Now().UnixNano()},
	}
	if o.Config.Demo {
		w.demo = list[len(list)-demo.ParticipantCount:]
	}
	for i := range list {
		limits, err := allLimits(o.Config, &list[i], instruments)
		if err != nil {
			return nil, err
		}
		w.limits[list[i].Number] = limits
	}
	return w, nil
}

// ParticipantsFileStamp returns the stamp of the participants file.
func ParticipantsFileStamp(c *config.FIX) FileStamp {
	info, err := os.Stat(c.ParticipantsFile)
	if err != nil {
		return FileStamp{}
	}
	return FileStamp{info.Size(), info.ModTime()}
}

// Run watches until ctx ends.
func (w *participantsWatch) Run(ctx context.Context) error {
	hangUp := make(chan os.Signal, 1)
	signal.Notify(hangUp, syscall.SIGHUP)
	defer signal.Stop(hangUp)
	if w.cfg.FIX.ParticipantsFile == "" {
		<-ctx.Done() // and a SIGHUP does not end the service
		return nil
	}
	tick := time.NewTicker(participantsPoll)
	defer tick.Stop()
	last := w.tried
	for {
		select {
		case <-hangUp:
			last = ParticipantsFileStamp(&w.cfg.FIX)
			w.reload(ctx, last)
		case <-tick.C:
			now := ParticipantsFileStamp(&w.cfg.FIX)
			if now == last && now != w.tried {
				w.reload(ctx, now)
			}
			last = now
		case <-ctx.Done():
			return nil
		}
	}
}

// reload reads and applies the file of this stamp, and logs the result.
func (w *participantsWatch) reload(ctx context.Context, stamp FileStamp) {
	w.tried = stamp
	list, err := readParticipantsFile(&w.cfg.FIX)
	var done session.Reloaded
	if err == nil {
		done, err = w.apply(ctx, append(list, w.demo...))
	}
	if errors.Is(err, errTryAgain) {
		w.tried = FileStamp{}
	}
	log := w.log.With("file", w.cfg.FIX.ParticipantsFile)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.status.Refused = err.Error()
		log.Error("participants file refused, the previous participants stay in force", "reason", err)
		return
	}
	w.reloads++
	w.status.LoadedAt, w.status.Refused = time.Now().UnixNano(), ""
	log.Info("participants loaded", "added", len(done.Added), "returned", len(done.Returned), "removed", len(done.Removed))
}

// errTryAgain is wrapped if the engine refuses commands now: the file is tried again.
var errTryAgain = errors.New("the engine admits no commands now: the participants file is read again")

// apply puts list in force: first the changed limits, so that no participant trades
// without them, then the sessions. A follower's limits come from its leader. After the limits only the
// FIX store can fail.
func (w *participantsWatch) apply(ctx context.Context, list []participants.Participant) (done session.Reloaded, err error) {
	if err := w.fix.Check(list); err != nil {
		return done, err
	}
	fresh := make([][]engine.Limits, len(list))
	for i := range list {
		if fresh[i], err = allLimits(w.cfg, &list[i], w.instruments); err != nil {
			return done, err
		}
	}
	for i := 0; i < len(list) && !w.follower; i++ {
		known := w.limits[list[i].Number]
		for j := range fresh[i] {
			if known != nil && known[j] == fresh[i][j] {
				continue
			}
			c, err := engine.SetRiskCommand(list[i].Number, w.instruments[j].ID, fresh[i][j])
			if err != nil {
				return done, fmt.Errorf("participant %s on %s: %w", list[i].Name, w.instruments[j].Symbol, err)
			}
			if err := w.submit(ctx, &c); err != nil {
				return done, err
			}
		}
		w.limits[list[i].Number] = slices.Clone(fresh[i])
	}
	return w.fix.Reload(list)
}

// submit submits a command, and waits while the engine's ring is full.
func (w *participantsWatch) submit(ctx context.Context, c *engine.Command) error {
	for {
		err := w.eng.Submit(c)
		if err == nil {
			return nil
		}
		if !errors.Is(err, engine.ErrFull) {
			return fmt.Errorf("%w: %w", errTryAgain, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
}

// Status returns the state of the file.
func (w *participantsWatch) Status() admin.FIXParticipants {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.status
}

// Reloads returns how many changes of the file were applied.
func (w *participantsWatch) Reloads() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reloads
}

// collector has the metrics of the participants file.
func (w *participantsWatch) collector() prometheus.Collector {
	return admin.NewMetrics("blockdesk_fix_participants_", func() *participantsWatch { return w }).
		Counter("reloads_total", "Changed participants files that came in force.", func(w **participantsWatch) float64 { return float64((*w).Reloads()) }).
		Gauge("refused", "1 while the participants file is refused and an older one in force.", func(w **participantsWatch) float64 { return admin.BoolValue((*w).Status().Refused != "") })
}
