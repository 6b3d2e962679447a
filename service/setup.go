package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"blockdesk/desk"
	"blockdesk/engine"
	"blockdesk/engine/rfq"
	"blockdesk/fixgw/participants"
	"blockdesk/httpgw/admin"
	"blockdesk/market"
	"blockdesk/service/config"
)

// admission is the engine's admission control: everything, or only cancels while the
// disk is nearly full. It has no effect before open, because the setup must be
// submitted on a full disk too: nobody could cancel after a restart otherwise. Safe for
// concurrent use.
type admission struct {
	mu  sync.Mutex
	low bool
	eng *engine.Engine // nil: not open
}

// diskLow notes whether the disk is nearly full.
func (a *admission) diskLow(low bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.low = low
	a.apply()
}

// open begins to admit commands. The setup is submitted.
func (a *admission) open(eng *engine.Engine) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.eng = eng
	a.apply()
}

func (a *admission) apply() {
	switch {
	case a.eng == nil:
	case a.low:
		a.eng.SetAdmission(engine.AdmitCancels)
	default:
		a.eng.SetAdmission(engine.AdmitAll)
	}
}

// setup brings the recovered state up to the configuration. It is journaled like
// everything else, so that a replay needs only the journal.
type setup struct {
	commands  []engine.Command
	desk      *deskPlan // nil: the desk is not enabled
	operators []admin.Operator
	demoToken string // of the demo's operator
	files     StateFiles
}

// planSetup compares the recovered state and the desk's view with the configuration. first
// are commands that must come before all others.
func planSetup(o *Options, storage *Storage, state *engine.State, view *rfq.View, instruments []market.Instrument, first []engine.Command) (*setup, error) {
	configured, err := configure(o.Config, state, instruments, o.Inputs.Participants)
	if err != nil {
		return nil, err
	}
	if storage.Format1 {
		configured = slices.DeleteFunc(configured, func(c engine.Command) bool {
			return c.Kind == engine.SetAuctions || c.Kind == engine.SetInstrument
		})
	}
	p := &setup{commands: append(first, configured...), files: storage.Files}
	if err := p.planDesk(o.Config, view, o.Log); err != nil {
		return nil, err
	}
	if storage.Format1 && p.desk != nil {
		p.desk.requests = withoutNewer(p.desk.requests, view)
		o.Log.Warn("the upgrade of the group is not finalized: the desk has the rules of release 0.1.0 until `blockdesk cluster finalize`")
	}
	if storage.Leading == nil || state.Seq() == 0 {
		return p, nil
	}
	// The state is a group's.
	const warning = "configuration differs from the group's state: applying this leader's"
	if n := len(configured); n > 0 {
		o.Log.Warn(warning, "commands", n)
	}
	if p.desk != nil && len(p.desk.requests) > 0 {
		o.Log.Warn(warning, "first", p.desk.requests[0].key, "requests", len(p.desk.requests))
	}
	return p, nil
}

// planDesk numbers the operators, and compares the desk with the configuration.
func (p *setup) planDesk(c *config.Config, view *rfq.View, log *slog.Logger) (err error) {
	if !c.RFQ.Enabled {
		p.operators, err = PlainOperators(c)
		return err
	}
	if p.operators, p.demoToken, err = makeOperators(c); err != nil {
		return err
	}
	if p.desk, err = newDeskPlan(c, view, p.operators, p.files); err != nil {
		return err
	}
	if keys := c.Placeholders(); len(keys) > 0 && !c.Demo {
		log.Warn("placeholder addresses: nothing can be settled with them", "keys", keys)
	}
	return nil
}

// submit sends the commands and then the desk's requests. The gateways run after it, so
// that the setup comes first; followFIX empties the FIX consumer meanwhile.
func (p *setup) submit(ctx context.Context, eng *engine.Engine, d *desk.Desk, followFIX func(context.Context) error) error {
	for i := range p.commands {
		err := eng.Submit(&p.commands[i])
		for ; errors.Is(err, engine.ErrFull); err = eng.Submit(&p.commands[i]) {
			if err := followFIX(ctx); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
	}
	if p.desk == nil {
		return nil
	}
	for _, r := range p.desk.requests {
		result, err := d.Do(r.Request)
		if err != nil {
			return fmt.Errorf("%s: %w", r.key, err)
		}
		if result.Reason != 0 {
			return fmt.Errorf("%s: the desk refuses it: %s (limit %d)", r.key, result.Reason, result.Limit)
		}
		if err := followFIX(ctx); err != nil {
			return err
		}
	}
	return p.desk.applied.write(p.files)
}

// configure returns the commands that bring the recovered state up to the configured
// instruments and limits.
func configure(c *config.Config, state *engine.State, instruments []market.Instrument, list []participants.Participant) ([]engine.Command, error) {
	known := state.Instruments()
	if len(known) > len(instruments) {
		return nil, fmt.Errorf("the journal has instrument %s, the configuration does not: instruments may be added at the end, not removed",
			known[len(instruments)].Symbol)
	}
	var out []engine.Command
	for i := range instruments {
		in := &instruments[i]
		if i < len(known) {
			if err := engine.CheckRedefinition(&known[i], in); err != nil {
				return nil, fmt.Errorf("instrument %s differs from the one in the journal: %w: restore the value, or start with an empty data folder", in.Symbol, err)
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
	auctions, err := configureAuctions(c, state, instruments, len(known))
	if err != nil {
		return nil, err
	}
	out = append(out, auctions...)
	for i := range list {
		p := &list[i]
		limits, err := allLimits(c, p, instruments)
		if err != nil {
			return nil, err
		}
		for j := range instruments {
			if now, known := state.Limits(p.Number, instruments[j].ID); known && now == limits[j] {
				continue
			}
			c, err := engine.SetRiskCommand(p.Number, instruments[j].ID, limits[j])
			if err != nil {
				return nil, fmt.Errorf("participant %s on %s: %w", p.Name, instruments[j].Symbol, err)
			}
			out = append(out, c)
		}
	}
	return out, nil
}

// configureAuctions returns the commands that set the auction rules, and begin the opening
// auctions of the instruments behind the first known ones, which have never traded.
func configureAuctions(c *config.Config, state *engine.State, instruments []market.Instrument, known int) ([]engine.Command, error) {
	rules, err := c.AuctionRules(instruments)
	if err != nil {
		return nil, err
	}
	var out []engine.Command
	for i := range rules {
		id := instruments[i].ID
		if rules[i] == state.AuctionRules(id) {
			continue
		}
		c, err := engine.SetAuctionsCommand(id, rules[i])
		if err != nil {
			return nil, fmt.Errorf("instrument %s: %w", instruments[i].Symbol, err)
		}
		out = append(out, c)
		if opening := rules[i].Opening; i >= known && opening != 0 {
			out = append(out, engine.Command{Kind: engine.SetInstrument, Instrument: id, Status: engine.StatusAuction, Arg: uint64(opening)})
		}
	}
	return out, nil
}
