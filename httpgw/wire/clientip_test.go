package wire

import (
	"net/netip"
	"testing"

	"blockdesk/httpgw/gatewaytest"
	"blockdesk/internal/ratelimit"
)

// TestClientAddress: the client that a request counts for.
func TestClientAddress(t *testing.T) {
	p := &Proxies{header: "X-Forwarded-For", trusted: []netip.Prefix{
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
		ctx := gatewaytest.RequestFrom(c.peer)
		for _, line := range c.lines {
			ctx.Request.Header.Add("X-Forwarded-For", line)
		}
		if got := p.Client(ctx); got.String() != c.want {
			t.Errorf("peer %s, header %q: %s, want %s", c.peer, c.lines, got, c.want)
		}
	}
}

// TestForwardedWalkIsBounded: the search ends after maxForwarded proxies.
func TestForwardedWalkIsBounded(t *testing.T) {
	p := &Proxies{header: "X-Forwarded-For", trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	for _, c := range []struct {
		Proxies int
		want    string
	}{{maxForwarded - 1, "203.0.113.1"}, {maxForwarded, "10.0.0.9"}} {
		ctx := gatewaytest.RequestFrom("10.0.0.1")
		line := "203.0.113.1"
		for range c.Proxies {
			line += ", 10.0.0.9"
		}
		ctx.Request.Header.Add("X-Forwarded-For", line)
		if got := p.Client(ctx); got.String() != c.want {
			t.Errorf("%d proxies: %s, want %s", c.Proxies, got, c.want)
		}
	}
}

// TestProxiesCopyTrusted: a caller that changes its slice later does not change which
// peers are trusted.
func TestProxiesCopyTrusted(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	of := NewProxies(trusted, "").Client
	trusted[0] = netip.MustParsePrefix("0.0.0.0/0")
	for _, c := range []struct{ peer, want string }{
		{"10.1.1.1", "203.0.113.1"},
		{"192.0.2.9", "192.0.2.9"},
		{"2001:db8::1", "2001:db8::1"},
	} {
		ctx := gatewaytest.RequestFrom(c.peer)
		ctx.Request.Header.Add("X-Forwarded-For", "198.51.100.7, 203.0.113.1")
		if got := of(ctx); got.String() != c.want {
			t.Errorf("peer %s: %s, want %s", c.peer, got, c.want)
		}
	}
	ctx := gatewaytest.RequestFrom("10.1.1.1")
	ctx.Request.Header.Add("X-Real-Ip", "203.0.113.9")
	if got := NewProxies([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, "X-Real-Ip").Client(ctx); got.String() != "203.0.113.9" {
		t.Errorf("another header: %s", got)
	}
}

// FuzzForwardedFor: any header gives an address and never panics.
func FuzzForwardedFor(f *testing.F) {
	for _, seed := range []string{"", "1.2.3.4", "1.2.3.4, ::1", ",,,", "[::1]:99", "fe80::1%x", "unknown", "\x00"} {
		f.Add(seed)
	}
	p := &Proxies{header: "X-Forwarded-For", trusted: []netip.Prefix{
		netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::/0"),
	}}
	f.Fuzz(func(t *testing.T, line string) {
		ctx := gatewaytest.RequestFrom("10.0.0.1")
		ctx.Request.Header.Set("X-Forwarded-For", line)
		addr := p.Client(ctx)
		if !addr.IsValid() || addr.Zone() != "" || ratelimit.ClientOf(addr) == (ratelimit.Client{}) {
			t.Fatalf("%q: %v", line, addr)
		}
	})
}
