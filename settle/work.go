package settle

import (
	"cmp"
	"container/heap"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/market"
)

// parked is the time of a job that waits for news, not for a time.
const parked = math.MaxInt64

// laterIn is when a job that could not be begun is tried again.
const laterIn = 25 * time.Millisecond

// errLater ends a step that has to wait for somebody else. It is no failure.
var errLater = errors.New("settle: later")

// job is a claim that needs work: it is paid for, or its transaction is out.
type job struct {
	claim rfq.Claim // as the engine told it last
	since int64     // Unix ns: when the work began, as far as it is known
	at    int64     // Unix ns: when to look at it; parked = not before it is told again
	place int       // in the heap; -1 = not there, since somebody works on it
	told  bool      // again while somebody worked on it
	once  bool      // an audit: it is not told again, done is done

	failures int    // in a row, of whatever kind
	problem  string // the last one's word
	signed   int    // deliveries that were ever signed, as far as it is known
	newest   solana.Signature
	// ended are those of them that were seen to end without delivering since the
	// start.
	ended map[solana.Hash]bool
}

// work is the table of claims that need work, the next ones first. The follower
// fills it and never waits: it holds the claims that the engine holds, and the
// engine bounds those (rfq.MaxClaims). Safe for concurrent use.
type work struct {
	first, most time.Duration // the pauses after failures
	wake        chan struct{} // there may be something to take

	mu   sync.Mutex
	jobs map[market.ClaimID]*job
	// due has what is to be done, audits what comes after all that: there may be as
	// many as refunds are due.
	due, audits dueHeap
}

func newWork(first, most time.Duration) *work {
	return &work{first: first, most: most, wake: make(chan struct{}, 1), jobs: map[market.ClaimID]*job{}}
}

// needsWork reports whether somebody has to act on a claim in this state.
func needsWork(s rfq.ClaimState) bool {
	return s == rfq.ClaimPaid || s == rfq.ClaimDelivering || s == rfq.ClaimCosigned
}

// tell enters what the engine told of a claim.
func (w *work) tell(c *rfq.Claim, now int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	j := w.jobs[c.ID]
	if !needsWork(c.State) {
		w.drop(j)
		return
	}
	if j == nil {
		j = w.add(c, false)
	}
	j.claim = *c
	if j.place < 0 {
		j.told = true
		return
	}
	w.arm(j, now+int64(w.pause(j)))
}

// audit enters a claim that is to be looked at once.
func (w *work) audit(c *rfq.Claim, now int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.jobs[c.ID] != nil {
		return
	}
	w.arm(w.add(c, true), now)
}

func (w *work) add(c *rfq.Claim, once bool) *job {
	j := &job{claim: *c, since: c.ChangedAt, at: parked, once: once}
	w.jobs[c.ID] = j
	heap.Push(w.heapOf(j), j)
	return j
}

// forget drops a claim that the engine has forgotten.
func (w *work) forget(id market.ClaimID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop(w.jobs[id])
}

func (w *work) drop(j *job) {
	if j == nil {
		return
	}
	delete(w.jobs, j.claim.ID)
	if j.place >= 0 {
		heap.Remove(w.heapOf(j), j.place)
	}
}

func (w *work) heapOf(j *job) *dueHeap {
	if j.once {
		return &w.audits
	}
	return &w.due
}

