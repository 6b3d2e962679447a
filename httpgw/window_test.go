package httpgw

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestWindowExact: three in any 60 s, to the nanosecond, and what is told of it.
func TestWindowExact(t *testing.T) {
	clock := &handClock{now: 12345}
	l := newWindows(Window{3}, 100, clock.read)
	key := keyOf(netip.MustParseAddr("192.0.2.1"))
	begun := clock.now
	for i, after := range []time.Duration{0, 10*time.Second + 1, 25 * time.Second} {
		clock.now = begun + int64(after)
		if a := l.take(key); a != (allowance{ok: true, remaining: int64(2 - i), resetS: 60}) {
			t.Fatalf("request %d: %+v", i+1, a)
		}
	}
	// Refusals cost nothing: however many, the first one's place is free on time.
	for range 1000 {
		if a := l.take(key); a != (allowance{resetS: 60, retryS: 35}) {
			t.Fatalf("request 4: %+v", a)
		}
	}
	for _, c := range []struct {
		after time.Duration
		want  allowance
	}{
		{60*time.Second - 1, allowance{resetS: 26, retryS: 1}},
		{60 * time.Second, allowance{ok: true, resetS: 60}},
		{60 * time.Second, allowance{resetS: 60, retryS: 11}},
		{70 * time.Second, allowance{resetS: 50, retryS: 1}},
		{70*time.Second + 1, allowance{ok: true, resetS: 60}},
		{85 * time.Second, allowance{ok: true, resetS: 60}},
		{85 * time.Second, allowance{resetS: 60, retryS: 35}},
		// A long rest makes room for three, and not for more.
		{time.Hour, allowance{ok: true, remaining: 2, resetS: 60}},
		{time.Hour, allowance{ok: true, remaining: 1, resetS: 60}},
		{time.Hour, allowance{ok: true, resetS: 60}},
		{time.Hour, allowance{resetS: 60, retryS: 60}},
	} {
		clock.now = begun + int64(c.after)
		if a := l.take(key); a != c.want {
			t.Fatalf("after %v: %+v, want %+v", c.after, a, c.want)
		}
	}
	if a := l.take(keyOf(netip.MustParseAddr("192.0.2.2"))); a.remaining != 2 {
		t.Errorf("another client must have a window of its own: %+v", a)
	}
}

// TestWindowLaw: what a naive model grants, and nothing else, for clients that
// ask at any times.
func TestWindowLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 7).Draw(t, "most")
		clock := &handClock{now: rapid.Int64Range(0, 1<<50).Draw(t, "now")}
		l := newWindows(Window{most}, 100, clock.read)
		granted := map[byte][]int64{}
		for range rapid.IntRange(1, 300).Draw(t, "requests") {
			clock.now += rapid.OneOf(
				rapid.Just(int64(0)), rapid.Just(int64(1)), rapid.Just(windowSpan), rapid.Just(windowSpan-1),
				rapid.Int64Range(0, windowSpan/3), rapid.Int64Range(0, 3*windowSpan),
			).Draw(t, "wait")
			who := rapid.ByteRange(1, 3).Draw(t, "client")
			inside := slices.DeleteFunc(slices.Clone(granted[who]), func(at int64) bool { return at <= clock.now-windowSpan })
			a := l.take(clientKey{who})
			switch {
			case a.ok != (len(inside) < most):
				t.Fatalf("%d of %d in the window, granted: %v", len(inside), most, a.ok)
			case a.ok:
				granted[who] = append(granted[who], clock.now)
				if a.remaining != int64(most-len(inside)-1) || a.retryS != 0 || a.resetS != 60 {
					t.Fatalf("granted with %d of %d before: %+v", len(inside), most, a)
				}
			default:
				free, all := inside[0]+windowSpan-clock.now, inside[len(inside)-1]+windowSpan-clock.now
				if a.remaining != 0 || a.retryS != seconds(free) || a.resetS != seconds(all) || a.retryS < 1 {
					t.Fatalf("refused %d ns before there is room, %d before all: %+v", free, all, a)
				}
			}
		}
	})
}

