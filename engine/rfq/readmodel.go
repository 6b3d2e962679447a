package rfq

import (
	"cmp"
	"slices"

	"blockdesk/engine/event"
	"blockdesk/market"
)

// View is the desk at one moment, as readers see it. It is immutable: any number of
// goroutines may read it and what it points to.
type View struct {
	Seq uint64 // of the last command that changed the view; 0 = none
	At  int64  // that command's time
	// Policy is zero before the first SetPolicy.
	Policy     Policy
	Pairs      []Pair      // by Instrument
	RailPrices []RailPrice // by Rail
	Locks      []Lock      // by Scope, Instrument, Rail, lifted ones too
	Operators  []Operator  // by ID
	Tickets    []*Ticket   // by ID
}

// Ticket returns the ticket, or nil.
func (v *View) Ticket(id market.TicketID) *Ticket {
	if i, ok := ticketIndex(v.Tickets, id); ok {
		return v.Tickets[i]
	}
	return nil
}

// Tranche returns the tranche, or nil.
func (t *Ticket) Tranche(id market.TrancheID) *Tranche {
	if id == 0 || int(id) > len(t.Tranches) {
		return nil
	}
	return &t.Tranches[id-1]
}

// Pair returns the pair of the instrument, or nil.
func (v *View) Pair(in market.InstrumentID) *Pair { return findPair(v.Pairs, in) }

// Locked returns the first lock on the pair or the rail, or nil. An invalid rail checks
// only the pair.
func (v *View) Locked(in market.InstrumentID, rail market.Rail) *Lock {
	return findLock(v.Locks, in, rail)
}

// Reference returns the price before discounts that a quote of t would have at time at
// (Unix ns), or why there is none. t must be a ticket of v.
func (v *View) Reference(t *Ticket, books Prices, at int64) (market.USDPrice, event.Reason) {
	p := v.Pair(t.Instrument)
	if p == nil {
		return 0, event.ReasonUnknownPair
	}
	o := v.pricing(books, at)
	ref, r := o.reference(p, t.Reference)
	return ref, r.reason
}

// PairReference returns the price before discounts that a quote of a ticket without a price
// of its own would have at time at (Unix ns), or why there is none.
func (v *View) PairReference(in market.InstrumentID, books Prices, at int64) (market.USDPrice, event.Reason) {
	p := v.Pair(in)
	if p == nil {
		return 0, event.ReasonUnknownPair
	}
	o := v.pricing(books, at)
	ref, r := o.reference(p, 0)
	return ref, r.reason
}

func (v *View) pricing(books Prices, at int64) pricing {
	return pricing{policy: &v.Policy, pairs: v.Pairs, rails: v.RailPrices, books: books, at: at}
}

// RailPrice returns the dollar price of the rail's asset at time at (Unix ns), or why there is
// none.
func (v *View) RailPrice(rail market.Rail, at int64) (market.USDPrice, event.Reason) {
	o := v.pricing(nil, at)
	price, r := o.priceOfRail(rail)
	return price, r.reason
}

// SaleRefusal returns why the smallest fill of t cannot be sold over the rail at time at (Unix
// ns); ReasonNone = a quote for it would be accepted. It makes the checks of RequestQuote in
// the same order: the ticket has ended (also if it is due to), a lock, the rail, the prices,
// capacity in every tranche, inventory. t must be a ticket of v, and rail Valid.
func (v *View) SaleRefusal(t *Ticket, rail market.Rail, books Prices, at int64) event.Reason {
	switch {
	case t.State == TicketWithdrawn:
		return event.ReasonTicketWithdrawn
	case t.State == TicketExpired || t.ExpiresAt != 0 && t.ExpiresAt <= at:
		return event.ReasonTicketExpired
	case v.Pair(t.Instrument) == nil:
		return event.ReasonUnknownPair
	case v.Locked(t.Instrument, rail) != nil:
		return event.ReasonLocked
	}
	o := v.pricing(books, at)
	var terms Terms
	if r := o.terms(fillRequest{t.ID, 1, smallestFill, rail}, t, &terms); r.reason != 0 {
		return r.reason
	}
	switch {
	case t.stateByCapacity() != TicketOpen:
		return event.ReasonCapacityExhausted
	case v.Pair(t.Instrument).Free() < terms.Base:
		return event.ReasonInventory
	}
	return event.ReasonNone
}

