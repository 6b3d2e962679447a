package feed

import "sync"

// history keeps the last updates of one topic as frames, so that a client which
// lost its connection can go on where it was: at most MaxResume of them and
// maxResumeBytes of bytes, in a ring of its own. Run's goroutine adds; shards
// read.
type history struct {
	mu    sync.Mutex
	epoch uint64
	last  uint64          // seq of the newest entry
	count int             // entries held: seqs last-count+1 … last
	at    [MaxResume]span // entry of seq s at s%MaxResume
	ring  []byte          // grows to maxResumeBytes, then wraps
	next  int             // where the next frame is written
	used  int             // bytes from the oldest entry to next, with what a wrap wasted
}

type span struct{ start, length, cost int }

// add keeps a copy of the update that leads to seq. One that does not follow
// the newest, or is of another epoch, empties the history first.
func (h *history) add(epoch, seq uint64, frame []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if epoch != h.epoch || seq != h.last+1 {
		h.count, h.used, h.next = 0, 0, 0
	}
	h.epoch, h.last = epoch, seq
	if len(frame) > maxResumeBytes {
		h.count, h.used, h.next = 0, 0, 0
		return
	}
	cost := len(frame)
	if h.next+len(frame) > maxResumeBytes {
		cost += maxResumeBytes - h.next
		h.next = 0
	}
	for h.count > 0 && (h.count == MaxResume || h.used+cost > maxResumeBytes) {
		h.used -= h.at[(seq-uint64(h.count))%MaxResume].cost
		h.count--
	}
	if end := h.next + len(frame); end > len(h.ring) {
		h.ring = append(h.ring[:h.next], frame...)
	} else {
		copy(h.ring[h.next:], frame)
	}
	h.at[seq%MaxResume] = span{start: h.next, length: len(frame), cost: cost}
	h.next += len(frame)
	h.used += cost
	h.count++
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
