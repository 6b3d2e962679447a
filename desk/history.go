package desk

import (
	"encoding/binary"
	"fmt"
	"math"

	"blockdesk/engine/rfq"
	"blockdesk/market"
	"blockdesk/persist/kv"
)

// MaxStates bounds the states and the payments of a History: it has the newest ones.
// The store has all.
const MaxStates = 256

// History is a claim with its states and payments.
type History struct {
	Claim    rfq.Claim     // newest
	States   []rfq.Claim   // after each change, oldest first; the last one is Claim
	Payments []rfq.Payment // payments that named the claim, each in its newest state, in the order of their first records
}

// Claim returns a claim's history; false if the desk has never had the claim. It
// reads the store and may be called from any goroutine. Errors: ErrLayout, errors
// of the store.
func (d *Desk) Claim(id market.ClaimID) (*History, bool, error) { return readHistory(d.store, id) }

func readHistory(store kv.Reader, id market.ClaimID) (*History, bool, error) {
	var h History
	lo := binary.BigEndian.AppendUint64([]byte{keyHistory}, uint64(id))
	err := kv.Each(store, lo, historyEnd(id), func(key, value []byte) error {
		claim, payment, err := parseEntry(value)
		switch {
		case err != nil:
			return fmt.Errorf("claim %d: %w", id, err)
		case payment != nil:
			h.setPayment(payment)
		case len(h.States) == 0 || h.States[len(h.States)-1] != *claim: // a repeated step repeats the record
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

// setPayment replaces a payment's earlier record, or appends the first one.
func (h *History) setPayment(p *rfq.Payment) {
	for i := range h.Payments {
		if h.Payments[i].Signature == p.Signature {
			h.Payments[i] = *p
			return
		}
	}
	h.Payments = appendBounded(h.Payments, *p)
}

func appendBounded[T any](list []T, v T) []T {
	if len(list) == MaxStates {
		copy(list, list[1:])
		list = list[:MaxStates-1]
	}
	return append(list, v)
}

// writeHistory adds a claim's or a payment's record to the claim's history.
func (f *projector) writeHistory(id market.ClaimID, rec rfq.Record) {
	f.scratch = appendEntry(f.scratch[:0], rec)
	f.keyScratch = historyKey(f.keyScratch[:0], id, f.seq, f.record)
	f.batch.Set(f.keyScratch, f.scratch)
}

// PaymentClaim returns the claim that a payment's signature was booked for, in
// whatever state the payment is now; false if it was never booked. The store keeps
// this as long as the claim's history. It may be called from any goroutine. Errors:
// ErrLayout, errors of the store.
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

// writePaymentClaim writes the claim of a payment. Every change of the payment writes
// it again under the Seq of its command, so that deleteHistoryAfter leaves the older
// one.
func (f *projector) writePaymentClaim(p *rfq.Payment) {
	f.keyScratch = paymentKey(f.keyScratch[:0], &p.Signature, f.seq)
	f.scratch = appendPaymentClaim(f.scratch[:0], p.Claim)
	f.batch.Set(f.keyScratch, f.scratch)
}
