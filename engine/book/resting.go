package book

import (
	"errors"
	"fmt"

	"blockdesk/market"
)

// Errors of Import, wrapped with the order's ID.
var (
	ErrLiveOrder = errors.New("not a live order that a book can hold")
	ErrDuplicate = errors.New("order is live already")
	ErrFull      = errors.New("the book or the level is full")
	ErrCrossed   = errors.New("order would cross the book")
)

// CheckLiveOrder returns ErrLiveOrder with the first rule that r breaks by itself. Import
// refuses an order that fails it, so that a damaged snapshot cannot become a damaged book.
func CheckLiveOrder(r *LiveOrder) error {
	switch {
	case r.ID == 0:
		return invalidOrder(r, "id 0")
	case !r.Side.Valid():
		return invalidOrder(r, "side")
	case r.TIF < GTC || r.TIF > Day:
		return invalidOrder(r, "time in force")
	case r.STP < STPCancelNewest || r.STP > STPDecrement:
		return invalidOrder(r, "self-trade prevention")
	case r.Flags&^FlagPostOnly != 0:
		return invalidOrder(r, "flags")
	case r.Qty < 1 || r.Qty > market.MaxQty:
		return invalidOrder(r, "quantity")
	case r.Open < 1 || r.Open > r.Qty:
		return invalidOrder(r, "open quantity")
	case r.Display < 0 || r.Display > market.MaxQty:
		return invalidOrder(r, "display")
	case TooManySlices(r.Open, r.Display):
		return invalidOrder(r, "number of slices")
	case (r.TIF == GTD || r.TIF == Day) != (r.ExpireAt > 0) || r.ExpireAt < 0:
		return invalidOrder(r, "expiry")
	case r.Price < 0 || r.Price > market.MaxPrice || (r.Price == 0) != (r.Type == Stop):
		return invalidOrder(r, "price")
	}
	if r.Waiting {
		return checkWaiting(r)
	}
	switch {
	case r.Type != Limit || r.Stop != 0 || r.EnteredSeq != 0:
		return invalidOrder(r, "type of what rests")
	case r.TIF == IOC || r.TIF == FOK:
		return invalidOrder(r, "time in force of what rests")
	case r.Shown < 1 || r.Shown > r.Open:
		return invalidOrder(r, "shown quantity")
	case r.Display == 0 && r.Shown != r.Open || r.Display > 0 && r.Shown > r.Display:
		return invalidOrder(r, "shown quantity against display")
	}
	return nil
}

func checkWaiting(r *LiveOrder) error {
	switch {
	case r.Type != Stop && r.Type != StopLimit:
		return invalidOrder(r, "type of a waiting stop")
	case r.Stop < 1 || r.Stop > market.MaxPrice:
		return invalidOrder(r, "trigger")
	case r.Shown != 0:
		return invalidOrder(r, "shown quantity of a waiting stop")
	case r.Flags != 0 && (r.Type == Stop || r.TIF == IOC || r.TIF == FOK):
		return invalidOrder(r, "post-only on what never rests")
	}
	return nil
}

func invalidOrder(r *LiveOrder, rule string) error {
	return fmt.Errorf("order %d: %s: %w", r.ID, rule, ErrLiveOrder)
}
