package quotes

import (
	"cmp"
	"encoding/binary"
	"slices"

	"blockdesk/engine/book"
	"blockdesk/market"
)

// maxAllSets bounds the quote sets of all sessions.
const maxAllSets = 1 << 13

// Key names a quote set.
type Key struct {
	Participant market.ParticipantID
	Session     uint16
	Number      uint16
}

func (k Key) compare(other Key) int {
	return cmp.Or(cmp.Compare(k.Participant, other.Participant), cmp.Compare(k.Session, other.Session), cmp.Compare(k.Number, other.Number))
}

// Set is the quotes of a session under one number, with their protection.
type Set struct {
	Key    Key
	Pulled bool // by its protection: it takes no quotes until a reset
	Quotes []Quote

	max    uint32
	fills  uint32 // in the window
	window int64  // nanoseconds; 0 = no protection
	since  int64  // begin of the window: the time of its first trade
}

// Quote is the quote of one instrument; those of a set are in the order of instruments. An id
// may be that of an order which has ended.
type Quote struct {
	Instrument market.InstrumentID
	IDs        [2]market.OrderID // bid and ask; 0 = none

	max    market.Qty // protection; 0 = none
	traded market.Qty // in the window
}

// Sets are the quote sets of all sessions. The zero value is empty.
type Sets struct{ list []Set } // by Key

func compareSet(set Set, key Key) int { return set.Key.compare(key) }

// Len returns the number of sets.
func (s *Sets) Len() int { return len(s.list) }

// Of returns the sets of a session. They alias s.
func (s *Sets) Of(participant market.ParticipantID, session uint16) []Set {
	first, _ := slices.BinarySearchFunc(s.list, Key{Participant: participant, Session: session}, compareSet)
	last := first
	for last < len(s.list) && s.list[last].Key.Participant == participant && s.list[last].Key.Session == session {
		last++
	}
	return s.list[first:last]
}

// Quote returns the set of key and its quote of an instrument, which it makes if need be,
// with the protection and the reset of q; limit is not 0 if there are too many.
func (s *Sets) Quote(key Key, q *Mass, e *Entry) (set *Set, quote *Quote, limit int64) {
	at, ok := slices.BinarySearchFunc(s.list, key, compareSet)
	if !ok {
		if len(s.Of(key.Participant, key.Session)) >= MaxSets || len(s.list) >= maxAllSets {
			return nil, nil, MaxSets
		}
		s.list = slices.Insert(s.list, at, Set{Key: key})
	}
	set = &s.list[at]
	if q.Protect {
		set.max, set.window = q.MaxFills, q.Window
	}
	if q.Reset {
		set.Pulled = false
		set.begin(0)
	}
	if at, ok = set.find(e.Instrument); !ok {
		if len(set.Quotes) >= MaxEntries {
			return nil, nil, MaxEntries
		}
		set.Quotes = slices.Insert(set.Quotes, at, Quote{Instrument: e.Instrument})
	}
	quote = &set.Quotes[at]
	if q.Protect {
		quote.max = e.MaxQty
	}
	return set, quote, 0
}

func (q *Set) find(in market.InstrumentID) (int, bool) {
	return slices.BinarySearchFunc(q.Quotes, in, func(e Quote, in market.InstrumentID) int { return cmp.Compare(e.Instrument, in) })
}

// On returns the set's quote of an instrument, or nil.
func (q *Set) On(in market.InstrumentID) *Quote {
	if at, ok := q.find(in); ok {
		return &q.Quotes[at]
	}
	return nil
}

// begin begins a window.
func (q *Set) begin(at int64) {
	q.fills, q.since = 0, at
	for i := range q.Quotes {
		q.Quotes[i].traded = 0
	}
}

// Count counts a trade at time at, in Unix nanoseconds. It returns the set if the trade
// reaches its protection, which is then Pulled, and nil otherwise.
func (s *Sets) Count(f *book.QuoteFill, at int64) *Set {
	set, quote := s.ofOrder(f)
	if set == nil || set.window == 0 || set.Pulled {
		return nil
	}
	if set.fills == 0 || at-set.since >= set.window {
		set.begin(at)
	}
	set.fills++
	quote.traded += f.Qty
	if (set.max == 0 || set.fills < set.max) && (quote.max == 0 || quote.traded < quote.max) {
		return nil
	}
	set.Pulled = true
	return set
}

