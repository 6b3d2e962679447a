package rfq

import (
	"slices"

	"blockdesk/engine/event"
	"blockdesk/market"
)

// Requests of the configuration and the operators. A request that changes nothing
// succeeds without a record.

const (
	second = int64(1e9) // in nanoseconds
	hour   = 3600 * second
	day    = 24 * hour

	maxQuoteTTL   = hour
	maxClaimTTL   = day
	maxLateWindow = 30 * day
	maxGrace      = hour

	maxBaseDecimals = 12
)

func (r *SetPolicy) apply(m *Machine) refusal {
	if !r.Policy.valid() {
		return refusal{reason: event.ReasonInvalidCommand}
	}
	if r.Policy.Rules < m.policy.Rules {
		return refusal{reason: event.ReasonInvalidCombination}
	}
	if m.policy == r.Policy {
		return refusal{}
	}
	old := m.policy
	m.policy = r.Policy
	m.emit(&m.policy)
	if old.Grace != m.policy.Grace {
		for _, slot := range m.claims.slots {
			if c := m.claims.at(slot); c.State == ClaimReserved {
				m.claimEnds.set(slot, m.holdsUntil(&c.Claim), uint64(c.ID))
			}
		}
	}
	if old.Rules != m.policy.Rules { // quotes of other rules lack what these need
		m.endQuotes(func(*Quote) bool { return true })
	}
	return refusal{}
}

func (p *Policy) valid() bool {
	if p.Rules != 0 && p.Rules != RulesGuarded || p.Rules == 0 && p.usesV2() || p.Dust[0] != 0 ||
		p.Rules == RulesGuarded && !p.validGuarded() {
		return false
	}
	for _, d := range p.Discounts {
		if d >= market.MaxBps {
			return false
		}
	}
	return p.QuoteTTL >= second && p.QuoteTTL <= maxQuoteTTL &&
		p.ClaimTTL >= second && p.ClaimTTL <= maxClaimTTL &&
		p.LateWindow >= 0 && p.LateWindow <= maxLateWindow &&
		p.FeeBps <= market.MaxBps && p.WalletClaims >= 1 && p.PayTo[0] == market.Address{}
}

// validGuarded checks what only RulesGuarded have.
func (p *Policy) validGuarded() bool {
	return p.LateWindow == 0 && p.Grace >= 0 && p.Grace <= maxGrace &&
		p.UnprovenTTL >= second && p.UnprovenTTL <= maxClaimTTL &&
		p.UnprovenPerClient <= MaxCapacity && p.UnprovenShareBps <= market.MaxBps
}

// apply keeps the pair's anchor, inventory and sales. Its asset may change only while
// nothing is counted in its atoms: no ticket, inventory or sale.
func (r *SetPair) apply(m *Machine) refusal {
	p := r.Pair
	if !p.valid() {
		return refusal{reason: event.ReasonInvalidCommand}
	}
	if p.Via != NoInstrument && (p.Via == p.Instrument || findPair(m.pairs, p.Via) == nil) {
		return refusal{reason: event.ReasonUnknownPair}
	}
	old := findPair(m.pairs, p.Instrument)
	if old == nil {
		p.keep(&Pair{})
	} else {
		p.keep(old)
		if *old == p {
			return refusal{}
		}
		if (old.BaseMint != p.BaseMint || old.BaseDecimals != p.BaseDecimals) &&
			(p.Inventory != 0 || p.Sold != 0 || m.hasTickets(p.Instrument)) {
			return refusal{reason: event.ReasonInvalidCombination}
		}
	}
	put(&m.pairs, p, true, comparePairs)
	m.emit(findPair(m.pairs, p.Instrument))
	return refusal{}
}

// keep copies what SetPair does not change: anchor, inventory, sales and balance.
func (p *Pair) keep(old *Pair) {
	p.Anchor, p.AnchorAt, p.AnchorSource = old.Anchor, old.AnchorAt, old.AnchorSource
	p.Confidence, p.PublishedAt, p.Withdrawn = old.Confidence, old.PublishedAt, old.Withdrawn
	p.Inventory, p.Reserved, p.Sold = old.Inventory, old.Reserved, old.Sold
	p.OnChain, p.OnChainAt = old.OnChain, old.OnChainAt
}

// valid checks the fields of SetPair except Via.
func (p *Pair) valid() bool {
	for _, bps := range p.FirmBps {
		if bps > market.MaxBps {
			return false
		}
	}
	return p.FirmBps[0] == 0 && p.Instrument < market.MaxInstruments && p.BaseDecimals <= maxBaseDecimals && p.Rails != 0 && p.Rails&^market.AllRails == 0 &&
		(p.Source == SourceOperator || p.Source == SourceBook) &&
		p.CorridorBps >= 1 && p.CorridorBps < market.MaxBps && p.MaxAge >= 0
}

func (r *SetFirstTicket) apply(m *Machine) refusal {
	group := r.First.Shard()
	if group == 0 || r.First != market.FirstTicket(group) {
		return refusal{reason: event.ReasonInvalidCommand}
	}
	switch {
	case m.lastTicket == 0:
		m.lastTicket = r.First - 1
	case m.lastTicket != r.First-1 && m.lastTicket.Shard() != group:
		return refusal{reason: event.ReasonInvalidCombination}
	}
	return refusal{}
}

