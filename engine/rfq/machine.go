package rfq

import (
	"math"
	"slices"

	"blockdesk/engine/event"
	"blockdesk/market"
)

// Stamp is what the sequencer adds to a request.
type Stamp struct {
	Seq uint64
	At  int64 // Unix ns, 0 or more; never falls
	// Participant sent the request over FIX; 0 = no participant. Blocked is the reason
	// why it gets no quote and no claim; 0 = it may have them.
	Participant market.ParticipantID
	Blocked     event.Reason
}

// Machine is the desk: see the package documentation. One goroutine at a time.
type Machine struct {
	policy    Policy // QuoteTTL 0 = none yet
	pairs     []Pair
	rails     []RailPrice
	locks     []Lock
	operators []Operator

	tickets  table[market.TicketID, Ticket]
	quotes   table[market.QuoteID, Quote]
	claims   table[market.ClaimID, claimItem]
	payments table[[64]byte, paymentItem]
	wallets  map[market.Address]uint32 // number of reserved claims, without unproven ones
	// Dollars that reserved unproven claims hold, and base atoms.
	clients       map[ClientAddress]market.USD
	unproven      map[trancheKey]market.USD
	unprovenAtoms map[market.InstrumentID]uint64

	refundsDue int // number of payments due for refund
	lastTicket market.TicketID

	quoteEnds, claimEnds, ticketEnds timers
	// ticketRemovals has the ended tickets that reserve nothing, by the time of their removal.
	// removablePaid and removableUnpaid have the claims that may be forgotten, with and without
	// payments, by ChangedAt.
	ticketRemovals, removablePaid, removableUnpaid timers

	lastShown Stamp // of the last change visible in a View

	limits   memoryLimits
	current  currentCommand
	requests [KindSetBalance + 1]Request // read into, one a kind
	in, w    codec                       // scratch memory to read and to write with
}

// memoryLimits are lower in tests only.
type memoryLimits struct{ tickets, quotes, claims, payments, refunds int }

// currentCommand is the context of the request's handlers, and their scratch memory.
type currentCommand struct {
	Stamp
	out     *event.Sink
	outcome Outcome
	key     KeyUsed
	removed Removed
	tranche TicketTranche
	pricing pricing
}

// New returns a desk without a policy, so nothing is priced.
func New() *Machine {
	return &Machine{
		tickets:  newTable[market.TicketID, Ticket](),
		quotes:   newTable[market.QuoteID, Quote](),
		claims:   newTable[market.ClaimID, claimItem](),
		payments: newTable[[64]byte, paymentItem](),
		wallets:  map[market.Address]uint32{},
		clients:  map[ClientAddress]market.USD{},
		unproven: map[trancheKey]market.USD{},

		unprovenAtoms: map[market.InstrumentID]uint64{},
		limits: memoryLimits{
			tickets: MaxTickets, quotes: MaxQuotes, claims: MaxClaims, payments: MaxPayments, refunds: MaxRefunds,
		},
	}
}

// Apply applies one encoded request and writes its records: those of Expire with CommandSlice, KeyUsed if it has
// an idempotency key, what it changed, and its Outcome. It never panics: bytes that are no
// request get an Outcome with ReasonInvalidCommand. It does not keep data. px may be nil: then
// no book has a mid price.
func (m *Machine) Apply(data []byte, s Stamp, px Prices, out *event.Sink) {
	m.Expire(s, CommandSlice, out)
	m.begin(s, out)
	m.current.pricing = pricing{policy: &m.policy, pairs: m.pairs, rails: m.rails, books: px, at: s.At}
	o := &m.current.outcome
	*o = Outcome{At: s.At}
	r := m.read(data)
	var refused refusal
	if r == nil {
		refused.reason = event.ReasonInvalidCommand
		if p, ok := PeekRequest(data); ok && newRequest(p.Kind) != nil {
			o.RequestID, o.Kind = p.RequestID, p.Kind
		}
	} else {
		head := r.Head()
		o.RequestID, o.Kind = head.RequestID, r.Kind()
		if head.Key != (IdempotencyKey{}) {
			m.current.key = KeyUsed{head.RequestID, head.Key}
			m.emit(&m.current.key)
		}
		if refused = m.admit(head); refused.reason == 0 {
			refused = r.apply(m)
		}
	}
	o.Reason, o.Limit = refused.reason, refused.limit
	m.emit(o)
	m.end()
}

func (m *Machine) begin(s Stamp, out *event.Sink) { m.current.Stamp, m.current.out = s, out }

func (m *Machine) end() { m.current.out, m.current.pricing = nil, pricing{} }

// read decodes data, or returns nil. The request is valid until the next read.
func (m *Machine) read(data []byte) Request {
	if len(data) == 0 || int(data[0]) >= len(m.requests) {
		return nil
	}
	k := RequestKind(data[0])
	if m.requests[k] == nil {
		if m.requests[k] = newRequest(k); m.requests[k] == nil {
			return nil
		}
	}
	if !readRequest(m.requests[k], data, &m.in) {
		return nil
	}
	return m.requests[k]
}

