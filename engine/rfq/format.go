package rfq

import (
	"errors"
	"fmt"

	"blockdesk/market"
)

// ErrNotFinalized means that a request cannot be made while the group's log has a format that
// lacks it.
var ErrNotFinalized = errors.New("not possible until the operator has finalized the upgrade of the group (blockdesk cluster finalize)")

// Format returns the lowest format whose programs apply the machine's requests alike: 2 once
// the policy has rules that release 0.1.0 lacks.
func (m *Machine) Format() uint16 {
	if m.policy.Rules != 0 {
		return 2
	}
	return 1
}

// RequestFormat returns the format (engine.Format1, engine.Format2) that an encoded request
// needs.
func RequestFormat(data []byte) uint16 {
	if len(data) < 2 || data[1] == requestVersion1 && RequestKind(data[0]) <= KindSetFirstTicket {
		return 1
	}
	return 2
}

// fitFormat1 clears what version 2 encodes.
func (p *Policy) fitFormat1() {
	p.Rules, p.Grace, p.UnprovenTTL, p.UnprovenPerClient, p.UnprovenShareBps = 0, 0, 0, 0, 0
	p.Dust = [market.RailCount]uint64{}
}

// FitFormat1 makes r a request that release 0.1.0 reads: it clears the fields that came
// later, which turns the newer rules off for what r makes. It returns ErrFormat, and leaves
// r as it was, if r is nothing without them.
func FitFormat1(r Request) error {
	if r.Kind() > KindSetFirstTicket {
		return fmt.Errorf("%w: request of kind %d", ErrNotFinalized, r.Kind())
	}
	switch r := r.(type) {
	case *SetPolicy:
		r.Policy.fitFormat1()
	case *SetPair:
		r.Pair.FirmBps = [market.RailCount]uint16{}
	case *SetAnchor:
		if r.Withdrawn {
			return ErrNotFinalized
		}
		r.Source, r.Confidence, r.PublishedAt = 0, 0, 0
	case *SetRailPrice:
		if r.Withdrawn {
			return ErrNotFinalized
		}
		r.Source, r.Confidence, r.PublishedAt = 0, 0, 0
	case *RequestQuote:
		r.Indicative = false
	case *TakeClaim:
		r.Client, r.Proven = 0, false
	case *ProvePayment:
		r.BlockTime = 0
	case *AbandonDelivery:
		r.Reason = 0
	}
	return nil
}
