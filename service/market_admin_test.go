package service

import (
	"context"
	"errors"
	"testing"
	"time"

	"blockdesk/desk"
	"blockdesk/engine"
	"blockdesk/engine/marketdata"
	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// TestMarketAdmin: before the upgrade of a group is finalized no auction gets into its log; a
// halt does. The answer waits until the status is published, and a resumed market may be in its
// opening auction. A change that is not published in time has an unknown outcome.
func TestMarketAdmin(t *testing.T) {
	t.Parallel()
	e, err := engine.New(engine.Options{}, engine.NewReplica(engine.StateOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	view := &marketdata.View{Status: engine.StatusHalted}
	m := marketAdmin{e, func(market.InstrumentID) *marketdata.View { return view }, true}
	waiting := func() int { return e.Stats().Ingress }
	before := waiting()
	if err := m.SetStatus(t.Context(), 1, 0, engine.StatusAuction, time.Minute); !errors.Is(err, rfq.ErrNotFinalized) || waiting() != before {
		t.Errorf("an auction before the upgrade is finalized: %v, %d commands", err, waiting()-before)
	}
	if err := m.SetStatus(t.Context(), 1, 0, engine.StatusHalted, 0); err != nil || waiting() != before+1 {
		t.Errorf("a halt before the upgrade is finalized: %v, %d commands", err, waiting()-before)
	}
	m.format1 = false
	if err := m.SetStatus(t.Context(), 1, 0, engine.StatusHalted, 0); err != nil {
		t.Errorf("a halt: %v", err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.SetStatus(over, 1, 0, engine.StatusTrading, 0); !errors.Is(err, desk.ErrUnknown) || !errors.Is(err, context.Canceled) {
		t.Errorf("a resume that is not published: %v", err)
	}
	view = &marketdata.View{Status: engine.StatusAuction}
	if err := m.SetStatus(t.Context(), 1, 0, engine.StatusTrading, 0); err != nil {
		t.Errorf("a resume into an opening auction: %v", err)
	}
	e.SetAdmission(engine.AdmitCancels)
	if err := m.SetStatus(t.Context(), 1, 0, engine.StatusTrading, 0); !errors.Is(err, desk.ErrReadOnly) {
		t.Errorf("a resume on a full disk: %v", err)
	}
	view = &marketdata.View{Status: engine.StatusHalted}
	if err := m.SetStatus(t.Context(), 1, 0, engine.StatusHalted, 0); err != nil {
		t.Errorf("a halt on a full disk: %v", err)
	}
}
