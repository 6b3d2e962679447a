package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"blockdesk/desk"
	"blockdesk/engine"
	"blockdesk/engine/marketdata"
	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// marketPoll is how often the answer to an operator looks for the published status.
const marketPoll = 5 * time.Millisecond

// marketAdmin halts and resumes instruments for operators.
type marketAdmin struct {
	eng     *engine.Engine
	view    func(market.InstrumentID) *marketdata.View
	format1 bool // the group's log cannot have auctions yet
}

// View returns the published state of an instrument.
func (m marketAdmin) View(in market.InstrumentID) *marketdata.View { return m.view(in) }

// SetStatus submits a SetInstrument and waits until the published status is no longer the
// one before, or is the wanted one.
func (m marketAdmin) SetStatus(ctx context.Context, by market.OperatorID, in market.InstrumentID, status uint8, gather time.Duration) error {
	if m.format1 && status == engine.StatusAuction {
		return rfq.ErrNotFinalized
	}
	c := engine.Command{Kind: engine.SetInstrument, Instrument: in, Status: status, Arg: uint64(gather)}
	c.Order.ID = market.OrderID(by)
	switch err := m.eng.Submit(&c); {
	case errors.Is(err, engine.ErrFull):
		return fmt.Errorf("%w: %w", desk.ErrBusy, err)
	case errors.Is(err, engine.ErrReadOnly):
		return fmt.Errorf("%w: %w", desk.ErrReadOnly, err)
	case errors.Is(err, engine.ErrStopped):
		return fmt.Errorf("%w: %w", desk.ErrStopped, err)
	case err != nil:
		return err
	}
	poll := time.NewTicker(marketPoll)
	defer poll.Stop()
	for !m.reached(in, status) {
		select {
		case <-poll.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", desk.ErrUnknown, ctx.Err())
		}
	}
	return nil
}

// reached reports whether the published status follows from a command to set status. A resumed
// instrument may be in its opening auction.
func (m marketAdmin) reached(in market.InstrumentID, status uint8) bool {
	v := m.view(in)
	return v != nil && (v.Status == status || status == engine.StatusTrading && v.Status == engine.StatusAuction)
}