func (m *Machine) hasTickets(in market.InstrumentID) bool {
	for _, slot := range m.tickets.slots {
		if m.tickets.at(slot).Instrument == in {
			return true
		}
	}
	return false
}

func (r *SetOperator) apply(m *Machine) refusal {
	if r.Of.ID == 0 || !printable(r.Of.Name) {
		return refusal{reason: event.ReasonInvalidCommand}
	}
	old := m.operator(r.Of.ID)
	if old != nil && *old == r.Of {
		return refusal{}
	}
	if old == nil && len(m.operators) >= MaxOperators {
		return refusal{event.ReasonDeskFull, MaxOperators}
	}
	put(&m.operators, r.Of, true, compareOperators)
	m.emit(m.operator(r.Of.ID))
	return refusal{}
}

func (r *SetAnchor) apply(m *Machine) refusal {
	p := findPair(m.pairs, r.Instrument)
	if p == nil {
		return refusal{reason: event.ReasonUnknownPair}
	}
	if refused := m.checkOrigin(r.Price, r.Source, r.Confidence, r.PublishedAt, r.Withdrawn); refused.reason != 0 {
		return refused
	}
	old := p.Anchor
	p.Anchor, p.AnchorAt, p.AnchorSource = r.Price, m.current.At, r.Source
	p.Confidence, p.PublishedAt, p.Withdrawn = r.Confidence, min(r.PublishedAt, m.current.At), r.Withdrawn
	m.emit(p)
	m.endMovedQuotes(p, old)
	return refusal{}
}

// checkOrigin checks a price and where it comes from, or that there is none.
func (m *Machine) checkOrigin(price market.USDPrice, source PriceOrigin, confidence market.USDPrice, publishedAt int64, withdrawn bool) refusal {
	switch {
	case source > OriginOperator || publishedAt < 0:
		return refusal{reason: event.ReasonInvalidCommand}
	case withdrawn && (m.policy.Rules != RulesGuarded || price != 0 || confidence != 0), !withdrawn && !validPrice(price),
		confidence > market.MaxUSDPrice:
		return refusal{reason: event.ReasonInvalidPrice}
	}
	return refusal{}
}

func (r *SetRailPrice) apply(m *Machine) refusal {
	if r.Rail != market.RailSOL || r.MaxAge < 0 {
		return refusal{reason: event.ReasonInvalidCommand}
	}
	if refused := m.checkOrigin(r.Price, r.Source, r.Confidence, r.PublishedAt, r.Withdrawn); refused.reason != 0 {
		return refused
	}
	old := market.USDPrice(0)
	if p := m.railPrice(r.Rail); p != nil {
		old = p.Price
	}
	put(&m.rails, RailPrice{
		Rail: r.Rail, Price: r.Price, At: m.current.At, MaxAge: r.MaxAge, Source: r.Source,
		Confidence: r.Confidence, PublishedAt: min(r.PublishedAt, m.current.At), Withdrawn: r.Withdrawn,
	}, true, compareRailPrices)
	m.emit(m.railPrice(r.Rail))
	m.endMovedRailQuotes(r.Rail, old, r.Price)
	return refusal{}
}

func (m *Machine) railPrice(rail market.Rail) *RailPrice { return findRailPrice(m.rails, rail) }

func (r *SetInventory) apply(m *Machine) refusal {
	p := findPair(m.pairs, r.Instrument)
	if p == nil {
		return refusal{reason: event.ReasonUnknownPair}
	}
	if p.Inventory != r.Atoms {
		p.Inventory = r.Atoms
		m.emit(p)
	}
	return refusal{}
}

func (r *SetBalance) apply(m *Machine) refusal {
	p := findPair(m.pairs, r.Instrument)
	if p == nil {
		return refusal{reason: event.ReasonUnknownPair}
	}
	p.OnChain, p.OnChainAt = r.Atoms, m.current.At
	m.emit(p)
	return refusal{}
}

func (r *SetLock) apply(m *Machine) refusal {
	l := Lock{
		Scope: r.Scope, Instrument: r.Instrument, Rail: r.Rail, Locked: r.Locked,
		Since: m.current.At, By: r.Operator, Reason: r.Reason,
	}
	if !l.valid() {
		return refusal{reason: event.ReasonInvalidCommand}
	}
	if l.Scope == LockPair && findPair(m.pairs, l.Instrument) == nil {
		return refusal{reason: event.ReasonUnknownPair}
	}
	i, ok := slices.BinarySearchFunc(m.locks, l, compareLocks)
	switch {
	case !ok && !l.Locked:
		return refusal{}
	case ok && m.locks[i].Locked == l.Locked && m.locks[i].Reason == l.Reason:
		return refusal{}
	}
	put(&m.locks, l, true, compareLocks)
	m.emit(&m.locks[i])
	return refusal{}
}

// valid checks that the lock has exactly the fields of its scope.
func (l *Lock) valid() bool {
	if l.Reason != "" && !printable(l.Reason) {
		return false
	}
	switch l.Scope {
	case LockAll, LockDeliveries, LockClock:
		return l.Instrument == 0 && l.Rail == 0
	case LockPair:
		return l.Rail == 0
	case LockRail:
		return l.Instrument == 0 && l.Rail.Valid()
	}
	return false
}
