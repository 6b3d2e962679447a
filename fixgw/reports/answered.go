package reports

import (
	"context"
	"encoding/binary"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"blockdesk/persist/kv"
)

// answeredFilter recognizes ClOrdIDs that have certainly not been answered in the last
// days, so that a new order need not read the store, which would take longer than all its
// other steps. It has one Bloom filter per day: if a filter may contain a ClOrdID, the
// store is read.
//
// It has the answers that were committed since the start, and, once FillFilter has
// read them, those that the store had before; until then every ClOrdID may be in it. A
// filter has a fixed size: beyond some three million answers a day it becomes less and
// less selective.
type answeredFilter struct {
	seed  maphash.Seed
	ready atomic.Bool

	mu   sync.Mutex // one goroutine begins a day
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

// hash does not allocate.
func (a *answeredFilter) hash(session uint16, clOrdID []byte) uint64 {
	return maphash.Bytes(a.seed, clOrdID) ^ uint64(session)*0x9e3779b97f4a7c15
}

// add adds an answer that is about to be committed. Any goroutine.
func (a *answeredFilter) add(day uint32, session uint16, clOrdID []byte) {
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

// begin gives d to a day, and reports whether it has it; an older day than d's does not
// get it.
func (a *answeredFilter) begin(d *answeredDay, day uint32) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if d.day.Load() < day {
		d.bits.Store(new([answeredWords]atomic.Uint64))
		d.day.Store(day)
	}
	return d.day.Load() == day
}

// mayContain reports whether the store may have an answer of that day. Any goroutine.
func (a *answeredFilter) mayContain(day uint32, session uint16, clOrdID []byte) bool {
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

// answers are the first answers that the store has, and the filter of them.
type answers struct {
	store  kv.Store
	now    func() time.Time
	filter answeredFilter
}

func newAnswers(store kv.Store, now func() time.Time) *answers {
	return &answers{store: store, now: now, filter: answeredFilter{seed: maphash.MakeSeed()}}
}

// find returns the first answer to a request of today or yesterday.
func (a *answers) find(session uint16, clOrdID []byte) (answer, bool, error) {
	for _, day := range RecentDays(a.now().UnixNano()) {
		if !a.filter.mayContain(day, session, clOrdID) {
			continue
		}
		value, ok, err := a.store.Get(answerKey(nil, day, session, clOrdID))
		if err != nil {
			return answer{}, false, err
		}
		if ok {
			found, err := parseAnswer(value)
			return found, err == nil, err
		}
	}
	return answer{}, false, nil
}

// fillFilter adds the store's answers from yesterday on to the filter, and returns. Until
// then every request is looked up in the store.
func (a *answers) fillFilter(ctx context.Context) error {
	const head = 1 + 4 + 2 // kind, day, session: see answerKey
	from := DayOf(a.now().UnixNano()) - 1
	err := a.store.Scan(binary.BigEndian.AppendUint32([]byte{keyAnswer}, from), []byte{keyAnswer + 1}, func(key, _ []byte) bool {
		if len(key) > head {
			a.filter.add(binary.BigEndian.Uint32(key[1:]), binary.BigEndian.Uint16(key[5:]), key[head:])
		}
		return ctx.Err() == nil
	})
	a.filter.ready.Store(err == nil && ctx.Err() == nil)
	return err
}
