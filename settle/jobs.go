package settle

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/internal/schedule"
	"blockdesk/internal/solana"
	"blockdesk/market"
)

const (
	// parked is the due time of a job that waits for the claim's next record from
	// the engine.
	parked = math.MaxInt64
	// laterPause is the pause after errLater.
	laterPause = 25 * time.Millisecond
)

// job is a claim that needs work: it is paid, or its transaction is permitted and
// has not ended.
type job struct {
	claim   rfq.Claim // its newest record
	since   int64     // Unix ns: beginning of the work, as far as it is known
	index   int       // index in its queue; 0 = not queued, because a worker has the job
	changed bool      // since a worker took the job
	search  bool      // done once: no further record is expected

	failures int    // consecutive, of any kind
	problem  string // of the last failure
	signed   int    // deliveries that were ever signed, as far as it is known
	newest   solana.Signature
	// ended are the deliveries that ended without delivering since the start.
	ended map[solana.Hash]bool
}

// jobs schedules the claims that need work. It holds claims that the engine holds,
// so rfq.MaxClaims bounds it. No method blocks. Safe for concurrent use.
type jobs struct {
	retryFirst, retryMax time.Duration
	wake                 chan struct{} // a job may be due

	mu   sync.Mutex
	byID map[market.ClaimID]*job
	// due has deliveries and transactions. searches has those before a refund is listed; all of due comes
	// first, because there may be as many searches as refunds due. Both are ordered by
	// Unix ns or parked, then by claim.
	due, searches schedule.Queue[*job]
}

func newJobs(retryFirst, retryMax time.Duration) *jobs {
	index := func(j *job) *int { return &j.index }
	return &jobs{
		retryFirst: retryFirst, retryMax: retryMax, wake: make(chan struct{}, 1), byID: map[market.ClaimID]*job{},
		due: schedule.New(index), searches: schedule.New(index),
	}
}

func needsWork(s rfq.ClaimState) bool {
	return s == rfq.ClaimPaid || s == rfq.ClaimDelivering || s == rfq.ClaimCosigned
}

func (w *jobs) set(c *rfq.Claim, now int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	j := w.byID[c.ID]
	if !needsWork(c.State) {
		w.drop(j)
		return
	}
	if j == nil {
		j = w.add(c, false)
	}
	j.claim = *c
	if j.index == 0 {
		j.changed = true
		return
	}
	w.schedule(j, now+int64(w.pause(j)))
}

// addSearch adds a claim whose refund is due, to be searched for a delivery once.
func (w *jobs) addSearch(c *rfq.Claim, now int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byID[c.ID] == nil {
		w.schedule(w.add(c, true), now)
	}
}

func (w *jobs) add(c *rfq.Claim, search bool) *job {
	j := &job{claim: *c, since: c.ChangedAt, search: search}
	w.byID[c.ID] = j
	w.park(j)
	return j
}

// remove drops a claim that the engine has forgotten.
func (w *jobs) remove(id market.ClaimID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop(w.byID[id])
}

func (w *jobs) drop(j *job) {
	if j == nil {
		return
	}
	delete(w.byID, j.claim.ID)
	w.queueOf(j).Remove(j)
}

func (w *jobs) queueOf(j *job) *schedule.Queue[*job] {
	if j.search {
		return &w.searches
	}
	return &w.due
}

// park queues a job without a due time.
func (w *jobs) park(j *job) { w.queueOf(j).Set(j, parked, uint64(j.claim.ID)) }

func (w *jobs) schedule(j *job, at int64) {
	w.queueOf(j).Set(j, at, uint64(j.claim.ID))
	w.wakeOne()
}

func (w *jobs) wakeOne() {
	select {
	case w.wake <- struct{}{}:
	default: // a wake-up is pending
	}
}

// pause returns how long a job waits after its failures. A claim with a permitted
// transaction does not wait.
func (w *jobs) pause(j *job) time.Duration {
	if j.failures == 0 || j.claim.State != rfq.ClaimPaid {
		return 0
	}
	return w.backoff(j.failures)
}

func (w *jobs) backoff(failures int) time.Duration {
	pause := w.retryFirst
	for range failures - 1 {
		if pause *= 2; pause >= w.retryMax {
			return w.retryMax
		}
	}
	return pause
}

