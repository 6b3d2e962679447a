package mirror

import (
	"errors"
	"fmt"

	"blockdesk/internal/solana"
	"blockdesk/market"
)

// MaxSignatures bounds the trades of one call of [Service.Signatures].
const MaxSignatures = 1000

// ErrTooMany means that more was asked for in one call than the limit named.
var ErrTooMany = errors.New("mirror: too many in one call")

// Signature returns the signature of the transaction that a trade of a mirrored
// instrument was made in, by the trade's ordinal. ok is false for one that has
// not been given, for what was given before the store was lost, and for an
// instrument without a pool here. The time is one read of the store: a few
// microseconds, more where it is on disk alone. For several trades in a row
// [Service.Signatures] is cheaper. Errors: the store's; [ErrRecord].
//
// Any goroutine may call it, while Run runs or not.
func (s *Service) Signature(in market.InstrumentID, ordinal uint64) (sig solana.Signature, ok bool, err error) {
	store := s.storeOf(in)
	if store == nil {
		return sig, false, nil
	}
	var r swapRecord
	if ok, err = store.get(store.key('s', number(ordinal)), &r); err != nil {
		return sig, false, fmt.Errorf("instrument %d, swap %d: %w", in, ordinal, err)
	}
	return r.Mark.Key.Signature, ok, nil
}

// Signatures returns what [Service.Signature] does of the trades from one ordinal
// to another, both included: at i the signature of trade from+i, zero for one that
// is not known. nil for to < from. It is one scan of the store: a seek and some two
// microseconds a trade. Errors: [ErrTooMany] for more than [MaxSignatures]; as
// Signature.
//
// Any goroutine may call it, while Run runs or not.
func (s *Service) Signatures(in market.InstrumentID, from, to uint64) ([]solana.Signature, error) {
	if to < from {
		return nil, nil
	}
	if to-from >= MaxSignatures {
		return nil, fmt.Errorf("%w: instrument %d: trades %d to %d", ErrTooMany, in, from, to)
	}
	list := make([]solana.Signature, to-from+1)
	store := s.storeOf(in)
	if store == nil {
		return list, nil
	}
	if err := store.swaps(from, to, func(r *swapRecord) { list[r.Ordinal-from] = r.Mark.Key.Signature }); err != nil {
		return nil, fmt.Errorf("instrument %d, swaps %d to %d: %w", in, from, to, err)
	}
	return list, nil
}

// storeOf returns the records of an instrument, nil where it has no pool here.
func (s *Service) storeOf(in market.InstrumentID) *records {
	for _, w := range s.swaps {
		if w != nil && w.pair.Instrument.ID == in {
			return w.store
		}
	}
	return nil
}
