package rfq

import (
	"errors"
	"fmt"

	"blockdesk/engine/event"
	"blockdesk/market"
)

// ErrSnapshot is wrapped by all errors of Restore.
var ErrSnapshot = errors.New("damaged desk snapshot")

// Restore decodes a snapshot. It refuses, with ErrSnapshot, what AppendSnapshot cannot have
// written: it checks every item, compares the sums with the claims, and the restored desk must
// encode to the same bytes. Memory stays proportional to data.
func Restore(data []byte) (*Machine, error) {
	if len(data) < len(snapshotMagic) || string(data[:len(snapshotMagic)]) != snapshotMagic {
		return nil, fmt.Errorf("not a desk snapshot: %w", ErrSnapshot)
	}
	w := &codec{buf: data[len(snapshotMagic):], reading: true}
	m := New()
	r := restorer{m: m, w: w}
	for _, part := range []func() error{r.setup, r.tickets, r.quotes, r.claims} {
		if err := part(); err != nil {
			return nil, err
		}
	}
	if !w.complete() {
		return nil, fmt.Errorf("%d bytes are too few or too many: %w", len(data), ErrSnapshot)
	}
	if err := r.sums(); err != nil {
		return nil, err
	}
	if !m.sameSnapshot(data) {
		return nil, fmt.Errorf("not in canonical form: %w", ErrSnapshot)
	}
	return m, nil
}

// restorer decodes m from w.
type restorer struct {
	m *Machine
	w *codec
	// Sums over the claims, to be compared with the tickets and pairs.
	tranches map[trancheKey]*tally
	pairs    map[market.InstrumentID]*tally
}

// tally is a sum of capacity or atoms.
type tally struct{ held, sold uint64 }

// readList decodes and checks count items.
func readList[T any, P interface {
	*T
	walk(*codec)
}](w *codec, count int, check func(before []T, item P) bool,
) ([]T, error) {
	var list []T
	for i := range count {
		var item T
		P(&item).walk(w)
		if w.bad || !check(list, &item) {
			return nil, fmt.Errorf("%T %d: %w", item, i, ErrSnapshot)
		}
		list = append(list, item)
	}
	return list, nil
}

// follows reports whether item sorts after the last of list.
func follows[T any](list []T, item *T, compare func(a, b T) int) bool {
	return len(list) == 0 || compare(list[len(list)-1], *item) < 0
}

func (r *restorer) setup() (err error) {
	m := r.m
	var h header
	h.walk(r.w)
	if r.w.bad || h.version != snapshotVersion1 && h.version != snapshotVersion2 || h.policy != (Policy{}) && !h.policy.valid() || h.shown.At < 0 ||
		h.lastTicket > market.MaxShards*market.TicketsPerShard || h.lastTicket%market.TicketsPerShard > h.shown.Seq || h.operators > MaxOperators {
		return fmt.Errorf("header: %w", ErrSnapshot)
	}
	m.policy, m.lastTicket, m.lastShown = h.policy, market.TicketID(h.lastTicket), h.shown
	m.pairs, err = readList(r.w, int(h.pairs), func(before []Pair, p *Pair) bool {
		return follows(before, p, comparePairs) && p.valid() && p.Anchor <= market.MaxUSDPrice &&
			p.AnchorAt >= 0 && (p.Anchor != 0 || p.AnchorAt == 0 || p.Withdrawn) &&
			originOK(p.Anchor, p.AnchorSource, p.Confidence, p.PublishedAt, p.AnchorAt, p.Withdrawn) &&
			p.Reserved <= ^uint64(0)-p.Sold && p.OnChainAt >= 0 && (p.OnChain == 0 || p.OnChainAt != 0)
	})
	if err != nil {
		return err
	}
	for i := range m.pairs {
		p := &m.pairs[i]
		if p.Via != NoInstrument && (p.Via == p.Instrument || findPair(m.pairs, p.Via) == nil) {
			return fmt.Errorf("pair %d: priced through instrument %d, which is no other pair: %w", p.Instrument, p.Via, ErrSnapshot)
		}
	}
	m.operators, err = readList(r.w, int(h.operators), func(before []Operator, o *Operator) bool {
		return follows(before, o, compareOperators) && o.ID != 0 && printable(o.Name)
	})
	if err != nil {
		return err
	}
	m.locks, err = readList(r.w, int(h.locks), func(before []Lock, l *Lock) bool {
		return follows(before, l, compareLocks) && l.valid() && l.Since >= 0 && r.known(l.By) &&
			(l.Scope != LockPair || findPair(m.pairs, l.Instrument) != nil)
	})
	if err != nil {
		return err
	}
	m.rails, err = readList(r.w, int(h.rails), func(before []RailPrice, p *RailPrice) bool {
		return follows(before, p, compareRailPrices) && p.Rail == market.RailSOL && p.At >= 0 && p.MaxAge >= 0 &&
			(validPrice(p.Price) || p.Withdrawn) && originOK(p.Price, p.Source, p.Confidence, p.PublishedAt, p.At, p.Withdrawn)
	})
	return err
}

