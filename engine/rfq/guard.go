package rfq

import (
	"math/bits"

	"blockdesk/engine/event"
	"blockdesk/market"
)

// guard is the last check before the desk signs a delivery or a countersignature. Everything
// else has been granted, so it refuses only if the price has moved too far against the desk,
// or while no fresh price shows whether it has; if deliveries are locked; and if the desk's
// wallet holds too little. Its reasons come in this order: Locked, PriceUnavailable or PriceStale,
// Inventory, PriceCorridor.
func (m *Machine) guard(c *Claim) refusal {
	t := &c.Terms
	p := findPair(m.pairs, t.Instrument)
	if deliveriesLocked(m.locks) {
		return refusal{reason: event.ReasonLocked}
	}
	var moved refusal
	switch {
	case t.guarded():
		moved = m.checkFirm(t)
	case c.Mode == Atomic || m.policy.Rules == RulesGuarded:
		moved = m.checkUnguarded(p, t)
	}
	switch {
	case moved.reason != 0 && moved.reason != event.ReasonPriceCorridor:
		return moved
	case p.OnChainAt != 0 && p.OnChain < t.Base:
		return refusal{event.ReasonInventory, clampToInt64(p.OnChain)}
	}
	return moved
}

func deliveriesLocked(locks []Lock) bool {
	for i := range locks {
		if locks[i].Scope == LockDeliveries && locks[i].Locked {
			return true
		}
	}
	return false
}

// checkFirm checks that the price of guarded terms has not moved against the desk by more than
// FirmBps since they were made: market now ÷ market then × rail then ÷ rail now is at most 1 +
// FirmBps, exactly. The limit of PriceCorridor is FirmBps.
func (m *Machine) checkFirm(t *Terms) refusal {
	p := findPair(m.pairs, t.Instrument)
	reference, asset, refused := m.current.pricing.current(p, t.Rail)
	if refused.reason != 0 {
		return refused
	}
	firm := p.FirmBps[t.Rail]
	if exceeds(uint64(reference), uint64(t.RailPrice), uint64(t.Market), uint64(asset), firm) {
		return refusal{event.ReasonPriceCorridor, int64(firm)}
	}
	return refusal{}
}

// checkUnguarded makes the checks of 0.1.0, for terms that were made under its rules: the
// reference lies within the corridor, and the payment is worth the fill less the corridor.
func (m *Machine) checkUnguarded(p *Pair, t *Terms) refusal {
	if refused := m.current.pricing.checkAnchor(p); refused.reason != 0 {
		return refused
	}
	if refused := checkCorridor(p, t.Reference); refused.reason != 0 {
		return refused
	}
	return m.current.pricing.checkPaymentValue(p, t)
}

// exceeds reports whether a × b is more than bps basis points above c × d.
func exceeds(a, b, c, d uint64, bps uint16) bool {
	x, y := mul3(a, b, market.MaxBps), mul3(c, d, market.MaxBps+uint64(bps))
	for i := range x {
		if x[i] != y[i] {
			return x[i] > y[i]
		}
	}
	return false
}

// mul3 returns a × b × c, the highest word first.
func mul3(a, b, c uint64) [3]uint64 {
	hi, lo := bits.Mul64(a, b)
	mid, low := bits.Mul64(lo, c)
	high, rest := bits.Mul64(hi, c)
	mid, carry := bits.Add64(mid, rest, 0)
	return [3]uint64{high + carry, mid, low}
}

// movedBeyond reports whether a price went from old to next by more than bps, in either
// direction. If old is 0 there was no price, and none has moved.
func movedBeyond(old, next market.USDPrice, bps uint16) bool {
	return old != 0 && exceeds(uint64(max(old, next)), 1, uint64(min(old, next)), 1, bps)
}

// endMovedQuotes ends the quotes of p that a new anchor makes obsolete: those of the rails
// whose FirmBps the move exceeds, or all if the anchor was withdrawn.
func (m *Machine) endMovedQuotes(p *Pair, old market.USDPrice) {
	var ended market.Rails
	for r := market.RailUSDC; r < market.RailCount; r++ {
		if movedBeyond(old, p.Anchor, p.FirmBps[r]) {
			ended = ended.With(r)
		}
	}
	if m.policy.Rules == RulesGuarded && ended != 0 {
		m.endQuotes(func(q *Quote) bool { return q.Terms.Instrument == p.Instrument && ended.Has(q.Terms.Rail) })
	}
}

// endMovedRailQuotes is endMovedQuotes for a new price of the rail's asset.
func (m *Machine) endMovedRailQuotes(rail market.Rail, old, next market.USDPrice) {
	moved := false
	for i := range m.pairs {
		moved = moved || movedBeyond(old, next, m.pairs[i].FirmBps[rail])
	}
	if m.policy.Rules == RulesGuarded && moved {
		m.endQuotes(func(q *Quote) bool {
			return q.Terms.Rail == rail && movedBeyond(old, next, findPair(m.pairs, q.Terms.Instrument).FirmBps[rail])
		})
	}
}

// unproven reports whether the claim counts against its client address and the share of
// unproven claims, instead of its wallet: anyone can name a wallet that is not theirs.
func (c *Claim) unproven() bool { return c.Terms.guarded() && !c.Proven }

// checkUnproven checks the limits of unproven claims for one more. The share is of what the
// proven ones have left, of the tranche and of the pair's inventory: so these find the rest
// also when most is sold, and when tranches together offer more than the desk holds. The limit
// of UnprovenShare is in dollars.
func (m *Machine) checkUnproven(client ClientAddress, t *Terms, tr *Tranche) refusal {
	fill, most := t.Fill.USD(), m.policy.UnprovenPerClient
	if m.clients[client]+fill > most {
		return refusal{event.ReasonUnprovenLimit, int64(most)}
	}
	held := m.unproven[trancheKey{t.Ticket, t.Tranche}]
	if share := m.unprovenShare(uint64(tr.Available() + held)); uint64(held+fill) > share {
		return refusal{event.ReasonUnprovenShare, clampToInt64(share)}
	}
	atoms := m.unprovenAtoms[t.Instrument]
	if share := m.unprovenShare(findPair(m.pairs, t.Instrument).Free() + atoms); atoms+t.Base > share {
		dollars, err := market.MulDivFloor(share, uint64(fill), t.Base)
		if err != nil {
			dollars = 0
		}
		return refusal{event.ReasonUnprovenShare, clampToInt64(dollars)}
	}
	return refusal{}
}

// unprovenShare returns the share of the policy, rounded down.
func (m *Machine) unprovenShare(of uint64) uint64 {
	share, err := market.MulDivFloor(of, uint64(m.policy.UnprovenShareBps), market.MaxBps)
	if err != nil { // the share is at most all
		return 0
	}
	return share
}