// SellableNow returns the ticket that sells first, by Priority, CreatedAt, ID, of those that
// SaleRefusal lets sell over one of their rails at time at (Unix ns); nil = none.
func (v *View) SellableNow(books Prices, at int64) *Ticket {
	var first *Ticket
	for _, t := range v.Tickets {
		if (first == nil || soldBefore(t, first)) && v.sells(t, books, at) {
			first = t
		}
	}
	return first
}

func (v *View) sells(t *Ticket, books Prices, at int64) bool {
	for r := market.RailUSDC; r < market.RailCount; r++ {
		if v.SaleRefusal(t, r, books, at) == event.ReasonNone {
			return true
		}
	}
	return false
}

// Fills is a set of fill sizes: bit f-1 stands for size f.
type Fills uint8

// Has reports whether f is in the set. f must be Valid.
func (s Fills) Has(f market.FillUSD) bool { return s&(1<<(f-1)) != 0 }

// FillsInStock returns the fill sizes that the free inventory of a pair covers at a reference
// price: the base units of each, at its own price, are at most Pair.Free.
func (v *View) FillsInStock(in market.InstrumentID, reference market.USDPrice) Fills {
	p := v.Pair(in)
	if p == nil {
		return 0
	}
	var stock Fills
	for f := market.FillUSD(1); f <= market.FillCount; f++ {
		if base, ok := baseFor(f, v.Policy.Price(reference, f), p.BaseDecimals); ok && base <= p.Free() {
			stock |= 1 << (f - 1)
		}
	}
	return stock
}

// BestPrice returns the lowest unit price of a fill in stock that the tranche has capacity
// for; 0 = none. stock is what FillsInStock returns for the tranche's pair.
func (v *View) BestPrice(t *Tranche, reference market.USDPrice, stock Fills) market.USDPrice {
	var best market.USDPrice
	for f := market.FillUSD(1); f <= market.FillCount && f.USD() <= t.Available(); f++ {
		if price := v.Policy.Price(reference, f); stock.Has(f) && (best == 0 || price < best) {
			best = price
		}
	}
	return best
}

func ticketIndex(tickets []*Ticket, id market.TicketID) (int, bool) {
	return slices.BinarySearchFunc(tickets, id, func(t *Ticket, id market.TicketID) int { return cmp.Compare(t.ID, id) })
}

func findLock(locks []Lock, in market.InstrumentID, rail market.Rail) *Lock {
	for i := range locks {
		l := &locks[i]
		if l.Locked && l.covers(in, rail) {
			return l
		}
	}
	return nil
}

// covers reports whether the scope of l refuses new quotes, claims and countersignatures of a pair on a rail.
func (l *Lock) covers(in market.InstrumentID, rail market.Rail) bool {
	switch l.Scope {
	case LockAll, LockClock:
		return true
	case LockPair:
		return l.Instrument == in
	case LockRail:
		return l.Rail == rail
	}
	return false
}

// ReadModel applies records and makes Views. It starts from Machine.ReadModel; the zero
// ReadModel is that of a new machine. Not for concurrent use.
type ReadModel struct {
	current View // shares slices and tickets with the last View unless owned
	last    *View
	// Owned slices and unpublished tickets are in no View yet and may be changed in place.
	ownPairs, ownRails, ownLocks, ownOperators, ownTickets bool
	unpublished                                            map[market.TicketID]struct{}
}