// originOK checks what is known about a price that was set at time at.
func originOK(price market.USDPrice, source PriceOrigin, confidence market.USDPrice, publishedAt, at int64, withdrawn bool) bool {
	return source <= OriginOperator && confidence <= market.MaxUSDPrice && publishedAt >= 0 && publishedAt <= at &&
		(!withdrawn || price == 0 && confidence == 0)
}

func (r *restorer) known(id market.OperatorID) bool { return id == 0 || r.m.operator(id) != nil }

// count decodes the length of a list, at most most.
func (r *restorer) count(most int) (int, error) {
	var n uint32
	u32(r.w, &n)
	if r.w.bad || uint64(n) > uint64(most) {
		return 0, fmt.Errorf("a list of %d: at most %d: %w", n, most, ErrSnapshot)
	}
	return int(n), nil
}

func (r *restorer) tickets() error {
	n, err := r.count(MaxTickets)
	var last market.TicketID
	for i := 0; i < n && err == nil; i++ {
		var t Ticket
		t.walk(r.w)
		var tranches uint8
		u8(r.w, &tranches)
		if tranches > MaxTranches {
			return fmt.Errorf("ticket %d: %d tranches: at most %d: %w", t.ID, tranches, MaxTranches, ErrSnapshot)
		}
		t.Tranches, err = readList(r.w, int(tranches), func(before []Tranche, tr *Tranche) bool {
			return int(tr.ID) == len(before)+1 && tr.Capacity <= MaxCapacity &&
				tr.Filled <= tr.Capacity && tr.Reserved <= tr.Capacity-tr.Filled
		})
		if err == nil && (r.w.bad || t.ID <= last || !r.ticketOK(&t)) {
			err = ErrSnapshot
		}
		if err != nil {
			return fmt.Errorf("ticket %d: %w", t.ID, err)
		}
		last = t.ID
		r.addTicket(t)
	}
	return err
}

func (r *restorer) ticketOK(t *Ticket) bool {
	switch t.State {
	case TicketOpen, TicketExhausted:
		if t.State != t.stateByCapacity() {
			return false
		}
	case TicketWithdrawn, TicketExpired:
	default:
		return false
	}
	return t.ID <= r.m.lastTicket && printable(t.Label) && findPair(r.m.pairs, t.Instrument) != nil &&
		t.Rails != 0 && t.Rails&^market.AllRails == 0 && (t.Reference == 0 || validPrice(t.Reference)) &&
		t.CreatedAt >= 0 && t.CreatedAt <= t.UpdatedAt && t.UpdatedAt <= r.m.lastShown.At && t.Seq <= r.m.lastShown.Seq &&
		t.ExpiresAt >= 0 && len(t.Tranches) > 0 && r.known(t.By)
}

func (r *restorer) addTicket(t Ticket) {
	m := r.m
	slot := m.tickets.add(t.ID)
	*m.tickets.at(slot) = t
	if t.ExpiresAt != 0 && !t.Ended() {
		m.ticketEnds.set(slot, t.ExpiresAt, uint64(t.ID))
	}
	m.scheduleRemoval(slot)
}

func (r *restorer) quotes() error {
	n, err := r.count(MaxQuotes)
	var last market.QuoteID
	for i := 0; i < n && err == nil; i++ {
		var q Quote
		q.walk(r.w)
		if r.w.bad || q.ID <= last || !r.termsOK(&q.Terms) || q.IssuedAt < 0 || q.ValidUntil < q.IssuedAt {
			return fmt.Errorf("quote %d: %w", q.ID, ErrSnapshot)
		}
		last = q.ID
		slot := r.m.quotes.add(q.ID)
		*r.m.quotes.at(slot) = q
		r.m.quoteEnds.set(slot, q.ValidUntil, uint64(q.ID))
	}
	return err
}

