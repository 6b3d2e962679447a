package rfq

import (
	"bytes"
	"cmp"
	"slices"
)

// A desk's snapshot: exactly what later requests depend on, in one canonical order,
// so that equal desks have equal bytes. Fields as in the walk methods; no checksum, because
// persist adds one around the engine's snapshot. It has version 1 unless something in it needs
// the fields of version 2; then all items have them.
//
//	 0        4         6        173     175       177     179     180
//	┌────────┬─────────┬────────┬───────┬─────────┬───────┬───────┬────────┬───────┬───────┐
//	│ "BDRQ" │ version │ policy │ pairs │ operat. │ locks │ rails │ last   │ shown │ shown │
//	│        │  1 or 2 │        │       │         │       │       │ ticket │ seq   │ at    │
//	└────────┴─────────┴────────┴───────┴─────────┴───────┴───────┴────────┴───────┴───────┘
//	then pairs, operators, locks and rail prices, each in order
//	┌─────────┬────────────────────────────────────────┐
//	│ tickets │ by id: ticket, count (1 byte), tranches │
//	├─────────┼────────────────────────────────────────┤
//	│ quotes  │ by id                                  │
//	├─────────┼────────────────────────────────────────┤
//	│ claims  │ by id: claim, count, its payments in   │
//	│         │ order of arrival                       │
//	└─────────┴────────────────────────────────────────┘
//	counts are 4 bytes unless noted, 2 or 1 in the header; the offsets are those of version 1
const (
	snapshotMagic    = "BDRQ"
	snapshotVersion1 = 1
	snapshotVersion2 = 2
)

// header is what precedes the lists.
type header struct {
	version                 uint16
	policy                  Policy
	pairs, operators, locks uint16
	rails                   uint8
	lastTicket              uint64
	shown                   Stamp
}

func (h *header) walk(w *codec) {
	u16(w, &h.version)
	w.v2 = h.version == snapshotVersion2
	h.policy.walk(w)
	u16(w, &h.pairs)
	u16(w, &h.operators)
	u16(w, &h.locks)
	u8(w, &h.rails)
	u64(w, &h.lastTicket)
	u64(w, &h.shown.Seq)
	w.i64(&h.shown.At)
}

// AppendSnapshot appends the encoding of m and returns the extended slice.
func (m *Machine) AppendSnapshot(dst []byte) []byte {
	w := &codec{buf: append(dst, snapshotMagic...)}
	h := header{
		version: m.snapshotVersion(), policy: m.policy,
		pairs: uint16(len(m.pairs)), operators: uint16(len(m.operators)),
		locks: uint16(len(m.locks)), rails: uint8(len(m.rails)),
		lastTicket: uint64(m.lastTicket), shown: m.lastShown,
	}
	h.walk(w)
	for i := range m.pairs {
		m.pairs[i].walk(w)
	}
	for i := range m.operators {
		m.operators[i].walk(w)
	}
	for i := range m.locks {
		m.locks[i].walk(w)
	}
	for i := range m.rails {
		m.rails[i].walk(w)
	}
	m.writeTickets(w)
	quotes := m.quotes.sorted(func(a, b *Quote) int { return cmp.Compare(a.ID, b.ID) })
	writeCount(w, len(quotes))
	for _, q := range quotes {
		q.walk(w)
	}
	m.writeClaims(w)
	return w.buf
}

// snapshotVersion returns the lowest version that has all values.
func (m *Machine) snapshotVersion() uint16 {
	v2 := m.policy.usesV2()
	for i := range m.pairs {
		v2 = v2 || m.pairs[i].usesV2()
	}
	for i := range m.rails {
		v2 = v2 || m.rails[i].usesV2()
	}
	if v2 || anyUsesV2(&m.quotes, (*Quote).usesV2) ||
		anyUsesV2(&m.claims, func(c *claimItem) bool { return c.Claim.usesV2() }) ||
		anyUsesV2(&m.payments, func(p *paymentItem) bool { return p.Payment.usesV2() }) {
		return snapshotVersion2
	}
	return snapshotVersion1
}

func anyUsesV2[K comparable, V any](t *table[K, V], uses func(*V) bool) bool {
	for _, slot := range t.slots {
		if uses(t.at(slot)) {
			return true
		}
	}
	return false
}

func writeCount(w *codec, n int) {
	count := uint32(n)
	u32(w, &count)
}

func (m *Machine) writeTickets(w *codec) {
	tickets := m.tickets.sorted(compareTickets)
	writeCount(w, len(tickets))
	for _, t := range tickets {
		t.walk(w)
		count := uint8(len(t.Tranches))
		u8(w, &count)
		for i := range t.Tranches {
			t.Tranches[i].walk(w)
		}
	}
}

func (m *Machine) writeClaims(w *codec) {
	claims := m.claims.sorted(compareClaims)
	writeCount(w, len(claims))
	for _, c := range claims {
		c.Claim.walk(w)
		payments := slices.Collect(m.paymentsOf(c))
		writeCount(w, len(payments))
		for _, p := range payments {
			p.walk(w)
		}
	}
}

// sameSnapshot reports whether data is the snapshot of m.
func (m *Machine) sameSnapshot(data []byte) bool {
	return bytes.Equal(m.AppendSnapshot(make([]byte, 0, len(data))), data)
}