// NewReadModel returns a read model with these tickets, by ID, and nothing else, for a
// reader of tickets only. It takes ownership of them.
func NewReadModel(tickets []*Ticket) *ReadModel { return &ReadModel{current: View{Tickets: tickets}} }

// Ticket returns the ticket after the last record, or nil. It never changes.
func (m *ReadModel) Ticket(id market.TicketID) *Ticket {
	delete(m.unpublished, id)
	return m.current.Ticket(id)
}

// CanApply reports whether Apply accepts a record, for a reader that may have missed
// earlier ones.
func (m *ReadModel) CanApply(rec Record) bool {
	switch r := rec.(type) {
	case *TicketTranche:
		t := m.current.Ticket(r.Ticket)
		return t != nil && r.ID != 0 && int(r.ID) <= len(t.Tranches)+1
	case *Removed:
		return r.What != TagTicket || m.current.Ticket(market.TicketID(r.ID)) != nil
	}
	return true
}

// Apply applies the next record, of the command seq. It panics if the record does not fit
// the earlier ones, because only a broken engine writes such a record.
func (m *ReadModel) Apply(rec Record, seq uint64) {
	switch r := rec.(type) {
	case *Policy:
		m.current.Policy = *r
	case *Pair:
		m.ownPairs = put(&m.current.Pairs, *r, m.ownPairs, comparePairs)
	case *RailPrice:
		m.ownRails = put(&m.current.RailPrices, *r, m.ownRails, compareRailPrices)
	case *Lock:
		m.ownLocks = put(&m.current.Locks, *r, m.ownLocks, compareLocks)
	case *Operator:
		m.ownOperators = put(&m.current.Operators, *r, m.ownOperators, compareOperators)
	case *Ticket:
		m.putTicket(r)
		m.current.At = r.UpdatedAt
	case *TicketTranche:
		m.putTranche(r)
	case *Removed:
		if r.What != TagTicket {
			return
		}
		m.removeTicket(market.TicketID(r.ID))
		m.current.At = r.At
	case *Outcome:
		if m.current.Seq != seq {
			return
		}
		m.current.At = r.At
	default:
		return // not part of a View
	}
	m.current.Seq = seq
	m.last = nil
}

// View returns the view after the last record, the same one until a record changes something
// in it. Call it after the last record of a command. It copies one pointer per ticket and
// shares what has not changed with the previous view.
func (m *ReadModel) View() *View {
	if m.last != nil {
		return m.last
	}
	v := m.current
	m.ownPairs, m.ownRails, m.ownLocks, m.ownOperators, m.ownTickets = false, false, false, false, false
	clear(m.unpublished)
	m.last = &v
	return m.last
}

// Sellable returns the open ticket that sells first: by Priority, CreatedAt, ID. nil = none
// is open. It knows no prices and no locks; see View.SellableNow.
func Sellable(tickets []*Ticket) *Ticket {
	var first *Ticket
	for _, t := range tickets {
		if t.State == TicketOpen && (first == nil || soldBefore(t, first)) {
			first = t
		}
	}
	return first
}

// Offer returns the ticket and tranche that a fill of a pair over a rail buys at time at
// (Unix ns) if the buyer names none: of the open tickets that accept the rail, whose own
// price is inside the corridor, and that have a tranche with enough capacity, the one that
// sells first, and its first such tranche. If there is none, it returns why: the pair is
// unknown or locked, has no open ticket, or none with that capacity. fill must be Valid.
// Prices and inventory are the same for all tickets of a pair; the quote checks them.
func (v *View) Offer(in market.InstrumentID, fill market.FillUSD, rail market.Rail, at int64) (first *Ticket, tranche market.TrancheID, why event.Reason) {
	p := v.Pair(in)
	switch {
	case p == nil:
		return nil, 0, event.ReasonUnknownPair
	case v.Locked(in, rail) != nil:
		return nil, 0, event.ReasonLocked
	}
	why = event.ReasonUnknownTicket
	lowest, highest := Corridor(p)
	for _, t := range v.Tickets {
		if t.Instrument != in || t.State != TicketOpen || t.ExpiresAt != 0 && t.ExpiresAt <= at {
			continue
		}
		why = event.ReasonCapacityExhausted
		outside := t.Reference != 0 && p.Anchor != 0 && (t.Reference < lowest || t.Reference > highest)
		if !t.Rails.Has(rail) || outside || first != nil && !soldBefore(t, first) {
			continue
		}
		for i := range t.Tranches {
			if t.Tranches[i].Available() >= fill.USD() {
				first, tranche = t, t.Tranches[i].ID
				break
			}
		}
	}
	if first != nil {
		why = event.ReasonNone
	}
	return first, tranche, why
}