// retryGuarded makes the claims due that wait because the desk's guard refused their
// delivery: a lock has changed.
func (w *jobs) retryGuarded(now int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, j := range w.byID {
		if j.index > 0 && j.claim.State == rfq.ClaimPaid && isGuardWord(j.problem) {
			w.schedule(j, now)
		}
	}
}

// take gives the next due job to a worker, which returns it with done, and wakes another
// worker, which looks for the jobs after it. If none is due, wait is the time until the
// next one is.
func (w *jobs) take(now int64) (c rfq.Claim, wait time.Duration, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	wait = time.Hour
	for _, q := range []*schedule.Queue[*job]{&w.due, &w.searches} {
		if j, ok := q.Pop(now); ok {
			j.changed = false
			w.wakeOne()
			return j.claim, 0, true
		}
		if _, at, ok := q.First(); ok && at != parked {
			wait = min(wait, time.Duration(at-now))
		}
	}
	return c, wait, false
}

// done returns a job. err is nil if there is nothing to do before the claim's next
// record, and errLater if the job is to be repeated soon. isNew reports that the job
// fails for another reason than the last time.
func (w *jobs) done(id market.ClaimID, now int64, err error) (isNew bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	j := w.byID[id]
	if j == nil || j.index > 0 { // the claim needs no work any more, or has a new job
		return false
	}
	if err == nil && j.search {
		delete(w.byID, id)
		return false
	}
	w.park(j)
	switch {
	case errors.Is(err, errLater):
		w.schedule(j, now+int64(laterPause))
	case err != nil:
		was := j.problem
		j.failures++
		j.problem = problemOf(err)
		w.schedule(j, now+int64(w.backoff(j.failures)))
		return j.problem != was
	case j.changed:
		w.schedule(j, now)
	}
	return false
}

// setSigned records how many deliveries of a claim were ever signed, when the first
// one was, and the signature of the newest.
func (w *jobs) setSigned(id market.ClaimID, count int, first int64, newest solana.Signature) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if j := w.byID[id]; j != nil {
		j.signed, j.newest = count, newest
		j.since = min(j.since, first)
	}
}

// setEnded records that a delivery has ended without delivering; signed says
// whether it is known to have been signed. It counts a signed delivery once.
func (w *jobs) setEnded(id market.ClaimID, hash solana.Hash, signed bool, problem string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	j := w.byID[id]
	if j == nil || j.ended[hash] {
		return
	}
	if signed {
		if j.ended == nil {
			j.ended = map[solana.Hash]bool{}
		}
		j.ended[hash] = true
	}
	j.failures++
	j.problem = problem
}

// hasEnded reports whether setEnded has recorded the end of a signed delivery.
func (w *jobs) hasEnded(id market.ClaimID, hash solana.Hash) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	j := w.byID[id]
	return j != nil && j.ended[hash]
}

// failing lists the claims whose work fails, by number, beginning after one; at most
// limit. The items lack the payment.
func (w *jobs) failing(now int64, after time.Duration, from market.ClaimID, limit int) []desk.MoneyItem {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []desk.MoneyItem
	for id, j := range w.byID {
		if c := &j.claim; id > from && j.isFailing(now, after) {
			list = append(list, desk.MoneyItem{
				Claim: id, Rail: c.Terms.Rail, Amount: c.Paid, Payer: c.Wallet,
				At: j.since, Reason: j.problem, Attempts: j.signed, Delivery: j.newest,
			})
		}
	}
	slices.SortFunc(list, func(a, b desk.MoneyItem) int { return cmp.Compare(a.Claim, b.Claim) })
	return list[:min(len(list), limit)]
}

// countFailing returns the length of the whole list of failing.
func (w *jobs) countFailing(now int64, after time.Duration) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, j := range w.byID {
		if j.isFailing(now, after) {
			n++
		}
	}
	return n
}

// isFailing reports whether a person must know of the job: it takes too long, or the
// claim waits for a cause that does not go away by itself soon.
func (j *job) isFailing(now int64, after time.Duration) bool {
	return now-j.since >= int64(after) || j.claim.State == rfq.ClaimPaid && needsPerson(j.problem)
}

func (w *jobs) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.byID)
}
