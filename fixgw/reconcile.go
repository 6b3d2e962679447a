package fixgw

import (
	"fmt"

	"blockdesk/engine"
	"blockdesk/persist/projection"
)

// lostText is the Text (58) of a report of an order or claim that the engine has lost.
const lostText = "lost_by_restart"

// Start ends the recovery of a store that has processed the events of every command. It
// returns projection.ErrUnfinished if a crash interrupted a Reconcile, which must then be
// called again.
func (g *Gateway) Start(s *engine.State) error {
	g.orders.RestoreTerms(s)
	if g.reporter.Unfinished() {
		return fmt.Errorf("FIX store: %w", projection.ErrUnfinished)
	}
	return nil
}

// Reconcile makes the store agree with the engine, in place of Start, in two cases: the
// journal has lost commands whose reports are in the store (a crash in mode interval, an
// older backup), or the store has lost events that the journal no longer has. Before Run.
//
// s is the recovered state. An order that only the store has is reported as cancelled. The
// returned commands cancel every order that the store lacks, or has with another open
// quantity; the engine must execute them before all others. The Reconcile is finished when
// the reporter has processed the last of them; a crash before that leaves it unfinished.
// Fills that were reported and then lost are not corrected, because no record of them is
// left.
//
// A claim that only the store has is reported as cancelled. A claim that differs from the
// desk's is reported as restated. Quotes end without a report.
func (g *Gateway) Reconcile(s *engine.State) ([]engine.Command, error) {
	g.orders.RestoreTerms(s)
	cancels := g.orders.Foreign(s)
	last, err := g.follower.Reconcile(s, g.options.Now().UnixNano(), func(commit func() error) error {
		if err := g.orders.ReportLost(s, lostText, commit); err != nil {
			return err
		}
		return g.quotes.Reconcile(s.Desk(), lostText, commit)
	})
	return append(cancels, last), err
}