// TestWindowMemory: a place holds at most what two windows have granted,
// however long its client goes on.
func TestWindowMemory(t *testing.T) {
	clock := &handClock{}
	l := newWindows(Window{100}, 1, clock.read)
	granted := 0
	for range 100_000 {
		clock.now += windowSpan / 150
		if l.take(clientKey{1}).ok {
			granted++
		}
	}
	if granted < 60_000 {
		t.Fatalf("only %d granted", granted)
	}
	for i := range l.sets {
		for j := range l.sets[i] {
			if w := &l.sets[i][j]; len(w.at) > 200 || cap(w.at) > 512 {
				t.Errorf("%d moments in room for %d", len(w.at), cap(w.at))
			}
		}
	}
}

// TestWindowsAreBounded: one client more than a set holds takes the place of
// the one who was heard of least lately; the others keep their windows.
func TestWindowsAreBounded(t *testing.T) {
	clock := &handClock{}
	l := newWindows(Window{2}, 1, clock.read)
	if n := len(l.sets) * limitWays; n != limitShards*limitWays {
		t.Fatalf("%d places for one client", n)
	}
	set := &l.sets[0]
	client := func(i int) clientKey { return clientKey{1, byte(i)} }
	use := func(i int) {
		w := set.find(client(i))
		w.at = append(w.at, clock.now)
	}
	for i := range limitWays {
		clock.now += int64(time.Second)
		use(i)
		use(i)
	}
	clock.now += int64(time.Second)
	use(0) // again: now 1 is the one
	use(limitWays)
	kept := map[clientKey]int{}
	for i := range set {
		kept[set[i].key] = set[i].count()
	}
	if _, there := kept[client(1)]; there || kept[client(limitWays)] != 1 || kept[client(0)] != 3 || kept[client(2)] != 2 {
		t.Errorf("places: %v", kept)
	}
	// Of two as old as each other, the one with fewer requests.
	clear(set[:])
	for i := range limitWays {
		use(i)
		if i != 5 {
			use(i)
		}
	}
	use(limitWays)
	for i := range set {
		if set[i].key == client(5) {
			t.Error("the one with the fewest requests has kept its place")
		}
	}
}