func soldBefore(a, b *Ticket) bool {
	return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.CreatedAt, b.CreatedAt), cmp.Compare(a.ID, b.ID)) < 0
}

// put sets an item of a sorted list, in a copy unless the list is owned. It returns true.
func put[T any](list *[]T, item T, owned bool, compare func(a, b T) int) bool {
	if !owned {
		*list = slices.Clone(*list)
	}
	i, ok := slices.BinarySearchFunc(*list, item, compare)
	if ok {
		(*list)[i] = item
	} else {
		*list = slices.Insert(*list, i, item)
	}
	return true
}

func comparePairs(a, b Pair) int           { return cmp.Compare(a.Instrument, b.Instrument) }
func compareRailPrices(a, b RailPrice) int { return cmp.Compare(a.Rail, b.Rail) }
func compareOperators(a, b Operator) int   { return cmp.Compare(a.ID, b.ID) }

func compareLocks(a, b Lock) int {
	return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Instrument, b.Instrument), cmp.Compare(a.Rail, b.Rail))
}

// writableTicket returns the ticket at index i, which may be changed until the next View.
func (m *ReadModel) writableTicket(i int) *Ticket {
	m.cloneTickets()
	t := m.current.Tickets[i]
	if _, ok := m.unpublished[t.ID]; ok {
		return t
	}
	clone := *t
	clone.Tranches = slices.Clone(t.Tranches)
	m.current.Tickets[i] = &clone
	m.markUnpublished(t.ID)
	return &clone
}

func (m *ReadModel) cloneTickets() {
	if !m.ownTickets {
		m.current.Tickets, m.ownTickets = slices.Clone(m.current.Tickets), true
	}
}

func (m *ReadModel) markUnpublished(id market.TicketID) {
	if m.unpublished == nil {
		m.unpublished = map[market.TicketID]struct{}{}
	}
	m.unpublished[id] = struct{}{}
}

func (m *ReadModel) putTicket(r *Ticket) {
	i, ok := ticketIndex(m.current.Tickets, r.ID)
	if !ok {
		m.cloneTickets()
		t := *r
		m.current.Tickets = slices.Insert(m.current.Tickets, i, &t)
		m.markUnpublished(t.ID)
		return
	}
	t := m.writableTicket(i)
	tranches := t.Tranches
	*t = *r
	t.Tranches = tranches
}

func (m *ReadModel) putTranche(r *TicketTranche) {
	i, ok := ticketIndex(m.current.Tickets, r.Ticket)
	if !ok {
		panic("rfq: tranche of an unknown ticket")
	}
	t := m.writableTicket(i)
	switch at := int(r.ID) - 1; {
	case at >= 0 && at < len(t.Tranches):
		t.Tranches[at] = r.Tranche
	case at == len(t.Tranches):
		t.Tranches = append(t.Tranches, r.Tranche)
	default:
		panic("rfq: tranche out of order")
	}
}

func (m *ReadModel) removeTicket(id market.TicketID) {
	i, ok := ticketIndex(m.current.Tickets, id)
	if !ok {
		panic("rfq: removal of an unknown ticket")
	}
	m.cloneTickets()
	m.current.Tickets = slices.Delete(m.current.Tickets, i, i+1)
}
