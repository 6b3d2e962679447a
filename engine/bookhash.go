package engine

import (
	"crypto/sha256"
	"encoding/binary"

	"blockdesk/engine/book"
	"blockdesk/market"
)

// BookHash returns the SHA-256 of what the market sees: owner, side, prices, quantities,
// type and priority of every live order, every mirrored level and every last trade, by
// instrument. Unlike Hash it leaves out ids, times and sequence numbers, so two runs of the
// same orders have the same BookHash despite different clocks, epochs and restarts. It
// allocates, and is not for the order path.
func (s *State) BookHash() [sha256.Size]byte {
	h := sha256.New()
	var b []byte
	for _, in := range s.Instruments() {
		b = binary.LittleEndian.AppendUint16(b[:0], uint16(in.ID))
		b = binary.LittleEndian.AppendUint64(b, uint64(s.instruments[in.ID].book.lastTrade()))
		h.Write(b)
		s.Orders(in.ID, func(r book.LiveOrder) {
			b = binary.LittleEndian.AppendUint16(b[:0], uint16(r.Participant))
			waiting := byte(0)
			if r.Waiting {
				waiting = 1
			}
			b = append(b, byte(r.Side), byte(r.Type), byte(r.TIF), byte(r.Flags), byte(r.STP), waiting)
			for _, p := range []market.Price{r.Price, r.Stop} {
				b = binary.LittleEndian.AppendUint64(b, uint64(p))
			}
			for _, q := range []market.Qty{r.Open, r.Shown, r.Display} {
				b = binary.LittleEndian.AppendUint64(b, uint64(q))
			}
			h.Write(b)
		})
		if m := s.instruments[in.ID].mirror; m != nil {
			b = binary.LittleEndian.AppendUint16(b[:0], uint16(len(m.bids)))
			h.Write(appendLevels(appendLevels(b, m.bids), m.asks))
		}
	}
	return [sha256.Size]byte(h.Sum(nil))
}
