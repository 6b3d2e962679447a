package feed

import (
	"sort"
	"sync"
)

// history keeps the last updates of one topic as frames, so that a client which
// lost its connection can go on where it was: at most MaxResume of them and
// maxResumeBytes of bytes, in a ring of its own. Run's goroutine adds; shards
// read.
type history struct {
	mu    sync.Mutex
	epoch uint64
	last  uint64 // seq of the newest entry
	count int    // entries held: seqs last-count+1 … last
	// floor is an engine_seq at which the topic stood at seq last-count.
	floor uint64
	at    [MaxResume]span // entry of seq s at s%MaxResume
	ring  []byte          // grows to maxResumeBytes, then wraps
	next  int             // where the next frame is written
	used  int             // bytes from the oldest entry to next, with what a wrap wasted
}

// span is where one entry lies in the ring. engineSeq is that of the position to
// which the entry leads.
type span struct {
	start, length, cost int
	engineSeq           uint64
}

// add keeps a copy of the update that leads from prev to now. One that does not
// follow the newest, or is of another epoch, empties the history first.
func (h *history) add(prev, now position, frame []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now.epoch != h.epoch || now.seq != h.last+1 {
		h.empty(prev.engineSeq)
	}
	h.epoch, h.last = now.epoch, now.seq
	if len(frame) > maxResumeBytes {
		h.empty(now.engineSeq)
		return
	}
	cost := len(frame)
	if h.next+len(frame) > maxResumeBytes {
		cost += maxResumeBytes - h.next
		h.next = 0
	}
	for h.count > 0 && (h.count == MaxResume || h.used+cost > maxResumeBytes) {
		oldest := &h.at[(now.seq-uint64(h.count))%MaxResume]
		h.used -= oldest.cost
		h.floor = oldest.engineSeq
		h.count--
	}
	if end := h.next + len(frame); end > len(h.ring) {
		h.ring = append(h.ring[:h.next], frame...)
	} else {
		copy(h.ring[h.next:], frame)
	}
	h.at[now.seq%MaxResume] = span{start: h.next, length: len(frame), cost: cost, engineSeq: now.engineSeq}
	h.next += len(frame)
	h.used += cost
	h.count++
}

// empty forgets all entries; the topic stands at last since engine_seq floor.
func (h *history) empty(floor uint64) { h.count, h.used, h.next, h.floor = 0, 0, 0, floor }

// seqAt returns the seq at which the topic stood at a mark, and reports
// whether the history tells.
func (h *history) seqAt(m enginePos) (uint64, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if m.epoch != h.epoch || m.engineSeq < h.floor {
		return 0, false
	}
	before := h.last - uint64(h.count)
	n := sort.Search(h.count, func(i int) bool {
		return h.at[(before+1+uint64(i))%MaxResume].engineSeq > m.engineSeq
	})
	return before + uint64(n), true
}

// since appends the updates that lead from seq from to seq to, and reports
// whether all of them are still held and take at most most bytes.
func (h *history) since(dst []byte, epoch, from, to uint64, most int) ([]byte, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if epoch != h.epoch || from > to || to > h.last || h.last-from > uint64(h.count) {
		return dst, false
	}
	for seq := from + 1; seq <= to; seq++ {
		s := h.at[seq%MaxResume]
		if len(dst)+s.length > most {
			return dst, false
		}
		dst = append(dst, h.ring[s.start:s.start+s.length]...)
	}
	return dst, true
}
