package feed

import (
	"sort"
	"sync"
)

// history keeps the last updates of one topic as frames, so that a client can resume: at
// most MaxResume updates and maxResumeBytes bytes, in a ring buffer. Run adds; shards
// read.
type history struct {
	mu    sync.Mutex
	epoch uint64
	last  uint64 // seq of the newest entry
	count int    // entries held: seqs last-count+1 to last
	// floor is an engine_seq at which the topic was at seq last-count.
	floor uint64
	at    [MaxResume]span // entry of seq s at s%MaxResume
	ring  []byte          // grows to maxResumeBytes, then wraps
	next  int             // offset of the next frame
	used  int             // bytes from the oldest entry to next, including those lost at a wrap
}

// span is the location of one entry in the ring. engineSeq is the engine_seq of the
// position after the entry.
type span struct {
	start, length, cost int
	engineSeq           uint64
}

// add stores a copy of the update from prev to now. If it does not follow the newest
// entry, or is of another epoch, add empties the history first.
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

// empty removes all entries; floor is the engine_seq at which the topic is at last.
func (h *history) empty(floor uint64) { h.count, h.used, h.next, h.floor = 0, 0, 0, floor }

// seqAt returns the topic's seq at an engine position; false if the history does not
// cover it.
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

// since appends the updates after seq from up to seq to; false if some are missing or
// they take more than limit bytes.
func (h *history) since(dst []byte, epoch, from, to uint64, limit int) ([]byte, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if epoch != h.epoch || from > to || to > h.last || h.last-from > uint64(h.count) {
		return dst, false
	}
	for seq := from + 1; seq <= to; seq++ {
		s := h.at[seq%MaxResume]
		if len(dst)+s.length > limit {
			return dst, false
		}
		dst = append(dst, h.ring[s.start:s.start+s.length]...)
	}
	return dst, true
}
