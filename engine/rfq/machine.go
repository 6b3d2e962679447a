package rfq

import (
	"math"
	"slices"

	"blockdesk/engine/event"
	"blockdesk/market"
)

// Stamp is what the sequencer gave a command.
type Stamp struct {
	Seq uint64
	At  int64 // Unix ns, 0 or more; never falls
	// Participant is the one that commands over FIX; 0 = nobody does. Blocked says
	// why it may have no quote and no claim; 0 = it may.
	Participant market.ParticipantID
	Blocked     event.Reason
}

// Machine is the desk: see the package doc for what it does. It is one
// goroutine's.
type Machine struct {
	policy    Policy // QuoteTTL 0 = none yet
	pairs     []Pair
	rails     []RailPrice
	locks     []Lock
	operators []Operator

	tickets    table[market.TicketID, Ticket]
	quotes     table[market.QuoteID, Quote]
	claims     table[market.ClaimID, claimItem]
	payments   table[[64]byte, paymentItem]
	wallets    map[market.Address]uint32 // claims reserved
	dues       int                       // payments due for refund
	lastTicket market.TicketID

	quoteEnds, claimEnds, ticketEnds timers
	// forgets has the tickets that have ended and reserve nothing; endedPaid and
	// endedFree the claims that may be forgotten, with payments and without, by
	// ChangedAt.
	forgets, endedPaid, endedFree timers

	shown Stamp // of the last change that a View shows

	bounds bounds
	call   call
	inbox  [KindSetFirstTicket + 1]Request // read into, one a kind
	in, w  wire                            // scratch memory to read and to write with
}

// bounds are the limits of memory: lower in tests alone.
type bounds struct{ tickets, quotes, claims, payments, refunds int }

// call is what handlers know of the command at hand, and their scratch memory.
type call struct {
	Stamp
	out     *event.Sink
	outcome Outcome
	key     KeyUsed
	gone    Removed
	tranche TicketTranche
	outlook outlook
}

// New returns a desk that has nothing: no policy, so nothing is priced.
func New() *Machine {
	return &Machine{
		tickets:  newTable[market.TicketID, Ticket](),
		quotes:   newTable[market.QuoteID, Quote](),
		claims:   newTable[market.ClaimID, claimItem](),
		payments: newTable[[64]byte, paymentItem](),
		wallets:  map[market.Address]uint32{},
		bounds: bounds{
			tickets: MaxTickets, quotes: MaxQuotes, claims: MaxClaims, payments: MaxPayments, refunds: MaxRefunds,
		},
	}
}

// Apply does one whole encoded request and writes its records: KeyUsed where it
// has a key, what it changed, and its Outcome. Before them stands what Expire
// would write. Whatever the bytes, it does not panic; those that are no request
// have an Outcome with ReasonInvalidCommand. data is not kept. px may be nil: no
// book has a middle then.
func (m *Machine) Apply(data []byte, s Stamp, px Prices, out *event.Sink) {
	m.Expire(s, out)
	m.begin(s, out)
	m.call.outlook = outlook{pairs: m.pairs, books: px, at: s.At}
	o := &m.call.outcome
	*o = Outcome{At: s.At}
	r := m.read(data)
	var no refusal
	if r == nil {
		no.reason = event.ReasonInvalidCommand
		if p, ok := PeekRequest(data); ok && newRequest(p.Kind) != nil {
			o.Token, o.Kind = p.Token, p.Kind
		}
	} else {
		head := r.Head()
		o.Token, o.Kind = head.Token, r.Kind()
		if head.Key != (IdempotencyKey{}) {
			m.call.key = KeyUsed{head.Token, head.Key}
			m.tell(&m.call.key)
		}
		if no = m.admit(head); no.reason == 0 {
			no = m.do(r)
		}
	}
	o.Reason, o.Limit = no.reason, no.limit
	m.tell(o)
	m.end()
}

func (m *Machine) begin(s Stamp, out *event.Sink) { m.call.Stamp, m.call.out = s, out }

func (m *Machine) end() { m.call.out, m.call.outlook = nil, outlook{} }

// read returns the request that data is, or nil. It is good until the next.
func (m *Machine) read(data []byte) Request {
	if len(data) == 0 || int(data[0]) >= len(m.inbox) {
		return nil
	}
	k := RequestKind(data[0])
	if m.inbox[k] == nil {
		if m.inbox[k] = newRequest(k); m.inbox[k] == nil {
			return nil
		}
	}
	if !readRequest(m.inbox[k], data, &m.in) {
		return nil
	}
	return m.inbox[k]
}

