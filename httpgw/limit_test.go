package httpgw

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"pgregory.net/rapid"
)

// handClock is a clock that a test turns.
type handClock struct{ now int64 }

func (c *handClock) read() int64 { return c.now }

// TestBucketExact: the description's limit, to the nanosecond.
func TestBucketExact(t *testing.T) {
	clock := &handClock{now: 12345}
	l := newLimiter(Rate{60, 20}, 100, clock.read)
	key := keyOf(netip.MustParseAddr("192.0.2.1"))
	for i := int64(1); i <= 20; i++ {
		if a := l.take(key); !a.ok || a.remaining != 20-i || a.resetS != i || a.retryS != 0 {
			t.Fatalf("request %d of the burst: %+v", i, a)
		}
	}
	// Refusals cost nothing: however many, the next token comes on time.
	for range 1000 {
		if a := l.take(key); a.ok || a.remaining != 0 || a.retryS != 1 || a.resetS != 20 {
			t.Fatalf("request 21: %+v", a)
		}
	}
	clock.now += int64(time.Second) - 1
	if a := l.take(key); a.ok || a.retryS != 1 {
		t.Fatalf("a nanosecond early: %+v", a)
	}
	clock.now++
	if a := l.take(key); !a.ok || a.remaining != 0 {
		t.Fatalf("on time: %+v", a)
	}
	if a := l.take(key); a.ok {
		t.Fatalf("two for one token: %+v", a)
	}
	// A long rest fills the bucket to its burst and not beyond.
	clock.now += int64(time.Hour)
	granted := 0
	for l.take(key).ok {
		granted++
	}
	if granted != 20 {
		t.Errorf("%d after an hour, want 20", granted)
	}
	if !l.take(keyOf(netip.MustParseAddr("192.0.2.2"))).ok {
		t.Error("another client must have a bucket of its own")
	}
}

// TestBucketLaw: over any window, a client gets at most burst + rate × window,
// and one that asks at every instant gets exactly that.
func TestBucketLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Rate{rapid.IntRange(1, 100_000).Draw(t, "per minute"), rapid.IntRange(1, 50).Draw(t, "burst")}
		clock := &handClock{}
		l := newLimiter(r, 100, clock.read)
		granted := int64(0)
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			clock.now += rapid.Int64Range(0, 2*l.interval).Draw(t, "step")
			for l.take(clientKey{1}).ok {
				granted++
			}
			most := int64(r.Burst) + clock.now*int64(r.PerMinute)/int64(time.Minute)
			if granted > most {
				t.Fatalf("%d granted in %d ns, at most %d", granted, clock.now, most)
			}
		}
	})
}

func TestClientKeys(t *testing.T) {
	key := func(text string) clientKey { return keyOf(netip.MustParseAddr(text)) }
	if key("192.0.2.1") != key("::ffff:192.0.2.1") {
		t.Error("an IPv4 address and its mapped form are one client")
	}
	if key("192.0.2.1") == key("192.0.2.2") {
		t.Error("two IPv4 addresses are two clients")
	}
	if key("2001:db8:1:2::1") != key("2001:db8:1:2:ffff:ffff:ffff:ffff") {
		t.Error("a /64 is one client")
	}
	if key("2001:db8:1:2::1") == key("2001:db8:1:3::1") {
		t.Error("two /64 are two clients")
	}
	if key("::1") == (clientKey{}) {
		t.Error("no client may have the key of a free place")
	}
}

// TestTableIsBounded: one client more than the table holds evicts one, not the
// one that has used most.
func TestTableIsBounded(t *testing.T) {
	clock := &handClock{}
	l := newLimiter(Rate{60, 20}, 1, clock.read)
	if n := len(l.sets) * limitWays; n != limitShards*limitWays {
		t.Fatalf("%d places for one client", n)
	}
	client := func(i int) clientKey { return clientKey{1, byte(i >> 16), byte(i >> 8), byte(i)} }
	// Fill one set: find limitWays + 1 clients that share it.
	var same []clientKey
	set := func(key clientKey) *limitSet {
		for i := range l.sets {
			for j := range l.sets[i] {
				if l.sets[i][j].key == key {
					return &l.sets[i]
				}
			}
		}
		return nil
	}
	l.take(client(0))
	home := set(client(0))
	same = append(same, client(0))
	for i := 1; len(same) < limitWays+1; i++ {
		probe := newLimiterLike(l)
		probe.take(client(i))
		if probe.sets[indexOf(l, home)].has(client(i)) {
			same = append(same, client(i))
		}
	}
	// The first spends its whole burst, each other one token.
	for range 19 {
		l.take(same[0])
	}
	for _, key := range same[1:] {
		l.take(key)
	}
	if !home.has(same[0]) || !home.has(same[limitWays]) {
		t.Error("the newcomer must be let in, and the busiest client must stay")
	}
	if l.take(same[0]).ok {
		t.Error("the busiest client got its bucket back")
	}
}

