package settle

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"blockdesk/engine/rfq"
	"blockdesk/internal/schedule"
	"blockdesk/internal/solana"
	"blockdesk/market"
)

// parked is the due time of a job that waits for the engine's next record of it.
const parked = math.MaxInt64

// laterIn is when a job that could not be begun is tried again.
const laterIn = 25 * time.Millisecond

// errLater ends a step that has to wait for somebody else. It is no failure.
var errLater = errors.New("settle: later")

// job is a claim that needs work: it is paid for, or its transaction is out.
type job struct {
	claim rfq.Claim // as the engine told it last
	since int64     // Unix ns: when the work began, as far as it is known
	index int       // in its queue; 0 = not there, since somebody works on it
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
	// many as refunds are due. Ordered by Unix ns or parked, then by claim.
	due, audits schedule.Queue[*job]
}

func newWork(first, most time.Duration) *work {
	index := func(j *job) *int { return &j.index }
	return &work{
		first: first, most: most, wake: make(chan struct{}, 1), jobs: map[market.ClaimID]*job{},
		due: schedule.New(index), audits: schedule.New(index),
	}
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
	if j.index == 0 {
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
	j := &job{claim: *c, since: c.ChangedAt, once: once}
	w.jobs[c.ID] = j
	w.park(j)
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
	w.queueOf(j).Remove(j)
}

func (w *work) queueOf(j *job) *schedule.Queue[*job] {
	if j.once {
		return &w.audits
	}
	return &w.due
}

// park enters a job that nobody works on, without a due time.
func (w *work) park(j *job) { w.queueOf(j).Set(j, parked, uint64(j.claim.ID)) }

// arm sets when a job that nobody works on is due.
func (w *work) arm(j *job, at int64) {
	w.queueOf(j).Set(j, at, uint64(j.claim.ID))
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
	for _, q := range []*schedule.Queue[*job]{&w.due, &w.audits} {
		if j, ok := q.Pop(now); ok {
			j.told = false
			return j.claim, 0, true
		}
		if _, at, ok := q.First(); ok && at != parked {
			wait = min(wait, time.Duration(at-now))
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
	if j == nil || j.index > 0 { // it needs no work any more, or is another one of the name
		return
	}
	if err == nil && j.once {
		delete(w.jobs, id)
		return
	}
	w.park(j)
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
