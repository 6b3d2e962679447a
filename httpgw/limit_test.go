package httpgw

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"blockdesk/httpgw/gatewaytest"
)

// manualClock is a clock that a test sets.
type manualClock struct{ now int64 }

func (c *manualClock) read() int64 { return c.now }

// TestLimitOnTheWire: one bucket over all addresses, exact headers; 304 and 400 cost a
// token; routes outside the class cost none.
func TestLimitOnTheWire(t *testing.T) {
	b := gatewaytest.NewBooks(t)
	clock := &manualClock{}
	o := testOptions(b)
	o.NoLimits, o.Clock = false, clock.read
	g := start(t, o, b, testDependencies())
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
		resp, _ := gatewaytest.Do(t, addr, "GET", target, "")
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
		resp, body := gatewaytest.Do(t, g.APIAddr(), "HEAD", "/api/v1/market/depth?symbol=SLUSD/USDC", "")
		if resp.StatusCode != 429 || len(body) != 0 {
			t.Fatalf("request 21: status %d", resp.StatusCode)
		}
	}
	resp, body := gatewaytest.Do(t, g.BaseAddr(), "GET", "/api/v1/market/depth?symbol=SLUSD/USDC", "X-Forwarded-For: 198.51.100.7\r\n")
	if resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "1" || resp.Header.Get("X-RateLimit-Remaining") != "0" {
		t.Fatalf("a forwarding header of a stranger: status %d %v", resp.StatusCode, resp.Header)
	}
	if e := gatewaytest.DecodeError(t, body); e.Code != "RATE_LIMITED" {
		t.Errorf("code %s", e.Code)
	}
	for _, free := range []string{"/", "/nowhere"} {
		if resp, _ := gatewaytest.Do(t, g.BaseAddr(), "GET", free, ""); resp.StatusCode == 429 || resp.Header.Get("RateLimit") != "" {
			t.Errorf("%s: limited", free)
		}
	}
	if resp, _ := gatewaytest.Do(t, g.BaseAddr(), "OPTIONS", "/api/v1/market/depth", ""); resp.StatusCode != 204 {
		t.Errorf("a preflight: status %d", resp.StatusCode)
	}
	clock.now += int64(time.Second)
	if resp, _ := gatewaytest.Do(t, g.BaseAddr(), "GET", "/api/v1/market/depth?symbol=SLUSD/USDC", ""); resp.StatusCode != 200 {
		t.Errorf("a second later: status %d", resp.StatusCode)
	}
}
