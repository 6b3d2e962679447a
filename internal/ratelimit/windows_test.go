package ratelimit

import (
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestWindowExact: three grants in any 60 s, to the nanosecond, and their Allowance.
func TestWindowExact(t *testing.T) {
	clock := &manualClock{now: 12345}
	l := NewWindows(3, 100, clock.read)
	key := ClientOf(netip.MustParseAddr("192.0.2.1"))
	begun := clock.now
	for i, after := range []time.Duration{0, 10*time.Second + 1, 25 * time.Second} {
		clock.now = begun + int64(after)
		if a := l.Take(key); a != (Allowance{OK: true, Remaining: int64(2 - i), ResetS: 60}) {
			t.Fatalf("request %d: %+v", i+1, a)
		}
	}
	// Refusals change nothing: the first grant leaves the window on time.
	for range 1000 {
		if a := l.Take(key); a != (Allowance{ResetS: 60, RetryS: 35}) {
			t.Fatalf("request 4: %+v", a)
		}
	}
	for _, c := range []struct {
		after time.Duration
		want  Allowance
	}{
		{60*time.Second - 1, Allowance{ResetS: 26, RetryS: 1}},
		{60 * time.Second, Allowance{OK: true, ResetS: 60}},
		{60 * time.Second, Allowance{ResetS: 60, RetryS: 11}},
		{70 * time.Second, Allowance{ResetS: 50, RetryS: 1}},
		{70*time.Second + 1, Allowance{OK: true, ResetS: 60}},
		{85 * time.Second, Allowance{OK: true, ResetS: 60}},
		{85 * time.Second, Allowance{ResetS: 60, RetryS: 35}},
		// A long rest makes room for three, and not for more.
		{time.Hour, Allowance{OK: true, Remaining: 2, ResetS: 60}},
		{time.Hour, Allowance{OK: true, Remaining: 1, ResetS: 60}},
		{time.Hour, Allowance{OK: true, ResetS: 60}},
		{time.Hour, Allowance{ResetS: 60, RetryS: 60}},
	} {
		clock.now = begun + int64(c.after)
		if a := l.Take(key); a != c.want {
			t.Fatalf("after %v: %+v, want %+v", c.after, a, c.want)
		}
	}
	if a := l.Take(ClientOf(netip.MustParseAddr("192.0.2.2"))); a.Remaining != 2 {
		t.Errorf("another client must have a window of its own: %+v", a)
	}
}

// TestWindowLaw: what a naive model grants, and nothing else, for clients that
// ask at any times.
func TestWindowLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 7).Draw(t, "most")
		clock := &manualClock{now: rapid.Int64Range(0, 1<<50).Draw(t, "now")}
		l := NewWindows(most, 100, clock.read)
		granted := map[byte][]int64{}
		for range rapid.IntRange(1, 300).Draw(t, "requests") {
			clock.now += rapid.OneOf(
				rapid.Just(int64(0)), rapid.Just(int64(1)), rapid.Just(span), rapid.Just(span-1),
				rapid.Int64Range(0, span/3), rapid.Int64Range(0, 3*span),
			).Draw(t, "wait")
			client := rapid.ByteRange(1, 3).Draw(t, "client")
			inside := slices.DeleteFunc(slices.Clone(granted[client]), func(at int64) bool { return at <= clock.now-span })
			a := l.Take(Client{client})
			switch {
			case a.OK != (len(inside) < most):
				t.Fatalf("%d of %d in the window, granted: %v", len(inside), most, a.OK)
			case a.OK:
				granted[client] = append(granted[client], clock.now)
				if a.Remaining != int64(most-len(inside)-1) || a.RetryS != 0 || a.ResetS != 60 {
					t.Fatalf("granted with %d of %d before: %+v", len(inside), most, a)
				}
			default:
				free, all := inside[0]+span-clock.now, inside[len(inside)-1]+span-clock.now
				if a.Remaining != 0 || a.RetryS != Seconds(free) || a.ResetS != Seconds(all) || a.RetryS < 1 {
					t.Fatalf("refused %d ns before there is room, %d before all: %+v", free, all, a)
				}
			}
		}
	})
}

// TestWindowMemory: a slot holds at most the grants of two windows, however long its
// client continues.
func TestWindowMemory(t *testing.T) {
	clock := &manualClock{}
	l := NewWindows(100, 1, clock.read)
	granted := 0
	for range 100_000 {
		clock.now += span / 150
		if l.Take(Client{1}).OK {
			granted++
		}
	}
	if granted < 60_000 {
		t.Fatalf("only %d granted", granted)
	}
	for i := range l.sets {
		for j := range l.sets[i] {
			if w := &l.sets[i][j].state; len(w.at) > 200 || cap(w.at) > 512 {
				t.Errorf("%d moments in room for %d", len(w.at), cap(w.at))
			}
		}
	}
}

// TestWindowsAreBounded: one client more than a set holds replaces the one with the
// oldest request; the others keep their windows.
func TestWindowsAreBounded(t *testing.T) {
	clock := &manualClock{}
	l := NewWindows(2, 1, clock.read)
	if n := len(l.sets) * ways; n != shards*ways {
		t.Fatalf("%d places for one client", n)
	}
	places := &l.sets[0]
	client := func(i int) Client { return Client{1, byte(i)} }
	use := func(i int) {
		w := windowFor(places, client(i))
		w.at = append(w.at, clock.now)
	}
	for i := range ways {
		clock.now += int64(time.Second)
		use(i)
		use(i)
	}
	clock.now += int64(time.Second)
	use(0) // again: now 1 is the one
	use(ways)
	clients := map[Client]int{}
	for i := range places {
		clients[places[i].client] = places[i].state.count()
	}
	if _, there := clients[client(1)]; there || clients[client(ways)] != 1 || clients[client(0)] != 3 || clients[client(2)] != 2 {
		t.Errorf("places: %v", clients)
	}
	// Of two as old as each other, the one with fewer requests.
	clear(places[:])
	for i := range ways {
		use(i)
		if i != 5 {
			use(i)
		}
	}
	use(ways)
	for i := range places {
		if places[i].client == client(5) {
			t.Error("the one with the fewest requests has kept its slot")
		}
	}
}

// TestWindowsAtOnce: however many ask at the same time, each client gets its
// share and no more.
func TestWindowsAtOnce(t *testing.T) {
	l := NewWindows(3, 1000, func() int64 { return 1 })
	var granted [8]atomic.Int64
	var group sync.WaitGroup
	for i := range 64 {
		group.Add(1)
		go func() {
			defer group.Done()
			for range 50 {
				if l.Take(Client{1, byte(i % len(granted))}).OK {
					granted[i%len(granted)].Add(1)
				}
			}
		}()
	}
	group.Wait()
	for i := range granted {
		if n := granted[i].Load(); n != 3 {
			t.Errorf("client %d: %d granted", i, n)
		}
	}
}
