package desk

import (
	"fmt"
	"slices"

	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// touch marks a ticket for the next commit.
func (f *follower) touch(id market.TicketID) {
	s := f.tickets[id]
	if s == nil || !s.dirty {
		f.touched = append(f.touched, id)
	}
	if s != nil {
		s.dirty = true
	}
}

// own returns the shadow of a ticket that may be changed, or nil.
func (f *follower) own(id market.TicketID) *shadow {
	s := f.tickets[id]
	if s != nil && s.shared {
		t := *s.Ticket
		t.Tranches = slices.Clone(t.Tranches)
		s.Ticket, s.shared = &t, false
	}
	return s
}

func (f *follower) putTicket(r *rfq.Ticket) {
	s := f.own(r.ID)
	if s == nil {
		s = &shadow{Ticket: new(rfq.Ticket)}
		f.tickets[r.ID] = s
	}
	tranches := s.Tranches
	*s.Ticket = *r
	s.Tranches = tranches
	f.touch(r.ID)
}

// putTranche takes a tranche. One that does not fit says that the store has not
// seen what came before.
func (f *follower) putTranche(r *rfq.TicketTranche) error {
	s := f.own(r.Ticket)
	if s == nil || r.ID == 0 || int(r.ID) > len(s.Tranches)+1 {
		return fmt.Errorf("%w: seq %d: tranche %d of ticket %d is unknown: events are missing", ErrLayout, f.seq, r.ID, r.Ticket)
	}
	if int(r.ID) > len(s.Tranches) {
		s.Tranches = append(s.Tranches, r.Tranche)
	} else {
		s.Tranches[r.ID-1] = r.Tranche
	}
	f.touch(r.Ticket)
	return nil
}