// newLimiterLike returns an empty limiter that hashes as l does.
func newLimiterLike(l *limiter) *limiter {
	return &limiter{clock: l.clock, interval: l.interval, depth: l.depth, seed: l.seed, sets: make([]limitSet, len(l.sets))}
}

func indexOf(l *limiter, set *limitSet) int {
	for i := range l.sets {
		if &l.sets[i] == set {
			return i
		}
	}
	return -1
}

func (s *limitSet) has(key clientKey) bool {
	for i := range s {
		if s[i].key == key {
			return true
		}
	}
	return false
}

// TestLimitOnTheWire: one bucket over all addresses, exact headers, 304 and 400
// cost a token, what is not market data costs none.
func TestLimitOnTheWire(t *testing.T) {
	b := newBooks(t)
	clock := &handClock{}
	o := testOptions(b)
	o.NoLimits, o.Clock = false, clock.read
	g := start(t, o, b, testDoors())
	for i := range 20 {
		addr, target, want := g.BaseAddr(), "/api/v1/market/depth?symbol=SLUSD/USDC", 200
		switch i % 4 {
		case 1:
			addr = g.APIAddr()
		case 2:
			target, want = "/api/v1/market/ticker?symbol=nonsense", 400
		case 3:
			target = "/api/v1/market/symbols"
		}
		resp, _ := ask(t, addr, "GET", target, "")
		if resp.StatusCode != want {
			t.Fatalf("request %d: status %d", i+1, resp.StatusCode)
		}
		left := strconv.Itoa(19 - i)
		for name, want := range map[string]string{
			"RateLimit-Policy": `"market";q=60;w=60;burst=20`, "RateLimit": fmt.Sprintf(`"market";r=%s;t=%d`, left, i+1),
			"X-RateLimit-Limit": "60", "X-RateLimit-Remaining": left, "X-RateLimit-Reset": strconv.Itoa(i + 1), "Retry-After": "",
		} {
			if got := resp.Header.Get(name); got != want {
				t.Errorf("request %d: %s: %q, want %q", i+1, name, got, want)
			}
		}
	}
	for range 3 {
		resp, body := ask(t, g.APIAddr(), "HEAD", "/api/v1/market/depth?symbol=SLUSD/USDC", "")
		if resp.StatusCode != 429 || len(body) != 0 {
			t.Fatalf("request 21: status %d", resp.StatusCode)
		}
	}
	resp, body := ask(t, g.BaseAddr(), "GET", "/api/v1/market/depth?symbol=SLUSD/USDC", "X-Forwarded-For: 198.51.100.7\r\n")
	if resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "1" || resp.Header.Get("X-RateLimit-Remaining") != "0" {
		t.Fatalf("a forwarding header of a stranger: status %d %v", resp.StatusCode, resp.Header)
	}
	if e := decodeError(t, body); e.Code != "RATE_LIMITED" {
		t.Errorf("code %s", e.Code)
	}
	for _, free := range []string{"/", "/nowhere"} {
		if resp, _ := ask(t, g.BaseAddr(), "GET", free, ""); resp.StatusCode == 429 || resp.Header.Get("RateLimit") != "" {
			t.Errorf("%s: limited", free)
		}
	}
	if resp, _ := ask(t, g.BaseAddr(), "OPTIONS", "/api/v1/market/depth", ""); resp.StatusCode != 204 {
		t.Errorf("a preflight: status %d", resp.StatusCode)
	}
	clock.now += int64(time.Second)
	if resp, _ := ask(t, g.BaseAddr(), "GET", "/api/v1/market/depth?symbol=SLUSD/USDC", ""); resp.StatusCode != 200 {
		t.Errorf("a second later: status %d", resp.StatusCode)
	}
}

