package engine

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"blockdesk/internal/await"
)

// TestWaiterLosesNoWake plays ping-pong over two waiters, with a third goroutine that wakes
// them needlessly: a lost wake-up would hang it.
func TestWaiterLosesNoWake(t *testing.T) {
	for name, mode := range map[string]WaitMode{"park": Park, "spin": Spin} {
		t.Run(name, func(t *testing.T) {
			rounds := map[WaitMode]int64{Park: 30_000, Spin: 3_000}[mode]
			var ball atomic.Int64
			waiters := [2]*waiter{newWaiter(mode), newWaiter(mode)}
			done := make(chan struct{})
			for me := range int64(2) {
				go func() {
					mine := func() bool { return ball.Load()%2 == me || ball.Load() >= rounds }
					for {
						waiters[me].wait(mine, nil)
						if ball.Load() >= rounds {
							done <- struct{}{}
							return
						}
						ball.Add(1)
						waiters[1-me].wake()
					}
				}()
			}
			stop := make(chan struct{})
			go func() {
				defer close(done)
				for n := 0; ; n++ {
					select {
					case <-stop:
						return
					default:
						waiters[n%2].wake()
						time.Sleep(time.Microsecond) // sleep: the pace of the wake-ups for nothing
					}
				}
			}()
			for range 2 {
				await.Closed(t, "the last round", done)
			}
			close(stop)
			<-done
		})
	}
}

func TestWaiterStops(t *testing.T) {
	for name, mode := range map[string]WaitMode{"park": Park, "spin": Spin} {
		t.Run(name, func(t *testing.T) {
			w := newWaiter(mode)
			stop := make(chan struct{})
			time.AfterFunc(time.Millisecond, func() { close(stop) })
			if w.wait(func() bool { return false }, stop) {
				t.Fatal("ready without being ready")
			}
			if w.state.Load() != waiterAwake || len(w.token) != 0 {
				t.Fatal("a wake-up is left over")
			}
			if !w.wait(func() bool { return true }, stop) {
				t.Fatal("what is ready comes before stop")
			}
		})
	}
}

// TestWaiterLeavesNoToken: a wake between arming and the second check is consumed, so that
// the next one finds the channel empty and cannot block.
func TestWaiterLeavesNoToken(t *testing.T) {
	w := newWaiter(Park)
	looks := 0
	ready := func() bool {
		if looks++; looks == 2 {
			w.wake()
			return true
		}
		return false
	}
	if !w.wait(ready, nil) || looks != 2 {
		t.Fatalf("%d looks", looks)
	}
	if w.state.Load() != waiterAwake || len(w.token) != 0 {
		t.Fatal("a wake-up is left over")
	}
}

// sleeps reports whether the waiter's goroutine sleeps, or is about to.
func (w *waiter) sleeps() bool { return w.state.Load() == waiterAsleep }

// TestTakeOverExcludes: many goroutines take over, wake and wait at once; one owns the role
// at a time, no work is left, and none hangs.
func TestTakeOverExcludes(t *testing.T) {
	w := newWaiter(Park)
	const workers, each = 4, 5000
	var work, done atomic.Int64 // handed over; finished
	var stop atomic.Bool
	var plain int64 // of the goroutine that runs: -race checks it
	more := func() bool { return work.Load() != done.Load() || stop.Load() }
	do := func() {
		for done.Load() != work.Load() {
			plain++
			done.Add(1)
		}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for !stop.Load() {
			w.wait(more, nil)
			do()
		}
	}()
	var all sync.WaitGroup
	for n := range workers {
		all.Go(func() {
			for i := range each {
				work.Add(1)
				if (i+n)%3 == 0 || !w.takeOver() {
					w.wake()
					continue
				}
				do()
				w.handBack(more)
			}
		})
	}
	all.Wait()
	await.Equal(t, "the pieces of work that are done", workers*each, done.Load)
	stop.Store(true)
	w.wake()
	<-ended
	if plain != workers*each {
		t.Fatalf("%d pieces of work were done, %d counted", done.Load(), plain)
	}
}

// TestStopDuringTakeOver: a goroutine that is stopped while another owns its role waits
// until it is handed back, and leaves no token.
func TestStopDuringTakeOver(t *testing.T) {
	for range 200 {
		w := newWaiter(Park)
		stop := make(chan struct{})
		left := make(chan bool)
		go func() { left <- w.wait(func() bool { return false }, stop) }()
		for !w.takeOver() {
			runtime.Gosched()
		}
		close(stop)
		select {
		case <-left:
			t.Fatal("wait returned while its role was taken over")
		default:
		}
		w.handBack(func() bool { return false })
		if <-left {
			t.Fatal("ready without being ready")
		}
		if w.state.Load() != waiterAwake || len(w.token) != 0 {
			t.Fatal("a wake-up is left over")
		}
	}
}
