package engine

import (
	"slices"

	"blockdesk/engine/event"
	"blockdesk/market"
)

// Orders that end in slices: rule 8. Both slices together are more than one command can add
// without making ending orders of its own, and a slice takes at most about 50 µs.
const (
	// tickSlice and commandSlice are how many ending orders a Tick and every other command
	// take out. A mass cancel of no more than tickSlice orders takes all of them out itself.
	tickSlice    = 256
	commandSlice = 16
)

// overdue is State.nextExpiry while orders are ending: a time that has passed.
const overdue = 1

// expireBooks ends what is due in the books, by instrument.
func (s *State) expireBooks(out *event.Sink) {
	s.bookExpiry = noExpiry
	for i := range s.instruments {
		b := s.instruments[i].book.stored()
		next := b.NextExpiry()
		if next != 0 && next <= s.at {
			if s.inSlices {
				b.Sweep(s.at, 0, s.seq, out)
				s.addSweep(market.InstrumentID(i))
				continue
			}
			b.Expire(s.at, s.seq, out)
			next = b.NextExpiry()
		}
		s.orderExpiresAt(next)
	}
}

// addSweep makes the following commands sweep a book.
func (s *State) addSweep(id market.InstrumentID) {
	if at, ok := slices.BinarySearch(s.sweeps, id); !ok {
		s.sweeps = slices.Insert(s.sweeps, at, id)
	}
	s.nextExpiry = overdue
}

// sweep takes a slice of the ending orders out, by instrument.
func (s *State) sweep(k Kind, out *event.Sink) {
	left := commandSlice
	if k == Tick {
		left = tickSlice
	}
	for left > 0 && len(s.sweeps) > 0 {
		b := s.instruments[s.sweeps[0]].book.stored()
		left -= b.Sweep(s.at, left, s.seq, out)
		if !b.Sweeping() {
			s.orderExpiresAt(b.NextExpiry())
			s.sweeps = slices.Delete(s.sweeps, 0, 1)
		}
	}
}

// endLater makes what cancelAll would cancel, on the instruments from first to end-1, ending,
// if it is more than a slice, and returns its number, or 0.
func (s *State) endLater(participant market.ParticipantID, first, end int, side market.Side, reason event.Reason, out *event.Sink) int {
	n := 0
	for i := first; i < end && n <= tickSlice && s.inSlices; i++ {
		n += s.instruments[i].book.stored().Open(participant, side)
	}
	if n <= tickSlice {
		return 0
	}
	n = 0
	for i := first; i < end; i++ {
		if m := s.instruments[i].book.stored().EndLater(participant, side, reason, s.at, s.seq, out); m > 0 {
			n += m
			s.addSweep(market.InstrumentID(i))
		}
	}
	return n
}
