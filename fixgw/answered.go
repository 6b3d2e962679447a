package fixgw

import (
	"context"
	"encoding/binary"
	"hash/maphash"
	"sync"
	"sync/atomic"
)

// answered tells which ClOrdIDs have surely not been answered in the last days,
// so that a new order need not ask the store, which takes longer than all else
// that is done with it. It is a Bloom filter a day: when it says perhaps, the
// store is asked.
//
// It knows what the follower has committed since the start, and what the store
// had before once Run has read it; until then it says perhaps. A filter has a
// fixed size: beyond some three million answers a day it says perhaps more and
// more often.
type answered struct {
	gateway *Gateway
	seed    maphash.Seed
	ready   atomic.Bool

	mu   sync.Mutex // one that begins a day
	days [answeredDays]answeredDay
}

const (
	// answeredDays are yesterday, today and tomorrow, and one being begun.
	answeredDays = 4
	// answeredWords is the size of a day's filter: 4 MB.
	answeredWords  = 1 << 19
	answeredProbes = 6
)

type answeredDay struct {
	day  atomic.Uint32 // 0 = none
	bits atomic.Pointer[[answeredWords]atomic.Uint64]
}

func newAnswered(g *Gateway) *answered { return &answered{gateway: g, seed: maphash.MakeSeed()} }

// hash does not allocate.
func (a *answered) hash(session uint16, clOrdID []byte) uint64 {
	return maphash.Bytes(a.seed, clOrdID) ^ uint64(session)*0x9e3779b97f4a7c15
}

// add notes an answer that is about to be committed. Any goroutine.
func (a *answered) add(day uint32, session uint16, clOrdID []byte) {
	d := &a.days[day%answeredDays]
	if d.day.Load() != day && !a.begin(d, day) {
		return
	}
	bits, h := d.bits.Load(), a.hash(session, clOrdID)
	for range answeredProbes {
		bits[h>>6%answeredWords].Or(1 << (h & 63))
		h = h*0x9e3779b97f4a7c15 + 1
		h ^= h >> 29
	}
}

// begin gives d to a day, and reports whether it has it: an older day than it
// has is looked for no more.
func (a *answered) begin(d *answeredDay, day uint32) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if d.day.Load() < day {
		d.bits.Store(new([answeredWords]atomic.Uint64))
		d.day.Store(day)
	}
	return d.day.Load() == day
}

// perhaps reports whether the store may have an answer of that day. Any
// goroutine.
func (a *answered) perhaps(day uint32, session uint16, clOrdID []byte) bool {
	if !a.ready.Load() {
		return true
	}
	d := &a.days[day%answeredDays]
	if d.day.Load() != day {
		return false
	}
	bits, h := d.bits.Load(), a.hash(session, clOrdID)
	for range answeredProbes {
		if bits[h>>6%answeredWords].Load()&(1<<(h&63)) == 0 {
			return false
		}
		h = h*0x9e3779b97f4a7c15 + 1
		h ^= h >> 29
	}
	return true
}

// Run reads what the store has of yesterday and later, and ends.
func (a *answered) Run(ctx context.Context) error {
	const head = 1 + 4 + 2 // kind, day, session: see answerKey
	from := dayOf(a.gateway.options.Now().UnixNano()) - 1
	err := a.gateway.store.Scan(binary.BigEndian.AppendUint32([]byte{keyAnswer}, from), []byte{keyAnswer + 1}, func(key, _ []byte) bool {
		if len(key) > head {
			a.add(binary.BigEndian.Uint32(key[1:]), binary.BigEndian.Uint16(key[5:]), key[head:])
		}
		return ctx.Err() == nil
	})
	a.ready.Store(err == nil && ctx.Err() == nil)
	return err
}
