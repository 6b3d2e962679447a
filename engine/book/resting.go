package book

import (
	"errors"
	"fmt"

	"blockdesk/market"
)

// Errors of Import, wrapped with the order's ID.
var (
	ErrLiveOrder = errors.New("invalid live order")
	ErrDuplicate = errors.New("the order is live already")
	ErrFull      = errors.New("the book or the level is full")
	ErrCrossed   = errors.New("the order would cross the book")
)

// ending are the flags of an order that a mass cancel has ended.
const ending = FlagMassCancelled | FlagKilled

// CheckLiveOrder returns ErrLiveOrder with the first rule that r breaks by itself. Import
// refuses an order that fails it, so that a damaged snapshot cannot become a damaged book.
func CheckLiveOrder(r *LiveOrder) error {
	switch {
	case r.ID == 0:
		return invalidOrder(r, "id 0: must not be 0")
	case !r.Side.Valid():
		return invalidOrder(r, "side %d: must be 1 or 2", r.Side)
	case r.TIF < GTC || r.TIF > Day:
		return invalidOrder(r, "time in force %d: unknown", r.TIF)
	case r.STP < STPCancelNewest || r.STP > STPDecrement:
		return invalidOrder(r, "self-trade prevention %d: unknown", r.STP)
	case r.Flags&^(FlagPostOnly|FlagQuote|ending) != 0 || r.Flags&ending == ending:
		return invalidOrder(r, "flags %#x: only post-only, quote and one of mass-cancelled and killed are allowed", r.Flags)
	case r.Flags&FlagQuote != 0 && (r.TIF != GTC || r.Type != Limit || r.Display != 0):
		return invalidOrder(r, "flags %#x: a quote is a GTC limit order that shows its whole quantity", r.Flags)
	case r.Qty < 1 || r.Qty > market.MaxQty:
		return invalidOrder(r, "quantity %d: must be 1 to %d", r.Qty, market.MaxQty)
	case r.Open < 1 || r.Open > r.Qty:
		return invalidOrder(r, "open quantity %d: must be 1 to the quantity, %d", r.Open, r.Qty)
	case r.Display < 0 || r.Display > market.MaxQty:
		return invalidOrder(r, "display %d: must be 0 to %d", r.Display, market.MaxQty)
	case TooManySlices(r.Open, r.Display):
		return invalidOrder(r, "open quantity %d in slices of %d: too many slices", r.Open, r.Display)
	case (r.TIF == GTD || r.TIF == Day) != (r.ExpireAt > 0) || r.ExpireAt < 0:
		return invalidOrder(r, "expiry %d: must be above 0 for time in force GTD and Day, and 0 for others (%d)", r.ExpireAt, r.TIF)
	case r.Price < 0 || r.Price > market.MaxPrice || (r.Price == 0) != (r.Type == Stop):
		return invalidOrder(r, "price %d: must be 1 to %d, and 0 only for a stop", r.Price, market.MaxPrice)
	}
	if r.Waiting {
		return checkWaiting(r)
	}
	switch {
	case r.Type != Limit || r.Stop != 0 || r.EnteredSeq != 0:
		return invalidOrder(r, "type %d, stop %d, entered at %d: a resting order is a limit order without a stop", r.Type, r.Stop, r.EnteredSeq)
	case r.TIF == IOC || r.TIF == FOK:
		return invalidOrder(r, "time in force %d: a resting order is not IOC or FOK", r.TIF)
	case r.Shown < 1 || r.Shown > r.Open:
		return invalidOrder(r, "shown quantity %d: must be 1 to the open quantity, %d", r.Shown, r.Open)
	case r.Display == 0 && r.Shown != r.Open || r.Display > 0 && r.Shown > r.Display:
		return invalidOrder(r, "shown quantity %d: does not fit display %d of open quantity %d", r.Shown, r.Display, r.Open)
	}
	return nil
}

func checkWaiting(r *LiveOrder) error {
	switch {
	case r.Type == Limit:
		return checkGathered(r)
	case r.Type != Stop && r.Type != StopLimit:
		return invalidOrder(r, "type %d: a waiting order is a stop, a stop limit or a limit order of an auction", r.Type)
	case r.Stop < 1 || r.Stop > market.MaxPrice:
		return invalidOrder(r, "stop %d: must be 1 to %d", r.Stop, market.MaxPrice)
	case r.Shown != 0:
		return invalidOrder(r, "shown quantity %d: a waiting stop shows nothing", r.Shown)
	case r.Flags&^ending != 0 && (r.Type == Stop || r.TIF == IOC || r.TIF == FOK):
		return invalidOrder(r, "flags %#x: a stop that never rests cannot be post-only", r.Flags)
	}
	return nil
}

// checkGathered checks an order that waits for an auction.
func checkGathered(r *LiveOrder) error {
	if r.Stop != 0 || r.Shown != 0 || r.TIF == IOC || r.TIF == FOK || r.Flags&FlagPostOnly != 0 {
		return invalidOrder(r, "stop %d, shown quantity %d, time in force %d, flags %#x: an order of an auction may rest, shows nothing and is not post-only",
			r.Stop, r.Shown, r.TIF, r.Flags)
	}
	return nil
}

func invalidOrder(r *LiveOrder, rule string, values ...any) error {
	return fmt.Errorf("order %d: %w: %s", r.ID, ErrLiveOrder, fmt.Sprintf(rule, values...))
}
