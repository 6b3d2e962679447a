package engine

import (
	"sync/atomic"
	"testing"
	"time"
)

// TestWaiterLosesNoWake plays ping-pong over two waiters, with a third goroutine
// that wakes them for nothing: a lost wake-up would hang it for ever.
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
						time.Sleep(time.Microsecond)
					}
				}
			}()
			for range 2 {
				select {
				case <-done:
				case <-time.After(30 * time.Second):
					t.Fatalf("stuck after %d of %d rounds", ball.Load(), rounds)
				}
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
			if w.armed.Load() || len(w.token) != 0 {
				t.Fatal("a wake-up is left over")
			}
			if !w.wait(func() bool { return true }, stop) {
				t.Fatal("what is ready comes before stop")
			}
		})
	}
}

// TestWaiterLeavesNoToken: a wake between arming and looking again is eaten, so
// that the next one finds the channel empty and cannot block.
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
	if w.armed.Load() || len(w.token) != 0 {
		t.Fatal("a wake-up is left over")
	}
}
