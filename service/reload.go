package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"blockdesk/engine"
	"blockdesk/fixgw/participants"
	"blockdesk/fixgw/session"
	"blockdesk/httpgw/admin"
	"blockdesk/market"
	"blockdesk/service/config"
	"blockdesk/service/demo"
)

// participantsPoll is how often the participants file is looked at.
const participantsPoll = 2 * time.Second

// participantsWatch brings the participants file in force again when it has
// changed: on SIGHUP at once, else when it has stood still for a poll, so that one
// that is being written is not read. What the file may not say leaves all as it
// was.
type participantsWatch struct {
	service *Service
	demo    []participants.Participant // whom no file has
	// limits are those that the engine has been told, by instrument; who was taken
	// out of the file keeps his.
	limits map[market.ParticipantID][]engine.Limits
	tried  FileStamp // of the file that was read last

	mu      sync.Mutex
	status  admin.FIXParticipants
	reloads uint64
}

// FileStamp is what tells that a file has changed; zero = it cannot be seen.
type FileStamp struct {
	size     int64
	modified time.Time
}

// newParticipantsWatch begins with what is in force: s.participants.
func (s *Service) newParticipantsWatch() (*participantsWatch, error) {
	w := &participantsWatch{service: s, limits: make(map[market.ParticipantID][]engine.Limits), tried: s.participantsState}
	w.status = admin.FIXParticipants{File: s.cfg.FIX.ParticipantsFile, LoadedAt: time.Now().UnixNano()}
	if s.cfg.Demo {
		w.demo = s.participants[len(s.participants)-demo.ParticipantCount:]
	}
	for i := range s.participants {
		limits, err := s.limitsOf(&s.participants[i])
		if err != nil {
			return nil, err
		}
		w.limits[s.participants[i].Number] = limits
	}
	return w, nil
}

// limitsOf returns a participant's limits on every instrument.
func (s *Service) limitsOf(p *participants.Participant) ([]engine.Limits, error) {
	all := make([]engine.Limits, len(s.instruments))
	for i := range s.instruments {
		var err error
		if all[i], err = limitsOf(s.cfg, p, &s.instruments[i]); err != nil {
			return nil, fmt.Errorf("participant %s on %s: %w", p.Name, s.instruments[i].Symbol, err)
		}
	}
	return all, nil
}

// ParticipantsFileStamp returns the size and the time of the participants file, the
// zero state where there is none.
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
	if w.service.cfg.FIX.ParticipantsFile == "" {
		<-ctx.Done() // and a SIGHUP does not end the service
		return nil
	}
	tick := time.NewTicker(participantsPoll)
	defer tick.Stop()
	last := w.tried
	for {
		select {
		case <-hangUp:
			last = ParticipantsFileStamp(&w.service.cfg.FIX)
			w.reload(ctx, last)
		case <-tick.C:
			now := ParticipantsFileStamp(&w.service.cfg.FIX)
			if now == last && now != w.tried {
				w.reload(ctx, now)
			}
			last = now
		case <-ctx.Done():
			return nil
		}
	}
}

// reload reads the file, whose state is known, and says what has come of it.
func (w *participantsWatch) reload(ctx context.Context, state FileStamp) {
	w.tried = state
	list, err := readParticipantsFile(&w.service.cfg.FIX)
	var done session.Reloaded
	if err == nil {
		done, err = w.apply(ctx, append(list, w.demo...))
	}
	if errors.Is(err, errTryAgain) {
		w.tried = FileStamp{}
	}
	log := w.service.log.With("file", w.service.cfg.FIX.ParticipantsFile)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.status.Refused = err.Error()
		log.Error("participants refused: those that were in force stay", "reason", err)
		return
	}
	w.reloads++
	w.status.LoadedAt, w.status.Refused = time.Now().UnixNano(), ""
	log.Info("participants loaded", "added", len(done.Added), "returned", len(done.Returned), "removed", len(done.Removed))
}

// errTryAgain is wrapped where the engine takes no command now.
var errTryAgain = errors.New("the engine takes no limits now")

// apply brings list in force: the limits first, so that nobody trades without, as
// far as they have changed; those of a follower are its leader's to set. Only a fault
// of the FIX store can come after them.
func (w *participantsWatch) apply(ctx context.Context, list []participants.Participant) (done session.Reloaded, err error) {
	if err := w.service.fix.Check(list); err != nil {
		return done, err
	}
	fresh := make([][]engine.Limits, len(list))
	for i := range list {
		if fresh[i], err = w.service.limitsOf(&list[i]); err != nil {
			return done, err
		}
	}
	for i := range list {
		if w.service.upstream != nil {
			break
		}
		known := w.limits[list[i].Number]
		for j := range fresh[i] {
			if known != nil && known[j] == fresh[i][j] {
				continue
			}
			c, err := engine.SetRiskCommand(list[i].Number, w.service.instruments[j].ID, fresh[i][j])
			if err != nil {
				return done, fmt.Errorf("participant %s on %s: %w", list[i].Name, w.service.instruments[j].Symbol, err)
			}
			if err := w.submit(ctx, &c); err != nil {
				return done, err
			}
		}
		w.limits[list[i].Number] = slices.Clone(fresh[i])
	}
	return w.service.fix.Reload(list)
}

// submit waits while the engine's ring is full.
func (w *participantsWatch) submit(ctx context.Context, c *engine.Command) error {
	for {
		err := w.service.eng.Submit(c)
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

// Status tells what of the file is in force.
func (w *participantsWatch) Status() admin.FIXParticipants {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.status
}

// Reloads counts the changes of the file that came in force.
func (w *participantsWatch) Reloads() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reloads
}
