package service

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"

	"blockdesk/engine"
	"blockdesk/fixgw/participants"
	"blockdesk/market"
	"blockdesk/service/config"
	"blockdesk/service/demo"
)

// readParticipantsFile reads the participants file.
func readParticipantsFile(c *config.FIX) ([]participants.Participant, error) {
	text, err := os.ReadFile(c.ParticipantsFile)
	if err != nil {
		return nil, fmt.Errorf("fix.participants_file: %w", err)
	}
	list, err := participants.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.ParticipantsFile, err)
	}
	return list, nil
}

// takesOrders reports whether participants trade an instrument.
func takesOrders(c *config.Config) bool {
	return c.Role != config.RoleFollower && slices.ContainsFunc(c.Instruments, func(in config.Instrument) bool { return in.BookSource == "matched" })
}

// LoadParticipants reads the participants file, and adds the demo's at the end. A
// mirror-only configuration needs no participants file.
func LoadParticipants(c *config.Config) ([]participants.Participant, error) {
	var list []participants.Participant
	if c.FIX.ParticipantsFile != "" {
		var err error
		if list, err = readParticipantsFile(&c.FIX); err != nil {
			return nil, err
		}
	}
	if !c.Demo {
		if len(list) == 0 && takesOrders(c) {
			return nil, errors.New("no participants: set fix.participants_file, or run with --demo")
		}
		return list, nil
	}
	next := market.ParticipantID(1)
	for _, p := range list {
		next = max(next, p.Number+1)
	}
	more, err := demo.Participants(c, next)
	return append(list, more...), err
}

// LoadParticipantsOr is LoadParticipants with a fallback: if the participants file is
// refused, it logs that and returns before; it fails if before is nil.
func LoadParticipantsOr(c *config.Config, before []participants.Participant, log *slog.Logger) ([]participants.Participant, error) {
	list, err := LoadParticipants(c)
	if err != nil && before != nil {
		log.Error("participants file refused, the previous participants stay in force", "error", err)
		return before, nil
	}
	return list, err
}

// allLimits returns a participant's limits on every instrument: its own, or the default.
func allLimits(c *config.Config, p *participants.Participant, instruments []market.Instrument) ([]engine.Limits, error) {
	all := make([]engine.Limits, len(instruments))
	for i := range instruments {
		l, own := p.LimitOn(instruments[i].Symbol)
		if !own {
			l = participants.Limit{MaxQty: c.Risk.MaxQty, MaxNotional: c.Risk.MaxNotional, MaxOpenOrders: c.Risk.MaxOpenOrders, BandBps: c.Risk.BandBps}
		}
		var err error
		if all[i], err = l.Limits(&instruments[i]); err != nil {
			return nil, fmt.Errorf("participant %s on %s: %w", p.Name, instruments[i].Symbol, err)
		}
	}
	return all, nil
}