// ofOrder returns the quote that an order belongs to.
func (s *Sets) ofOrder(f *book.QuoteFill) (*Set, *Quote) {
	first, _ := slices.BinarySearchFunc(s.list, Key{Participant: f.Participant}, compareSet)
	for i := first; i < len(s.list) && s.list[i].Key.Participant == f.Participant; i++ {
		if quote := s.list[i].On(f.Instrument); quote != nil && slices.Contains(quote.IDs[:], f.ID) {
			return &s.list[i], quote
		}
	}
	return nil, nil
}

const (
	setSize   = 32
	quoteSize = 40
)

// AppendSnapshot appends the sets: their number u16, then each as the engine's snapshot has it.
func (s *Sets) AppendSnapshot(dst []byte) []byte {
	le := binary.LittleEndian
	dst = le.AppendUint16(dst, uint16(len(s.list)))
	for i := range s.list {
		q := &s.list[i]
		dst = le.AppendUint16(dst, uint16(q.Key.Participant))
		dst = le.AppendUint16(dst, q.Key.Session)
		dst = le.AppendUint16(dst, q.Key.Number)
		pulled := uint8(0)
		if q.Pulled {
			pulled = 1
		}
		dst = append(dst, uint8(len(q.Quotes)), pulled)
		dst = le.AppendUint32(dst, q.max)
		dst = le.AppendUint32(dst, q.fills)
		dst = le.AppendUint64(dst, uint64(q.window))
		dst = le.AppendUint64(dst, uint64(q.since))
		for k := range q.Quotes {
			e := &q.Quotes[k]
			dst = le.AppendUint16(dst, uint16(e.Instrument))
			dst = append(dst, 0, 0, 0, 0, 0, 0)
			for _, n := range [...]uint64{uint64(e.IDs[0]), uint64(e.IDs[1]), uint64(e.max), uint64(e.traded)} {
				dst = le.AppendUint64(dst, n)
			}
		}
	}
	return dst
}

// Restore decodes what AppendSnapshot wrote at the begin of data and returns the rest. ok is
// false if it is damaged: known reports whether there is a participant, instruments is their
// number, latest the time of the snapshot.
func Restore(data []byte, known func(market.ParticipantID) bool, instruments int, latest int64) (s Sets, rest []byte, ok bool) {
	le := binary.LittleEndian
	if len(data) < 2 {
		return s, nil, false
	}
	count := int(le.Uint16(data))
	data = data[2:]
	for i := range count {
		if len(data) < setSize {
			return s, nil, false
		}
		q := Set{
			Key:    Key{market.ParticipantID(le.Uint16(data)), le.Uint16(data[2:]), le.Uint16(data[4:])},
			Pulled: data[7] == 1, max: le.Uint32(data[8:]), fills: le.Uint32(data[12:]),
			window: int64(le.Uint64(data[16:])), since: int64(le.Uint64(data[24:])),
		}
		n := int(data[6])
		data = data[setSize:]
		if q.Key.Number == 0 || n > MaxEntries || len(data) < n*quoteSize || !known(q.Key.Participant) ||
			q.window < 0 || q.window > MaxWindow || q.since < 0 || q.since > latest ||
			i > 0 && s.list[i-1].Key.compare(q.Key) >= 0 {
			return s, nil, false
		}
		for range n {
			e := Quote{
				Instrument: market.InstrumentID(le.Uint16(data)),
				IDs:        [2]market.OrderID{market.OrderID(le.Uint64(data[8:])), market.OrderID(le.Uint64(data[16:]))},
				max:        market.Qty(le.Uint64(data[24:])), traded: market.Qty(le.Uint64(data[32:])),
			}
			data = data[quoteSize:]
			if last := len(q.Quotes); int(e.Instrument) >= instruments || e.max < 0 || e.traded < 0 ||
				last > 0 && q.Quotes[last-1].Instrument >= e.Instrument {
				return s, nil, false
			}
			q.Quotes = append(q.Quotes, e)
		}
		s.list = append(s.list, q)
	}
	return s, data, true
}
