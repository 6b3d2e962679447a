package engine

import (
	"runtime"
	"sync/atomic"
	"time"
)

// WaitMode says how the engine's goroutines and consumers wait for work.
type WaitMode uint8

const (
	// Park sleeps as soon as there is nothing to do: no CPU when idle. The default.
	Park WaitMode = 1
	// Spin never sleeps: the matcher, the journaler and every consumer in Next use a
	// core each. Only for machines with spare cores.
	Spin WaitMode = 2
)

// spinYields is how often a Spin waiter polls before it yields, so that spinning cannot
// starve a machine with one core.
const spinYields = 1 << 12

// cacheLine keeps two fields in different cache lines, even if the CPU fetches lines in
// pairs.
type cacheLine [128]byte

// waiter lets one goroutine wait for others without a lock.
//
// The waiting goroutine arms the waiter, checks its condition again, and then disarms or
// receives from token. Another goroutine changes the condition and then calls wake. Go's
// atomics are sequentially consistent, so either the waiting goroutine sees the change or
// wake sees the armed state: no wake-up is lost. Every arming is answered by exactly one
// token or undone by disarm, so wake never blocks on the channel.
type waiter struct {
	_     cacheLine
	state atomic.Uint32 // waiterAwake, waiterArmed or waiterAsleep
	_     cacheLine
	token chan struct{} // capacity 1
	mode  WaitMode
}

func newWaiter(mode WaitMode) *waiter {
	return &waiter{token: make(chan struct{}, 1), mode: mode}
}

// wake ends a wait, if one is under way. Any goroutine; never blocks.
func (w *waiter) wake() {
	for {
		s := w.state.Load()
		if s == waiterAwake {
			return
		}
		if w.state.CompareAndSwap(s, waiterAwake) {
			w.token <- struct{}{}
			return
		}
	}
}

// disarm undoes an arming. It consumes the token of a wake that came first, and waits
// until a role that was taken over is handed back.
func (w *waiter) disarm() {
	for {
		if s := w.state.Load(); s != waiterAwake && w.state.CompareAndSwap(s, waiterAwake) {
			return
		}
		select {
		case <-w.token:
			return
		default:
			runtime.Gosched()
		}
	}
}

// takeOver makes the caller the owner of the role until handBack, while the role's
// goroutine sleeps on. It returns false if the role is not asleep. Any goroutine; never
// blocks.
func (w *waiter) takeOver() bool {
	return w.state.Load() == waiterAsleep && w.state.CompareAndSwap(waiterAsleep, waiterAwake)
}

// handBack returns the role to its goroutine. more reports whether work arrived while
// the role was taken over and wake had no effect. The role's goroutine may run as soon as
// handBack begins, so more must not read what only the role's owner may.
func (w *waiter) handBack(more func() bool) {
	w.state.Store(waiterArmed)
	if more() {
		w.wake()
		return
	}
	w.state.CompareAndSwap(waiterArmed, waiterAsleep) // fails if somebody called wake
}

// wait blocks until ready returns true, and returns true; or until stop (which may be
// nil) is closed, and returns false. The goroutine that makes ready true must call wake
// afterwards. wait does not allocate.
//
// Polling for a while before sleeping was measured and rejected: on two cores 100 polls
// double the median latency of a command and 1,000 multiply it by ten, because the poller
// occupies the core of the goroutine that it waits for.
func (w *waiter) wait(ready func() bool, stop <-chan struct{}) bool {
	return w.waitTimer(ready, stop, nil)
}

// waitTimer is wait that also returns false when timer, which may be nil, fires.
func (w *waiter) waitTimer(ready func() bool, stop <-chan struct{}, timer <-chan time.Time) bool {
	if w.mode == Spin {
		return spin(ready, stop, timer)
	}
	for !ready() {
		w.state.Store(waiterArmed)
		if ready() {
			w.disarm()
			break
		}
		w.state.CompareAndSwap(waiterArmed, waiterAsleep) // fails if a wake is about to send the token
		select {
		case <-w.token:
		case <-stop:
			w.disarm()
			return false
		case <-timer:
			w.disarm()
			return false
		}
	}
	return true
}

func spin(ready func() bool, stop <-chan struct{}, timer <-chan time.Time) bool {
	for {
		for range spinYields {
			if ready() {
				return true
			}
		}
		select {
		case <-stop:
			return false
		case <-timer:
			return false
		default:
			runtime.Gosched()
		}
	}
}

// States of a waiter:
//
//	awake ──wait──▶ armed ──still nothing to do──▶ asleep
//	  ▲               │                              │
//	  ├─disarm, wake──┘                              │
//	  ├─wake: sends the token────────────────────────┤
//	  └─takeOver: the goroutine sleeps on────────────┘
//
//	awake (taken over) ──handBack──▶ armed ──no more work──▶ asleep
//	                                   └─────more work: wake─▶ awake
//
// A role that is awake cannot be taken over, whether its goroutine or a producer owns it.
// A wake has no effect then; handBack looks for the work that it announced.
const (
	waiterAwake  uint32 = 0
	waiterArmed  uint32 = 1
	waiterAsleep uint32 = 2
)