// TestWindowsAtOnce: however many ask at the same time, each client gets its
// share and no more.
func TestWindowsAtOnce(t *testing.T) {
	l := newWindows(Window{3}, 1000, func() int64 { return 1 })
	var granted [8]atomic.Int64
	var group sync.WaitGroup
	for i := range 64 {
		group.Add(1)
		go func() {
			defer group.Done()
			for range 50 {
				if l.take(clientKey{1, byte(i % len(granted))}).ok {
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

// TestDvPLimitOnTheWire: build and submit share one window, what is refused by
// it costs nothing, and whatever else is wrong does; it goes before the token,
// and the token before the body. Handshakes have a bucket of their own.
func TestDvPLimitOnTheWire(t *testing.T) {
	b := newBooks(t)
	clock := &handClock{now: 1}
	o := testOptions(b)
	o.NoLimits, o.Clock = false, clock.read
	doors, _ := dvpDoors()
	g := start(t, o, b, doors)
	steps := []struct {
		path, body, header string
		status             int
	}{
		{pathBuild, "not looked at", "X: y", 403},
		{pathSubmit, "no JSON", bearer, 400},
		{pathBuild, buildBody, bearer, 200},
	}
	for i, c := range steps {
		clock.now += int64(10 * time.Second)
		resp, body := exchange(t, g.BaseAddr(), postText(c.path, c.body, c.header))
		if resp.StatusCode != c.status {
			t.Fatalf("request %d: status %d: %s", i+1, resp.StatusCode, body)
		}
		left := fmt.Sprint(2 - i)
		for name, want := range map[string]string{
			"RateLimit-Policy": `"dvp";q=3;w=60`, "RateLimit": fmt.Sprintf(`"dvp";r=%s;t=60`, left), "X-RateLimit-Limit": "3",
			"X-RateLimit-Remaining": left, "X-RateLimit-Reset": "60", "Cache-Control": "no-store",
		} {
			if got := resp.Header.Get(name); got != want {
				t.Errorf("request %d: %s: %q, want %q", i+1, name, got, want)
			}
		}
	}
	for i := range 6 {
		path, header := []string{pathBuild, pathSubmit}[i%2], []string{bearer, "X: y", "Authorization: Basic x"}[i%3]
		resp, body := exchange(t, g.BaseAddr(), postText(path, buildBody, header))
		e := decodeError(t, body)
		if resp.StatusCode != 429 || e.Code != codeRateLimited || e.Reason != "rate" || resp.Header.Get("Retry-After") != "40" ||
			resp.Header.Get("RateLimit") != `"dvp";r=0;t=60` || resp.Header.Get("WWW-Authenticate") != "" {
			t.Fatalf("request 4: status %d %v: %s", resp.StatusCode, resp.Header, body)
		}
	}
	clock.now += int64(40*time.Second) - 1
	if resp, _ := exchange(t, g.BaseAddr(), postText(pathSubmit, submitBody, bearer)); resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "1" {
		t.Errorf("a nanosecond early: status %d %v", resp.StatusCode, resp.Header)
	}
	clock.now++
	if resp, body := exchange(t, g.BaseAddr(), postText(pathSubmit, submitBody, bearer)); resp.StatusCode != 200 {
		t.Errorf("60 s after the first: status %d: %s", resp.StatusCode, body)
	}
	for i := range 10 {
		resp, body := exchange(t, g.BaseAddr(), postText(pathHandshake, challengeBody))
		if want := fmt.Sprintf(`"dvp-handshake";r=%d;t=%d`, 9-i, 6*(i+1)); resp.StatusCode != 200 || resp.Header.Get("RateLimit") != want {
			t.Fatalf("handshake %d: status %d, RateLimit %q: %s", i+1, resp.StatusCode, resp.Header.Get("RateLimit"), body)
		}
	}
	resp, body := exchange(t, g.BaseAddr(), postText(pathHandshake, challengeBody))
	if e := decodeError(t, body); resp.StatusCode != 429 || e.Code != codeRateLimited || resp.Header.Get("Retry-After") != "6" ||
		resp.Header.Get("RateLimit-Policy") != `"dvp-handshake";q=10;w=60;burst=10` {
		t.Errorf("handshake 11: status %d %v: %s", resp.StatusCode, resp.Header, body)
	}
	if resp, _ := ask(t, g.BaseAddr(), "GET", pathHandshake, ""); resp.StatusCode != 200 || resp.Header.Get("RateLimit") != `"market";r=19;t=1` {
		t.Errorf("the terms: status %d, RateLimit %q", resp.StatusCode, resp.Header.Get("RateLimit"))
	}
}

// TestDvPOptions: what the limits may be, and what no limits are.
func TestDvPOptions(t *testing.T) {
	b := newBooks(t)
	for most, good := range map[int]bool{0: true, 1: true, MaxWindow: true, MaxWindow + 1: false, -1: false} {
		o := testOptions(b)
		if o.DvP.PerMinute = most; (o.Validate() == nil) != good {
			t.Errorf("%d in a window: %v", most, o.Validate())
		}
	}
	o := testOptions(b)
	if o.Handshake = (Rate{PerMinute: -1, Burst: 1}); o.Validate() == nil {
		t.Error("a negative rate of handshakes is accepted")
	}
	doors, _ := dvpDoors()
	g := start(t, testOptions(b), b, doors)
	addrs := []net.Addr{g.BaseAddr()}
	for range 20 {
		for _, path := range []string{pathBuild, pathHandshake} {
			if resp, _ := exchange(t, addrs[0], postText(path, "{}", bearer)); resp.StatusCode != 400 || resp.Header.Get("RateLimit") != "" {
				t.Fatalf("%s without limits: status %d %v", path, resp.StatusCode, resp.Header)
			}
		}
	}
}
