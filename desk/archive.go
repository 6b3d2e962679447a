package desk

import (
	"encoding/binary"
	"fmt"
	"math"

	"blockdesk/engine/rfq"
	"blockdesk/market"
	"blockdesk/persist/kv"
)

// MaxStates is how many states and how many payments a History shows: the newest
// ones. The store keeps all.
const MaxStates = 256

// History is a claim with what has happened to it.
type History struct {
	Claim    rfq.Claim     // newest
	States   []rfq.Claim   // after each change, oldest first; the last one is Claim
	Payments []rfq.Payment // that named the claim, each as it is now, in the order of their first
}

// Claim returns a claim's history; false where it has never been heard of. It
// reads the store and may be called from any goroutine. The errors are the
// store's and ErrLayout.
func (d *Desk) Claim(id market.ClaimID) (*History, bool, error) {
	var h History
	lo := binary.BigEndian.AppendUint64([]byte{keyHistory}, uint64(id))
	err := kv.Each(d.store, lo, historyEnd(id), func(key, value []byte) error {
		claim, payment, err := parseEntry(value)
		switch {
		case err != nil:
			return fmt.Errorf("claim %d: %w", id, err)
		case payment != nil:
			h.setPayment(payment)
		case len(h.States) == 0 || h.States[len(h.States)-1] != *claim: // a step taken again tells the claim again
			h.States = appendBounded(h.States, *claim)
		}
		return nil
	})
	if err != nil || len(h.States) == 0 {
		return nil, false, err
	}
	h.Claim = h.States[len(h.States)-1]
	return &h, true, nil
}

// historyEnd returns the first key after those of the claim.
func historyEnd(id market.ClaimID) []byte {
	if id++; id == 0 {
		return []byte{keyHistory + 1}
	}
	return binary.BigEndian.AppendUint64([]byte{keyHistory}, uint64(id))
}

// pay notes a payment, which takes the place of its earlier record.
func (h *History) setPayment(p *rfq.Payment) {
	for i := range h.Payments {
		if h.Payments[i].Signature == p.Signature {
			h.Payments[i] = *p
			return
		}
	}
	h.Payments = appendBounded(h.Payments, *p)
}

// appendBounded appends v and lets the oldest go past MaxStates.
func appendBounded[T any](list []T, v T) []T {
	if len(list) == MaxStates {
		copy(list, list[1:])
		list = list[:MaxStates-1]
	}
	return append(list, v)
}

// archive writes one line of a claim's history: rec is the claim or a payment.
func (f *projector) writeHistory(id market.ClaimID, rec rfq.Record) {
	f.scratch = appendEntry(f.scratch[:0], rec)
	f.keyScratch = historyKey(f.keyScratch[:0], id, f.seq, f.record)
	f.batch.Set(f.keyScratch, f.scratch)
}

// PaymentClaim returns the claim that a signature has been booked for, whatever
// became of the money; false where it never was. It is told for as long as the
// claim's history, and may be called from any goroutine. The errors are the
// store's and ErrLayout.
func (d *Desk) PaymentClaim(signature [64]byte) (id market.ClaimID, ok bool, err error) {
	lo := paymentKey(make([]byte, 0, paymentKeySize), &signature, 0)
	hi := paymentKey(make([]byte, 0, paymentKeySize), &signature, math.MaxUint64)
	err = kv.Each(d.store, lo, hi, func(_, value []byte) error {
		if id, err = parsePaymentClaim(value); err != nil {
			return err
		}
		ok = true
		return kv.ErrStop
	})
	return id, ok, err
}

// index writes the claim of a payment. Every change of the payment writes it
// again, under the Seq of its command, so that deleteHistoryAfter leaves the older one.
func (f *projector) writePaymentClaim(p *rfq.Payment) {
	f.keyScratch = paymentKey(f.keyScratch[:0], &p.Signature, f.seq)
	f.scratch = appendPaymentClaim(f.scratch[:0], p.Claim)
	f.batch.Set(f.keyScratch, f.scratch)
}

// deleteHistoryAfter takes out every line that a command after seq has written.
func (f *projector) deleteHistoryAfter(seq uint64) error {
	for _, lines := range []struct {
		kind        byte
		size, seqAt int
	}{
		{keyHistory, historyKeySize, 1 + 8},
		{keyPayment, paymentKeySize, 1 + 64},
	} {
		err := f.sweep(lines.kind, func(key, _ []byte) error {
			if len(key) != lines.size {
				return fmt.Errorf("%w: key %x", ErrLayout, key)
			}
			if binary.BigEndian.Uint64(key[lines.seqAt:]) > seq {
				f.batch.Delete(key)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