// TestClientAddress: whose bucket a request counts for.
func TestClientAddress(t *testing.T) {
	p := &proxies{header: "X-Forwarded-For", trusted: []netip.Prefix{
		netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:ffff::/48"),
	}}
	for _, c := range []struct {
		peer  string
		lines []string
		want  string
	}{
		{"192.0.2.9", nil, "192.0.2.9"},
		{"192.0.2.9", []string{"203.0.113.1"}, "192.0.2.9"},
		{"10.1.1.1", nil, "10.1.1.1"},
		{"10.1.1.1", []string{"203.0.113.1"}, "203.0.113.1"},
		{"::ffff:10.1.1.1", []string{"203.0.113.1"}, "203.0.113.1"},
		{"2001:db8:ffff::1", []string{"2001:db8::7"}, "2001:db8::7"},
		{"10.1.1.1", []string{"1.1.1.1, 203.0.113.1"}, "203.0.113.1"},
		{"10.1.1.1", []string{"1.1.1.1,203.0.113.1,10.2.2.2"}, "203.0.113.1"},
		{"10.1.1.1", []string{"1.1.1.1", "203.0.113.1", "10.2.2.2"}, "203.0.113.1"},
		{"10.1.1.1", []string{"203.0.113.1:4711"}, "203.0.113.1"},
		{"10.1.1.1", []string{"[2001:db8::7]:4711"}, "2001:db8::7"},
		{"10.1.1.1", []string{"fe80::1%eth0"}, "fe80::1"},
		{"10.1.1.1", []string{"::ffff:203.0.113.1"}, "203.0.113.1"},
		{"10.1.1.1", []string{"nonsense"}, "10.1.1.1"},
		{"10.1.1.1", []string{"203.0.113.1, unknown"}, "10.1.1.1"},
		{"10.1.1.1", []string{"203.0.113.1, , 10.2.2.2"}, "10.2.2.2"},
		{"10.1.1.1", []string{""}, "10.1.1.1"},
		{"10.1.1.1", []string{"10.3.3.3, 10.2.2.2"}, "10.3.3.3"},
	} {
		ctx := requestFrom(c.peer)
		for _, line := range c.lines {
			ctx.Request.Header.Add("X-Forwarded-For", line)
		}
		if got := p.client(ctx); got.String() != c.want {
			t.Errorf("peer %s, header %q: %s, want %s", c.peer, c.lines, got, c.want)
		}
	}
}

// TestForwardedWalkIsBounded: past maxForwarded proxies the walk ends.
func TestForwardedWalkIsBounded(t *testing.T) {
	p := &proxies{header: "X-Forwarded-For", trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	for _, c := range []struct {
		proxies int
		want    string
	}{{maxForwarded - 1, "203.0.113.1"}, {maxForwarded, "10.0.0.9"}} {
		ctx := requestFrom("10.0.0.1")
		line := "203.0.113.1"
		for range c.proxies {
			line += ", 10.0.0.9"
		}
		ctx.Request.Header.Add("X-Forwarded-For", line)
		if got := p.client(ctx); got.String() != c.want {
			t.Errorf("%d proxies: %s, want %s", c.proxies, got, c.want)
		}
	}
}

// TestClientIPForOtherRooms: the exported function names the client that the
// limits here count for, and nobody can rewrite what it trusts.
func TestClientIPForOtherRooms(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	of := ClientIP(trusted, "")
	trusted[0] = netip.MustParsePrefix("0.0.0.0/0")
	for _, c := range []struct{ peer, want string }{
		{"10.1.1.1", "203.0.113.1"},
		{"192.0.2.9", "192.0.2.9"},
		{"2001:db8::1", "2001:db8::1"},
	} {
		ctx := requestFrom(c.peer)
		ctx.Request.Header.Add("X-Forwarded-For", "198.51.100.7, 203.0.113.1")
		if got := of(ctx); got.String() != c.want {
			t.Errorf("peer %s: %s, want %s", c.peer, got, c.want)
		}
	}
	ctx := requestFrom("10.1.1.1")
	ctx.Request.Header.Add("X-Real-Ip", "203.0.113.9")
	if got := ClientIP([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, "X-Real-Ip")(ctx); got.String() != "203.0.113.9" {
		t.Errorf("another header: %s", got)
	}
}

func requestFrom(peer string) *fasthttp.RequestCtx {
	ctx := &fasthttp.RequestCtx{}
	ctx.Init(&fasthttp.Request{}, net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(peer), 4711)), nil)
	return ctx
}
