package mirror

import (
	"errors"
	"fmt"

	"blockdesk/internal/solana"
	"blockdesk/market"
)

// MaxSignatures bounds the trades of one call of [Service.Signatures].
const MaxSignatures = 1000

// ErrTooMany means that a call exceeds the limit that its error names.
var ErrTooMany = errors.New("mirror: too many trades in one call")

// Signature returns the signature of the transaction of a mirrored instrument's trade, by
// the trade's ordinal. ok is false for an ordinal that is not assigned yet or that was
// lost with the store, and for an instrument without a pool. It is one read of the store,
// a few microseconds if cached. [Service.Signatures] is cheaper for several trades in a
// row. Errors: [ErrRecord], errors of the store.
//
// Any goroutine may call it, also while Run is not running.
func (s *Service) Signature(in market.InstrumentID, ordinal uint64) (sig solana.Signature, ok bool, err error) {
	store := s.storeOf(in)
	if store == nil {
		return sig, false, nil
	}
	var r swapRecord
	if ok, err = store.get(store.key('s', number(ordinal)), &r); err != nil {
		return sig, false, fmt.Errorf("instrument %d, swap %d: %w", in, ordinal, err)
	}
	return r.Ref.Key.Signature, ok, nil
}

// Signatures returns the signatures of the trades with the ordinals from to to. Element i
// is the signature of trade from+i, zero if unknown. The result is nil for to < from. It
// is one scan of the store, some two microseconds a trade. Errors: [ErrTooMany] for more
// than [MaxSignatures]; those of Signature.
//
// Any goroutine may call it, also while Run is not running.
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
	if err := store.swaps(from, to, func(r *swapRecord) { list[r.Ordinal-from] = r.Ref.Key.Signature }); err != nil {
		return nil, fmt.Errorf("instrument %d, swaps %d to %d: %w", in, from, to, err)
	}
	return list, nil
}

// ChainSwap is a swap that was published as a trade. A zero Signature means that it is
// not known.
type ChainSwap struct {
	Signature   solana.Signature
	Payer       solana.Address
	Slot        uint64
	Base, Quote market.Amount // atoms, with these decimals

	BaseDecimals, QuoteDecimals int
}

// ChainSwaps is Signatures with all of each swap.
//
// Any goroutine may call it, also while Run is not running.
func (s *Service) ChainSwaps(in market.InstrumentID, from, to uint64) ([]ChainSwap, error) {
	if to < from {
		return nil, nil
	}
	if to-from >= MaxSignatures {
		return nil, fmt.Errorf("%w: instrument %d: trades %d to %d", ErrTooMany, in, from, to)
	}
	list := make([]ChainSwap, to-from+1)
	w := s.trackerOf(in)
	if w == nil {
		return list, nil
	}
	p := w.pair
	err := w.store.swaps(from, to, func(r *swapRecord) {
		list[r.Ordinal-from] = ChainSwap{
			Signature: r.Ref.Key.Signature, Payer: r.Payer, Slot: r.Ref.Slot, Base: r.Base, Quote: r.Quote,
			BaseDecimals: int(p.Base.Decimals), QuoteDecimals: int(p.Quote.Decimals),
		}
	})
	if err != nil {
		return nil, fmt.Errorf("instrument %d, swaps %d to %d: %w", in, from, to, err)
	}
	return list, nil
}

// storeOf returns the records of an instrument; nil if it has no pool.
func (s *Service) storeOf(in market.InstrumentID) *records {
	if w := s.trackerOf(in); w != nil {
		return w.store
	}
	return nil
}

func (s *Service) trackerOf(in market.InstrumentID) *swapTracker {
	for _, w := range s.swaps {
		if w != nil && w.pair.Instrument.ID == in {
			return w
		}
	}
	return nil
}
