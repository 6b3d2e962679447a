package httpgw

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// handClock is a clock that a test turns.
type handClock struct{ now int64 }

func (c *handClock) read() int64 { return c.now }

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