func (m *Machine) admit(h *Header) refusal {
	switch {
	case h.Token == 0:
		return refusal{reason: event.ReasonInvalidCommand}
	case h.Operator != 0 && m.operator(h.Operator) == nil:
		return refusal{reason: event.ReasonUnknownOperator}
	}
	return refusal{}
}

func (m *Machine) do(r Request) refusal {
	switch r := r.(type) {
	case *SetPolicy:
		return m.setPolicy(r)
	case *SetPair:
		return m.setPair(r)
	case *SetOperator:
		return m.setOperator(r)
	case *SetAnchor:
		return m.setAnchor(r)
	case *SetRailPrice:
		return m.setRailPrice(r)
	case *SetInventory:
		return m.setInventory(r)
	case *SetLock:
		return m.setLock(r)
	case *PostTicket:
		return m.postTicket(r)
	case *AmendTicket:
		return m.amendTicket(r)
	case *SetTranche:
		return m.setTranche(r)
	case *WithdrawTicket:
		return m.withdrawTicket(r)
	case *RequestQuote:
		return m.requestQuote(r)
	case *TakeClaim:
		return m.takeClaim(r)
	case *ProvePayment:
		return m.provePayment(r)
	case *BeginDelivery:
		return m.beginDelivery(r)
	case *ExpireDelivery:
		return m.lapseDelivery(r)
	case *SettleClaim:
		return m.settleClaim(r)
	case *CosignClaim:
		return m.cosignClaim(r)
	case *ReleaseClaim:
		return m.releaseClaim(r)
	case *RefundPayment:
		return m.refundPayment(r)
	case *AbandonDelivery:
		return m.abandonDelivery(r)
	case *SetFirstTicket:
		return m.numberTickets(r)
	}
	return refusal{reason: event.ReasonInvalidCommand}
}

// tell writes a record, and notes the change where a View shows it.
func (m *Machine) tell(rec Record) {
	writeRecord(rec, m.call.Seq, &m.w, m.call.out)
	switch rec.Tag() {
	case TagPolicy, TagPair, TagRailPrice, TagLock, TagOperator, TagTicket, TagTranche:
		m.shown = Stamp{Seq: m.call.Seq, At: m.call.At}
	}
}

func (m *Machine) tellGone(what Tag, id uint64) {
	m.call.gone = Removed{what, id, m.call.At}
	m.tell(&m.call.gone)
	if what == TagTicket {
		m.shown = Stamp{Seq: m.call.Seq, At: m.call.At}
	}
}

// Expire ends what is due at s.At: quotes, reservations and tickets by their
// times; then the tickets that ended long enough ago are forgotten. It is part
// of Apply; the engine calls it for its other commands, so that time passes for
// the desk too.
func (m *Machine) Expire(s Stamp, out *event.Sink) {
	m.begin(s, out)
	for slot, ok := m.quoteEnds.due(s.At); ok; slot, ok = m.quoteEnds.due(s.At) {
		m.dropQuote(slot)
	}
	for slot, ok := m.claimEnds.due(s.At); ok; slot, ok = m.claimEnds.due(s.At) {
		m.expireClaim(slot)
	}
	for slot, ok := m.ticketEnds.due(s.At); ok; slot, ok = m.ticketEnds.due(s.At) {
		m.endTicket(slot, TicketExpired)
	}
	for slot, ok := m.forgets.due(s.At); ok; slot, ok = m.forgets.due(s.At) {
		m.forgetTicket(slot)
	}
	m.end()
}

// NextExpiry returns when Expire has something to do next; 0 = never, as things
// stand.
func (m *Machine) NextExpiry() int64 {
	next := int64(0)
	for _, t := range [...]*timers{&m.quoteEnds, &m.claimEnds, &m.ticketEnds, &m.forgets} {
		if len(t.heap) != 0 && (next == 0 || t.heap[0].at < next) {
			next = t.heap[0].at
		}
	}
	return next
}

// ReadModel returns a reader's copy of what is shown, as if it had followed the
// records.
func (m *Machine) ReadModel() *ReadModel {
	b := &ReadModel{now: View{
		Seq: m.shown.Seq, At: m.shown.At, Policy: m.policy,
		Pairs: slices.Clone(m.pairs), RailPrices: slices.Clone(m.rails),
		Locks: slices.Clone(m.locks), Operators: slices.Clone(m.operators),
	}}
	for _, t := range m.tickets.sorted(compareTickets) {
		shown := *t
		shown.Tranches = slices.Clone(t.Tranches)
		b.now.Tickets = append(b.now.Tickets, &shown)
	}
	return b
}

// later is at + d, or the end of time.
func later(at, d int64) int64 {
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
