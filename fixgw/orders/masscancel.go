package orders

import (
	"encoding/binary"
	"fmt"

	"blockdesk/engine/event"
	"blockdesk/fixgw/session"
	"blockdesk/persist/kv"
)

// A mass cancel of one session may take several lists (Session.cancelOwn); its answer counts
// the orders of all.

// partialCancel is the number of orders that the lists so far of a mass cancel have cancelled.
type partialCancel struct {
	clOrdID string
	orders  int64
	changed bool
}

// partialKey is the key of the partial cancel of a session: its record is the number, then the
// ClOrdID.
func partialKey(dst []byte, session uint16) []byte {
	return binary.BigEndian.AppendUint16(append(dst, keyPartial), session)
}

// loadPartials reads the partial cancels, before the first event.
func (f *Reporter) loadPartials() error {
	return kv.Each(f.out.Store(), []byte{keyPartial}, []byte{keyPartial + 1}, func(key, value []byte) error {
		if len(key) != 3 || len(value) < 8 {
			return fmt.Errorf("%w: partial mass cancel of %d bytes", session.ErrLayout, len(value))
		}
		f.partials[binary.BigEndian.Uint16(key[1:])] = &partialCancel{clOrdID: string(value[8:]), orders: int64(binary.BigEndian.Uint64(value))}
		return nil
	})
}

// countCancelled returns the number of orders that a mass cancel has cancelled, with those of its
// lists before e.
func (f *Reporter) countCancelled(e *event.Event) int64 {
	p, number := f.partials[f.out.Command.Session.Number], f.out.Command.Session.Number
	n := int64(e.Qty)
	if p != nil && p.clOrdID == string(f.out.Command.ClOrdID()) {
		n += p.orders
	}
	switch {
	case e.Code == event.MoreCancels:
		f.partials[number], f.partialsChanged = &partialCancel{string(f.out.Command.ClOrdID()), n, true}, true
	case p != nil:
		*p, f.partialsChanged = partialCancel{changed: true}, true
	}
	return n
}

// fillPartials adds the changed partial cancels to a commit.
func (f *Reporter) fillPartials(set func(key, value []byte), deleteRange func(lo, hi []byte)) {
	for number, p := range f.partials {
		if !p.changed {
			continue
		}
		f.key = partialKey(f.key[:0], number)
		if p.clOrdID == "" {
			deleteRange(f.key, kv.After(f.key))
			continue
		}
		f.record = append(binary.BigEndian.AppendUint64(f.record[:0], uint64(p.orders)), p.clOrdID...)
		set(f.key, f.record)
	}
}

// forgetPartials forgets what fillPartials has stored.
func (f *Reporter) forgetPartials() {
	f.partialsChanged = false
	for number, p := range f.partials {
		if p.changed = false; p.clOrdID == "" {
			delete(f.partials, number)
		}
	}
}