func (m *Machine) admit(h *Header) refusal {
	switch {
	case h.RequestID == 0:
		return refusal{reason: event.ReasonInvalidCommand}
	case h.Operator != 0 && m.operator(h.Operator) == nil:
		return refusal{reason: event.ReasonUnknownOperator}
	}
	return refusal{}
}

// emit writes a record and updates lastShown if a View shows the change.
func (m *Machine) emit(rec Record) {
	writeRecord(rec, m.current.Seq, &m.w, m.current.out)
	switch rec.Tag() {
	case TagPolicy, TagPair, TagRailPrice, TagLock, TagOperator, TagTicket, TagTranche:
		m.lastShown = Stamp{Seq: m.current.Seq, At: m.current.At}
	}
}

func (m *Machine) emitRemoved(what Tag, id uint64) {
	m.current.removed = Removed{what, id, m.current.At}
	m.emit(&m.current.removed)
	if what == TagTicket {
		m.lastShown = Stamp{Seq: m.current.Seq, At: m.current.At}
	}
}

// The steps of one Expire under RulesGuarded are bounded, so that a mass expiry holds up
// nothing else: TickSlice with a Tick, about 50 µs; CommandSlice with every other command. Both
// are more than one command can add, so what is due is always swept in the end.
const (
	TickSlice    = 96
	CommandSlice = 8

	// otherSteps is the steps that the end of a claim or ticket counts, as much as so many
	// quotes.
	otherSteps = 4
)

// Expire ends quotes, reservations and tickets that are due at s.At, then forgets tickets whose
// retention has passed. Apply calls it first; the engine calls it for all other commands, so
// that nothing stays alive because no request arrives. Under RulesGuarded it takes about steps
// steps, at least one item, and the rest is for the next commands; what is due counts as ended
// in every request already, but it returns its capacity when it is swept. NextExpiry then
// returns a time that has passed.
func (m *Machine) Expire(s Stamp, steps int, out *event.Sink) {
	m.begin(s, out)
	m.sweep(steps)
	m.end()
}

// sweep ends what is due, in the order of quotes, claims and tickets.
func (m *Machine) sweep(steps int) {
	at, bounded := m.current.At, m.policy.Rules == RulesGuarded
	for steps > 0 || !bounded {
		if slot, ok := m.quoteEnds.due(at); ok {
			m.removeQuote(slot)
			steps--
			continue
		}
		if slot, ok := m.claimEnds.due(at); ok {
			m.expireClaim(slot)
		} else if slot, ok = m.ticketEnds.due(at); ok {
			m.endTicket(slot, TicketExpired)
		} else if slot, ok = m.ticketRemovals.due(at); ok {
			m.removeTicket(slot)
		} else {
			return
		}
		steps -= otherSteps
	}
}

// NextExpiry returns when Expire next has something to do; 0 = never.
func (m *Machine) NextExpiry() int64 {
	next := int64(0)
	for _, t := range [...]*timers{&m.quoteEnds, &m.claimEnds, &m.ticketEnds, &m.ticketRemovals} {
		if len(t.heap) != 0 && (next == 0 || t.heap[0].at < next) {
			next = t.heap[0].at
		}
	}
	return next
}

// ReadModel returns a read model that is up to date with m.
func (m *Machine) ReadModel() *ReadModel {
	b := &ReadModel{current: View{
		Seq: m.lastShown.Seq, At: m.lastShown.At, Policy: m.policy,
		Pairs: slices.Clone(m.pairs), RailPrices: slices.Clone(m.rails),
		Locks: slices.Clone(m.locks), Operators: slices.Clone(m.operators),
	}}
	for _, t := range m.tickets.sorted(compareTickets) {
		shown := *t
		shown.Tranches = slices.Clone(t.Tranches)
		b.current.Tickets = append(b.current.Tickets, &shown)
	}
	return b
}

// addTime returns at + d, or math.MaxInt64 if that overflows.
func addTime(at, d int64) int64 {
	if at > math.MaxInt64-d {
		return math.MaxInt64
	}
	return at + d
}

// printable reports whether text is 1..MaxText bytes of printable ASCII.
func printable(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return text != "" && len(text) <= MaxText
}

func (m *Machine) operator(id market.OperatorID) *Operator {
	i, ok := slices.BinarySearchFunc(m.operators, Operator{ID: id}, compareOperators)
	if !ok {
		return nil
	}
	return &m.operators[i]
}

// removeQuote forgets a used or expired quote.
func (m *Machine) removeQuote(slot uint32) {
	id := m.quotes.at(slot).ID
	m.quoteEnds.remove(slot)
	m.quotes.remove(id)
	m.emitRemoved(TagQuote, uint64(id))
}