// arm says when a job that nobody works on is due.
func (w *work) arm(j *job, at int64) {
	j.at = at
	heap.Fix(w.heapOf(j), j.place)
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// pause is how long a paid claim that has failed is left alone. One whose
// transaction is out is looked at at once.
func (w *work) pause(j *job) time.Duration {
	if j.failures == 0 || j.claim.State != rfq.ClaimPaid {
		return 0
	}
	return w.backoff(j.failures)
}

func (w *work) backoff(failures int) time.Duration {
	pause := w.first
	for range failures - 1 {
		if pause *= 2; pause >= w.most {
			return w.most
		}
	}
	return pause
}

// take gives the next claim that is due to one worker, who must give it back
// with done. Where none is, wait is how long nothing will be unless something is
// told.
func (w *work) take(now int64) (c rfq.Claim, wait time.Duration, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	wait = time.Hour
	for _, h := range []*dueHeap{&w.due, &w.audits} {
		if len(*h) == 0 || (*h)[0].at == parked {
			continue
		}
		if j := (*h)[0]; j.at > now {
			wait = min(wait, time.Duration(j.at-now))
		} else {
			heap.Pop(h)
			j.told = false
			return j.claim, 0, true
		}
	}
	return c, wait, false
}

// done gives a claim back: err is nil where there is nothing more to do before
// it is told again, errLater where it is to be looked at soon.
func (w *work) done(id market.ClaimID, now int64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	j := w.jobs[id]
	if j == nil || j.place >= 0 { // it needs no work any more, or is another one of the name
		return
	}
	if err == nil && j.once {
		delete(w.jobs, id)
		return
	}
	j.at = parked
	heap.Push(w.heapOf(j), j)
	switch {
	case errors.Is(err, errLater):
		w.arm(j, now+int64(laterIn))
	case err != nil:
		j.failures++
		j.problem = wordOf(err)
		w.arm(j, now+int64(w.backoff(j.failures)))
	case j.told:
		w.arm(j, now)
	}
}

// signed notes how many deliveries of a claim were ever signed, when the first
// one was, and what names the newest.
func (w *work) signed(id market.ClaimID, count int, first int64, newest solana.Signature) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if j := w.jobs[id]; j != nil {
		j.signed, j.newest = count, newest
		j.since = min(j.since, first)
	}
}

// lapsed notes that a delivery has ended without delivering; kept says whether
// it was ever signed, as far as is known. Once for one that was.
func (w *work) lapsed(id market.ClaimID, hash solana.Hash, kept bool, problem string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	j := w.jobs[id]
	if j == nil || j.ended[hash] {
		return
	}
	if kept {
		if j.ended == nil {
			j.ended = map[solana.Hash]bool{}
		}
		j.ended[hash] = true
	}
	j.failures++
	j.problem = problem
}

// hasEnded reports whether a delivery was seen to end.
func (w *work) hasEnded(id market.ClaimID, hash solana.Hash) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	j := w.jobs[id]
	return j != nil && j.ended[hash]
}

// stuck lists the claims whose work does not get through, by their number, from
// the first one after that one; at most limit, where that is not negative.
func (w *work) stuck(now int64, after time.Duration, from market.ClaimID, limit int) []Stuck {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []Stuck
	for id, j := range w.jobs {
		if id > from && j.isStuck(now, after) {
			list = append(list, Stuck{
				Claim: j.claim, Since: j.since, Problem: j.problem, Tries: j.signed, Signature: j.newest,
			})
		}
	}
	slices.SortFunc(list, func(a, b Stuck) int { return cmp.Compare(a.Claim.ID, b.Claim.ID) })
	if limit >= 0 && len(list) > limit {
		list = list[:limit]
	}
	return list
}

// count is how many claims need work.
func (w *work) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.jobs)
}

// countStuck is how many stuck lists in all.
func (w *work) countStuck(now int64, after time.Duration) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, j := range w.jobs {
		if j.isStuck(now, after) {
			n++
		}
	}
	return n
}

func (j *job) isStuck(now int64, after time.Duration) bool {
	return j.problem == wordTries || now-j.since >= int64(after)
}

// dueHeap orders jobs by their time, then by their claim.
type dueHeap []*job

func (h dueHeap) Len() int { return len(h) }

func (h dueHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].claim.ID < h[j].claim.ID
}

func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push is heap.Interface's.
func (h *dueHeap) Push(x any) {
	j := x.(*job)
	j.place = len(*h)
	*h = append(*h, j)
}

// Pop is heap.Interface's.
func (h *dueHeap) Pop() any {
	old := *h
	j := old[len(old)-1]
	old[len(old)-1] = nil
	*h, j.place = old[:len(old)-1], -1
	return j
}
