package fixgw

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// agenda is work that asks the chain, which is slow, or away, or wants to be asked
// again: tasks, each with the time at which it is due, and a few goroutines that do
// what is due. Who adds one never waits, and bounds how many there are.
type agenda struct {
	workers int // goroutines
	wake    chan struct{}

	mu      sync.Mutex
	waiting appointments
}

// task is one piece of work. attempt does what can be done now, and returns after
// what time it is to be tried again; 0 = it is done. When ctx ends it returns soon
// and need not have done anything. One goroutine at a time.
type task interface {
	attempt(ctx context.Context) (again time.Duration)
}

// appointment is a task and when it is due.
type appointment struct {
	at   time.Time
	task task
}

// appointments is a heap, the earliest first.
type appointments []appointment

func (a appointments) Len() int           { return len(a) }
func (a appointments) Less(i, j int) bool { return a[i].at.Before(a[j].at) }
func (a appointments) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *appointments) Push(x any)        { *a = append(*a, x.(appointment)) }

func (a *appointments) Pop() any {
	last := len(*a) - 1
	x := (*a)[last]
	(*a)[last] = appointment{}
	*a = (*a)[:last]
	return x
}

func newAgenda(workers int) *agenda {
	return &agenda{workers: workers, wake: make(chan struct{}, 1)}
}

// add takes a task that is due after a while. Any goroutine.
func (a *agenda) add(t task, after time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	heap.Push(&a.waiting, appointment{time.Now().Add(after), t})
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// Run works until ctx ends. What is not done then is not done.
func (a *agenda) Run(ctx context.Context) error {
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

// next takes the next task that is due, or returns nil and how long to wait.
func (a *agenda) next() (task, time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.waiting) == 0 {
		return nil, time.Hour
	}
	if wait := time.Until(a.waiting[0].at); wait > 0 {
		return nil, wait
	}
	return heap.Pop(&a.waiting).(appointment).task, 0
}
