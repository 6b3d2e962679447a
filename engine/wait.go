package engine

import (
	"runtime"
	"sync/atomic"
)

// WaitMode says how the engine's goroutines and consumers wait for work.
type WaitMode uint8

const (
	// Park sleeps at once when there is nothing to do: no CPU when idle. The
	// default.
	Park WaitMode = 1
	// Spin never sleeps: the matcher, the journaler and every consumer that
	// waits in Next burn a core each. Only for machines with cores to spare.
	Spin WaitMode = 2
)

// spinYields is how often a Spin waiter looks before it lets another goroutine
// run, so that spinning cannot starve a machine with one core.
const spinYields = 1 << 12

// cacheLine keeps two fields in different cache lines, also where the hardware
// fetches lines in pairs.
type cacheLine [128]byte

// waiter lets one goroutine wait for others without a lock.
//
// The waiting goroutine arms it, looks at its condition again, and then either
// disarms it or receives from token. Another goroutine changes the condition and
// then calls wake. Go's atomics are sequentially consistent, so either the
// waiting goroutine sees the change or wake sees the arming: no wake-up is lost.
// Every arm is answered by exactly one token or taken back by disarm, so wake
// never blocks on the channel.
type waiter struct {
	_     cacheLine
	state atomic.Uint32 // waiterAwake, waiterArmed or waiterAsleep
	_     cacheLine
	token chan struct{} // capacity 1
	mode  WaitMode
}

// States of a waiter. Armed: its goroutine looks at its condition once more.
// Asleep: it looks at nothing until it has a token, so another goroutine may
// take its turn.
const (
	waiterAwake  uint32 = 0
	waiterArmed  uint32 = 1
	waiterAsleep uint32 = 2
)

func newWaiter(mode WaitMode) *waiter {
	return &waiter{token: make(chan struct{}, 1), mode: mode}
}

// wake ends a wait, if there is one. Any goroutine; never blocks.
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

// disarm takes an arming back: the token of a wake that came first is eaten, the
// end of a turn that was taken is awaited.
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

// take begins a turn in place of the waiting goroutine, which sleeps on: what is
// its alone is the caller's until give. False where it is awake, about to be, or
// another has its turn. Any goroutine; never blocks.
func (w *waiter) take() bool {
	return w.state.Load() == waiterAsleep && w.state.CompareAndSwap(waiterAsleep, waiterAwake)
}

// give ends a turn. more says whether there is something to do that came while
// nobody could be woken for it; it must read nothing that is the turn's alone,
// since the goroutine may be woken at any time now.
func (w *waiter) give(more func() bool) {
	w.state.Store(waiterArmed)
	if more() {
		w.wake()
		return
	}
	// Where this fails somebody has woken it.
	w.state.CompareAndSwap(waiterArmed, waiterAsleep)
}

// wait returns true once ready does, false once stop (which may be nil) is
// closed. ready must become true by a change whose maker calls wake afterwards.
// It does not allocate.
//
// Looking some more before sleeping was tried: on two cores it makes every
// command wait longer (100 looks double the median, 1,000 multiply it by ten),
// since who looks keeps the core from whom it waits for.
func (w *waiter) wait(ready func() bool, stop <-chan struct{}) bool {
	if w.mode == Spin {
		return spin(ready, stop)
	}
	for !ready() {
		w.state.Store(waiterArmed)
		if ready() {
			w.disarm()
			break
		}
		// Where this fails the token is there, or about to be.
		w.state.CompareAndSwap(waiterArmed, waiterAsleep)
		select {
		case <-w.token:
		case <-stop:
			w.disarm()
			return false
		}
	}
	return true
}

func spin(ready func() bool, stop <-chan struct{}) bool {
	for {
		for range spinYields {
			if ready() {
				return true
			}
		}
		select {
		case <-stop:
			return false
		default:
			runtime.Gosched()
		}
	}
}
