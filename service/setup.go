package service

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"blockdesk/engine"
)

// intake is what the disk allows, once the setup is in: that has to come in on a
// full disk too, or nobody could cancel after a restart.
type intake struct {
	mu        sync.Mutex
	low, open bool
}

// DiskLow lets only cancels in while the disk is nearly full.
func (s *Service) DiskLow(low bool) {
	s.intake.mu.Lock()
	defer s.intake.mu.Unlock()
	s.intake.low = low
	s.setIntake()
}

// openIntake says that the setup is in.
func (s *Service) openIntake() {
	s.intake.mu.Lock()
	defer s.intake.mu.Unlock()
	s.intake.open = true
	s.setIntake()
}

func (s *Service) setIntake() {
	switch {
	case !s.intake.open:
	case s.intake.low:
		s.eng.SetAdmission(engine.AdmitCancels)
	default:
		s.eng.SetAdmission(engine.AdmitAll)
	}
}

// reconcile returns the commands that bring the recovered state up to the
// configuration. Configuration is journaled like everything else, so that a
// replay needs nothing but the journal.
func (s *Service) reconcile(state *engine.State) ([]engine.Command, error) {
	known := state.Instruments()
	if len(known) > len(s.instruments) {
		return nil, fmt.Errorf("the journal has instrument %s, the configuration does not: instruments may be added at the end, not taken away",
			known[len(s.instruments)].Symbol)
	}
	var out []engine.Command
	for i := range s.instruments {
		in := &s.instruments[i]
		if i < len(known) {
			if err := engine.CheckRedefinition(&known[i], in); err != nil {
				return nil, fmt.Errorf("instrument %s: the journal has another: %w", in.Symbol, err)
			}
			if known[i] == *in {
				continue
			}
		}
		c, err := engine.DefineInstrumentCommand(in)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	for i := range s.participants {
		p := &s.participants[i]
		for j := range s.instruments {
			limits, err := limitsOf(s.cfg, p, &s.instruments[j])
			if err != nil {
				return nil, fmt.Errorf("participant %s on %s: %w", p.Name, s.instruments[j].Symbol, err)
			}
			if now, known := state.Limits(p.Number, s.instruments[j].ID); known && now == limits {
				continue
			}
			c, err := engine.SetRiskCommand(p.Number, s.instruments[j].ID, limits)
			if err != nil {
				return nil, fmt.Errorf("participant %s on %s: %w", p.Name, s.instruments[j].Symbol, err)
			}
			out = append(out, c)
		}
	}
	return out, nil
}

// submitSetup sends the reconciling commands, then the desk's requests, and lets
// everything in. They come first, because the doors open after it has returned.
func (s *Service) submitSetup(ctx context.Context) error {
	for i := range s.setup {
		err := s.eng.Submit(&s.setup[i])
		for ; errors.Is(err, engine.ErrFull); err = s.eng.Submit(&s.setup[i]) {
			if err := s.followFIX(ctx); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
	}
	if err := s.submitDesk(ctx); err != nil {
		return err
	}
	s.openIntake()
	return nil
}

// followFIX gives the FIX gateway what has happened, or waits a moment where
// nothing has: nobody else follows its events yet, and the rings must not fill.
func (s *Service) followFIX(ctx context.Context) error {
	if events := s.events.fix.Poll(); len(events) > 0 {
		if err := s.fix.Replay(events); err != nil {
			return err
		}
		s.events.fix.Release(len(events))
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Millisecond):
		return nil
	}
}
