package rfq

import (
	"context"
	"sync"
	"time"

	"blockdesk/internal/schedule"
)

// retryQueue runs tasks that send requests to the chain and must be repeated, because the
// chain is slow or unreachable. Each task has a due time, and a few goroutines run the
// tasks that are due. add never waits; its callers limit the number of tasks.
type retryQueue struct {
	workers int // goroutines
	wake    chan struct{}

	mu      sync.Mutex
	started time.Time            // due times are nanoseconds after it, on the monotonic clock
	added   uint64               // tasks ever
	waiting schedule.Queue[task] // tasks due at once in the order in which they came
}

// task is one piece of work. attempt tries it once and returns the time until the next
// attempt; 0 = done. It returns soon after ctx ends, if necessary without doing anything.
// One goroutine at a time.
type task interface {
	attempt(ctx context.Context) (again time.Duration)
}

func newRetryQueue(workers int) *retryQueue {
	return &retryQueue{workers: workers, wake: make(chan struct{}, 1), started: time.Now(), waiting: schedule.New[task](nil)}
}

// add adds a task that is due after a while. Any goroutine.
func (a *retryQueue) add(t task, after time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.added++
	a.waiting.Set(t, int64(time.Since(a.started)+after), a.added)
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// Run works until ctx ends. Tasks left then are dropped.
func (a *retryQueue) Run(ctx context.Context) error {
	due := make(chan task)
	var workers sync.WaitGroup
	defer workers.Wait()
	defer close(due)
	for range a.workers {
		workers.Go(func() {
			for t := range due {
				if again := t.attempt(ctx); again > 0 {
					a.add(t, again)
				}
			}
		})
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		t, wait := a.next()
		if t != nil {
			select {
			case due <- t:
				continue
			case <-ctx.Done():
				return nil
			}
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-a.wake:
		case <-ctx.Done():
			return nil
		}
	}
}

// next returns the next task that is due, or nil and how long to wait.
func (a *retryQueue) next() (task, time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := int64(time.Since(a.started))
	if t, ok := a.waiting.Pop(now); ok {
		return t, 0
	}
	if _, due, ok := a.waiting.First(); ok {
		return nil, time.Duration(due - now)
	}
	return nil, time.Hour
}