func (r *restorer) termsOK(t *Terms) bool {
	if t.Ticket == 0 || t.Ticket > r.m.lastTicket || t.Tranche == 0 || t.Tranche > MaxTranches ||
		findPair(r.m.pairs, t.Instrument) == nil || !t.Fill.Valid() || !t.Rail.Valid() ||
		t.DiscountBps >= market.MaxBps || t.FeeBps > market.MaxBps || t.Base == 0 || t.Payment == 0 {
		return false
	}
	policy := Policy{}
	policy.Discounts[t.Fill-1] = t.DiscountBps
	if t.Reference == 0 || t.Reference > 2*market.MaxUSDPrice || t.Price != policy.Price(t.Reference, t.Fill) ||
		t.Rail == market.RailUSDC && t.Payment != uint64(t.Fill.USD()) || t.guarded() != (t.RailPrice != 0) ||
		t.guarded() && (r.m.policy.Rules != RulesGuarded || t.Rail == market.RailUSDC && t.RailPrice != usdPriceOne) {
		return false
	}
	ticket := r.m.tickets.get(t.Ticket)
	return ticket == nil || ticket.Instrument == t.Instrument && ticket.Tranche(t.Tranche) != nil
}

func (r *restorer) claims() error {
	r.tranches, r.pairs = map[trancheKey]*tally{}, map[market.InstrumentID]*tally{}
	n, err := r.count(MaxClaims)
	var last market.ClaimID
	for i := 0; i < n && err == nil; i++ {
		var c Claim
		c.walk(r.w)
		if r.w.bad || c.ID <= last || !r.claimOK(&c) {
			return fmt.Errorf("claim %d: %w", c.ID, ErrSnapshot)
		}
		last = c.ID
		slot := r.m.claims.add(c.ID)
		r.m.claims.at(slot).Claim = c
		if c.State == ClaimReserved {
			r.m.claimEnds.set(slot, r.m.holdsUntil(&c), uint64(c.ID))
			r.m.countReserved(&c, +1)
		}
		if err = r.payments(slot); err != nil {
			return fmt.Errorf("claim %d: %w", c.ID, err)
		}
		r.m.updateRemovable(slot)
		if !r.tally(&c) {
			return fmt.Errorf("claim %d: the sums of its tranche or pair overflow: %w", c.ID, ErrSnapshot)
		}
	}
	return err
}

func (r *restorer) claimOK(c *Claim) bool {
	switch c.State {
	case ClaimReserved, ClaimExpired, ClaimSettled:
	case ClaimPaid, ClaimDelivering, ClaimRefundDue:
		if c.Mode != Modular {
			return false
		}
	case ClaimCosigned:
		if c.Mode != Atomic {
			return false
		}
	case ClaimReleased: // a modular one by ReleaseUnbuilt, which has no proof
		if c.Mode != Atomic && c.Proof != [32]byte{} {
			return false
		}
	default:
		return false
	}
	switch c.State {
	case ClaimReserved, ClaimPaid, ClaimExpired, ClaimRefundDue:
		if c.Proof != [32]byte{} {
			return false
		}
	}
	return (c.Mode == Modular || c.Mode == Atomic) && r.termsOK(&c.Terms) && c.Wallet != (market.Address{}) &&
		c.ReservedAt >= 0 && c.Deadline >= c.ReservedAt && c.ChangedAt >= c.ReservedAt
}

// payments decodes the payments of the claim in slot. Exactly one is applied if the claim
// is paid, and one has the reason if it is refund_due.
func (r *restorer) payments(slot uint32) error {
	n, err := r.count(MaxPayments - r.m.payments.len())
	if err != nil {
		return err
	}
	c := r.m.claims.at(slot)
	applied, abandonedOnce, refundDue := 0, 0, false // payments applied to it, and applied before it was abandoned
	for range n {
		var p Payment
		p.walk(r.w)
		if r.w.bad || !paymentOK(&p, &c.Claim) || r.m.payments.get(p.Signature) != nil {
			return fmt.Errorf("a payment does not fit its claim: %w", ErrSnapshot)
		}
		at := r.m.payments.add(p.Signature)
		r.m.payments.at(at).Payment = p
		r.m.appendPayment(c, at)
		refundDue = refundDue || EndsClaim(p.Reason)
		if abandoned(&p) {
			abandonedOnce++
		}
		if p.pays() {
			applied++
		}
		if p.State.Pending() {
			r.m.countRefundDue(c, +1)
		}
	}
	if r.m.refundsDue > MaxRefunds {
		return fmt.Errorf("%d refunds due: at most %d: %w", r.m.refundsDue, MaxRefunds, ErrSnapshot)
	}
	wanted := 0
	if c.paidFor() {
		wanted = 1
	}
	if applied != wanted || abandonedOnce > 1 || c.Paid != 0 && wanted == 0 || refundDue != (c.State == ClaimRefundDue) && (!refundDue || r.m.policy.Rules != RulesGuarded) {
		return fmt.Errorf("its payments do not fit its state: %w", ErrSnapshot)
	}
	return nil
}

