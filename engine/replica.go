package engine

import (
	"encoding/binary"
	"fmt"
	"slices"

	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/engine/marketdata"
	"blockdesk/market"
)

// maxRetainedEvents bounds the event buffer that a Replica keeps between commands. A mass
// cancel may need more for a moment.
const maxRetainedEvents = 1 << 16

// Replica is the result of replaying a journal: the state, the market data of its events, and
// the digest of all events so far. One goroutine at a time.
type Replica struct {
	State  *State
	Market *marketdata.Data
	Digest uint64

	sink *event.Sink
}

// NewReplica returns an empty Replica. It panics on invalid options.
func NewReplica(o StateOptions) *Replica {
	return &Replica{State: NewState(o), Market: marketdata.New(), sink: event.NewGrowingSink(64)}
}

// Apply applies one stamped command and calls visit (which may be nil) with its events, if it
// has any. The slice is valid until the next Apply.
func (r *Replica) Apply(c *Command, visit func([]event.Event)) {
	r.sink.Reset()
	r.State.Apply(c, r.sink)
	events := r.sink.Events()
	for i := range events {
		r.Digest = event.Digest(r.Digest, &events[i])
		r.Market.Apply(&events[i])
	}
	if visit != nil && len(events) > 0 {
		visit(events)
	}
	if len(r.sink.Buf) > maxRetainedEvents {
		r.sink = event.NewGrowingSink(64)
	}
}

// A Replica's snapshot, version 1. Little-endian.
//
//	 0        4         6   8        16          24
//	┌────────┬─────────┬───┬────────┬───────────┬─────────┬─────────────────────┐
//	│ "BDRP" │ version │ 0 │ digest │ state len │ state … │ market data to end  │
//	└────────┴─────────┴───┴────────┴───────────┴─────────┴─────────────────────┘
const (
	replicaMagic      = "BDRP"
	replicaVersion    = 1
	replicaHeaderSize = 24
)

// AppendSnapshot appends the encoding of r and returns the extended slice.
func (r *Replica) AppendSnapshot(dst []byte) []byte {
	le := binary.LittleEndian
	dst = append(dst, replicaMagic...)
	dst = le.AppendUint16(dst, replicaVersion)
	dst = le.AppendUint16(dst, 0)
	dst = le.AppendUint64(dst, r.Digest)
	length := len(dst)
	dst = le.AppendUint64(dst, 0)
	dst = r.State.AppendSnapshot(dst)
	le.PutUint64(dst[length:], uint64(len(dst)-length-8))
	return r.Market.AppendSnapshot(dst)
}

// RestoreReplica decodes a snapshot. It refuses one whose market data do not match its state.
// Errors: those of RestoreState and RestoreMarketData.
func RestoreReplica(data []byte, o StateOptions) (*Replica, error) {
	le := binary.LittleEndian
	if len(data) < replicaHeaderSize || string(data[:4]) != replicaMagic {
		return nil, fmt.Errorf("not a replica snapshot: %w", ErrSnapshot)
	}
	if v := le.Uint16(data[4:]); v != replicaVersion {
		return nil, fmt.Errorf("replica snapshot version %d, this program reads %d: %w", v, replicaVersion, ErrVersion)
	}
	body := data[replicaHeaderSize:]
	length := le.Uint64(data[16:])
	if length > uint64(len(body)) || le.Uint16(data[6:]) != 0 {
		return nil, fmt.Errorf("replica header: %w", ErrSnapshot)
	}
	state, err := RestoreState(body[:length], o)
	if err != nil {
		return nil, err
	}
	md, rest, err := marketdata.Restore(body[length:])
	if err != nil {
		return nil, err
	}
	if len(rest) != 0 {
		return nil, fmt.Errorf("%d bytes after the market data: %w", len(rest), ErrSnapshot)
	}
	if err := checkMarketData(state, md); err != nil {
		return nil, err
	}
	return &Replica{State: state, Market: md, Digest: le.Uint64(data[8:]), sink: event.NewGrowingSink(64)}, nil
}

// checkMarketData compares what two independent encodings contain of the same books, because a
// mismatch would fail at some later event.
func checkMarketData(s *State, m *marketdata.Data) error {
	seq, at, epoch := m.Position()
	if seq > s.seq || at > s.at || epoch != s.epoch || m.Len() != len(s.instruments) {
		return fmt.Errorf("market data and state differ in time, epoch or instruments: %w", ErrSnapshot)
	}
	for i := range s.instruments {
		in := &s.instruments[i]
		whole, ok := m.Whole(market.InstrumentID(i))
		if !ok || whole.Status != in.status || whole.Last != in.book.lastTrade() {
			return fmt.Errorf("instrument %d: market data and state differ: %w", i, ErrSnapshot)
		}
		bids, asks := displayedLevels(in.book)
		slot := uint64(0)
		if in.mirror != nil {
			slot, bids, asks = in.mirror.slot, in.mirror.bids, in.mirror.asks
		}
		if whole.Slot != slot {
			return fmt.Errorf("instrument %d: slots of market data and state differ: %w", i, ErrSnapshot)
		}
		if !slices.Equal(whole.Bids, bids) || !slices.Equal(whole.Asks, asks) {
			return fmt.Errorf("instrument %d: market data levels differ from the orders: %w", i, ErrSnapshot)
		}
	}
	return nil
}

// displayedLevels returns the displayed quantities of a book by price, best first.
func displayedLevels(b instrumentBook) (bids, asks []market.Level) {
	b.stored().Export(func(r book.LiveOrder) {
		if r.Waiting {
			return
		}
		side := &bids
		if r.Side == market.Sell {
			side = &asks
		}
		if n := len(*side); n > 0 && (*side)[n-1].Price == r.Price {
			(*side)[n-1].Qty += r.Shown
			return
		}
		*side = append(*side, market.Level{Price: r.Price, Qty: r.Shown})
	})
	return bids, asks
}
