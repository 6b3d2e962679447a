package archive

import (
	"encoding/binary"
	"fmt"
	"sync"

	"blockdesk/engine/event"
	"blockdesk/market"
	"blockdesk/persist/kv"
)

// traders are the participants that have traded on each matched book, with the first trade
// of each. The follower adds to it, and any goroutine may count.
type traders struct {
	mu    sync.Mutex
	first map[market.InstrumentID]map[market.ParticipantID]market.TradeID
}

// count returns the number of an instrument's traders.
func (t *traders) count(in market.InstrumentID) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return uint64(len(t.first[in]))
}

// add records a trade of a participant. It reports whether it was the first.
func (t *traders) add(in market.InstrumentID, p market.ParticipantID, id market.TradeID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.first[in]
	if of == nil {
		if t.first == nil {
			t.first = make(map[market.InstrumentID]map[market.ParticipantID]market.TradeID)
		}
		of = make(map[market.ParticipantID]market.TradeID)
		t.first[in] = of
	}
	if _, known := of[p]; known {
		return false
	}
	of[p] = id
	return true
}

// removeAfter removes the traders of an instrument whose first trade came after id, and
// returns them.
func (t *traders) removeAfter(in market.InstrumentID, id market.TradeID) (removed []market.ParticipantID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for p, first := range t.first[in] {
		if first > id {
			delete(t.first[in], p)
			removed = append(removed, p)
		}
	}
	return removed
}

// Traders returns how many participants have traded on an instrument's own book. Those
// that have not traded since a version that counts them are missing; 0 for a mirrored
// instrument.
func (a *Archive) Traders(in market.InstrumentID) uint64 { return a.follower.traders.count(in) }

// addTraders adds both sides of a trade to the batch, unless they have traded before. A
// mirrored trade has no participants.
func (f *follower) addTraders(e *event.Event, id market.TradeID) {
	if e.Kind != event.Traded && e.Kind != event.AuctionTraded {
		return
	}
	for _, p := range [...]market.ParticipantID{e.Participant, market.ParticipantID(e.Code)} {
		if f.traders.add(e.Instrument, p, id) {
			f.key = traderKey(f.key[:0], e.Instrument, p)
			f.value = binary.BigEndian.AppendUint64(f.value[:0], uint64(id))
			f.batch.Set(f.key, f.value)
		}
	}
}

// loadTraders reads the stored traders.
func (a *Archive) loadTraders() error {
	return kv.Each(a.store, []byte{keyTrader}, []byte{keyTrader + 1}, func(key, value []byte) error {
		if len(key) != traderKeySize || len(value) != traderSize || binary.BigEndian.Uint64(value) == 0 {
			return fmt.Errorf("%w: trader: key of %d bytes, value %x", ErrLayout, len(key), value)
		}
		in, p := market.InstrumentID(binary.BigEndian.Uint16(key[1:])), market.ParticipantID(binary.BigEndian.Uint16(key[3:]))
		a.follower.traders.add(in, p, market.TradeID(binary.BigEndian.Uint64(value)))
		return nil
	})
}

// forgetTraders removes the traders of an instrument that had no trade up to id.
func (f *follower) forgetTraders(in market.InstrumentID, id market.TradeID) {
	for _, p := range f.traders.removeAfter(in, id) {
		f.key = traderKey(f.key[:0], in, p)
		f.batch.Delete(f.key)
	}
}