// paidFor reports whether a payment is applied to the claim.
func (c *Claim) paidFor() bool {
	return c.Mode == Modular && (c.State == ClaimPaid || c.State == ClaimDelivering || c.State == ClaimSettled)
}

// fits reports whether p satisfies the claim's terms.
func (p *Payment) fits(c *Claim) bool {
	return p.Rail == c.Terms.Rail && p.Amount >= c.Terms.Payment
}

func paymentOK(p *Payment, c *Claim) bool {
	if p.Claim != c.ID || !p.Rail.Valid() || p.Amount == 0 || p.At < 0 || p.BlockTime < 0 || p.Signature == [64]byte{} {
		return false
	}
	switch p.State {
	case PaymentApplied:
		return p.Reason == 0 && p.Proof == [32]byte{} && p.Amount == c.Paid && p.fits(c) && p.Due == 0 && (p.Applied == 0 || p.Applied == p.Amount)
	case PaymentRefundDue:
		return p.Proof == [32]byte{} && p.refundOK(c)
	case PaymentRefunding:
		return p.Proof != [32]byte{} && p.refundOK(c)
	case PaymentRefunded:
		return p.refundOK(c)
	}
	return false
}

// refundOK checks the atoms of a refund. A surplus is what the terms do not need; after an
// abandoned delivery the whole is due, or the rest if the surplus was refunded before.
func (p *Payment) refundOK(c *Claim) bool {
	switch {
	case !refundable(p.Reason) || abandoned(p) && !p.fits(c):
		return false
	case p.Reason == event.ReasonSurplus:
		return p.fits(c) && p.Applied == c.Terms.Payment && p.Applied == c.Paid && p.Due != 0 && p.Due == p.Amount-p.Applied
	case p.Applied != 0:
		return false
	}
	return p.Due == 0 || p.Due == p.Amount || abandoned(p) && p.Due == c.Terms.Payment
}

// tally adds a claim to the sums of its tranche and pair. It returns false if atoms overflow.
func (r *restorer) tally(c *Claim) bool {
	key := trancheKey{c.Terms.Ticket, c.Terms.Tranche}
	if r.tranches[key] == nil {
		r.tranches[key] = &tally{}
	}
	if r.pairs[c.Terms.Instrument] == nil {
		r.pairs[c.Terms.Instrument] = &tally{}
	}
	tr, p := r.tranches[key], r.pairs[c.Terms.Instrument]
	switch {
	case c.State.Live():
		tr.held += uint64(c.Terms.Fill.USD())
		p.held += c.Terms.Base
		return p.held >= c.Terms.Base
	case c.State == ClaimSettled:
		tr.sold += uint64(c.Terms.Fill.USD())
		p.sold += c.Terms.Base
		return p.sold >= c.Terms.Base
	}
	return true
}

// sums compares the sums: reserved is what live claims hold, and sold at least what
// remembered claims have bought.
func (r *restorer) sums() error {
	for _, slot := range r.m.tickets.slots {
		t := r.m.tickets.at(slot)
		for i := range t.Tranches {
			tr := &t.Tranches[i]
			key := trancheKey{t.ID, tr.ID}
			var sum tally
			if s := r.tranches[key]; s != nil {
				sum = *s
				delete(r.tranches, key)
			}
			if uint64(tr.Reserved) != sum.held || uint64(tr.Filled) < sum.sold {
				return fmt.Errorf("tranche %d of ticket %d: %w", tr.ID, t.ID, ErrSnapshot)
			}
		}
	}
	for key, left := range r.tranches { // of tickets that are forgotten
		if left.held != 0 {
			return fmt.Errorf("tranche %d of ticket %d does not exist: %w", key.tranche, key.ticket, ErrSnapshot)
		}
	}
	for i := range r.m.pairs {
		p := &r.m.pairs[i]
		var sum tally
		if s := r.pairs[p.Instrument]; s != nil {
			sum = *s
		}
		if p.Reserved != sum.held || p.Sold < sum.sold {
			return fmt.Errorf("pair %d: %w", p.Instrument, ErrSnapshot)
		}
	}
	return nil
}
