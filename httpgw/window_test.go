package httpgw

import (
	"fmt"
	"net"
	"testing"
	"time"

	"blockdesk/httpgw/gatewaytest"
	"blockdesk/httpgw/terms"
	"blockdesk/httpgw/wire"
)

// TestDvPLimitOnTheWire: build and submit share a window; a refusal by it costs
// nothing, any other error does. The limit is checked before the token, and the token
// before the body. Handshakes have their own bucket.
func TestDvPLimitOnTheWire(t *testing.T) {
	b := gatewaytest.NewBooks(t)
	clock := &manualClock{now: 1}
	o := testOptions(b)
	o.NoLimits, o.Clock = false, clock.read
	deps, _ := dvpDependencies()
	g := start(t, o, b, deps)
	steps := []struct {
		path, body, header string
		status             int
	}{
		{terms.PathBuild, "not looked at", "X: y", 403},
		{terms.PathSubmit, "no JSON", bearer, 400},
		{terms.PathBuild, buildBody, bearer, 200},
	}
	for i, c := range steps {
		clock.now += int64(10 * time.Second)
		resp, body := gatewaytest.Exchange(t, g.BaseAddr(), postText(c.path, c.body, c.header))
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
		path, header := []string{terms.PathBuild, terms.PathSubmit}[i%2], []string{bearer, "X: y", "Authorization: Basic x"}[i%3]
		resp, body := gatewaytest.Exchange(t, g.BaseAddr(), postText(path, buildBody, header))
		e := gatewaytest.DecodeError(t, body)
		if resp.StatusCode != 429 || e.Code != wire.CodeRateLimited || e.Reason != "rate" || resp.Header.Get("Retry-After") != "40" ||
			resp.Header.Get("RateLimit") != `"dvp";r=0;t=60` || resp.Header.Get("WWW-Authenticate") != "" {
			t.Fatalf("request 4: status %d %v: %s", resp.StatusCode, resp.Header, body)
		}
	}
	clock.now += int64(40*time.Second) - 1
	if resp, _ := gatewaytest.Exchange(t, g.BaseAddr(), postText(terms.PathSubmit, submitBody, bearer)); resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "1" {
		t.Errorf("a nanosecond early: status %d %v", resp.StatusCode, resp.Header)
	}
	clock.now++
	if resp, body := gatewaytest.Exchange(t, g.BaseAddr(), postText(terms.PathSubmit, submitBody, bearer)); resp.StatusCode != 200 {
		t.Errorf("60 s after the first: status %d: %s", resp.StatusCode, body)
	}
	for i := range 10 {
		resp, body := gatewaytest.Exchange(t, g.BaseAddr(), postText(terms.PathHandshake, challengeBody))
		if want := fmt.Sprintf(`"dvp-handshake";r=%d;t=%d`, 9-i, 6*(i+1)); resp.StatusCode != 200 || resp.Header.Get("RateLimit") != want {
			t.Fatalf("handshake %d: status %d, RateLimit %q: %s", i+1, resp.StatusCode, resp.Header.Get("RateLimit"), body)
		}
	}
	resp, body := gatewaytest.Exchange(t, g.BaseAddr(), postText(terms.PathHandshake, challengeBody))
	if e := gatewaytest.DecodeError(t, body); resp.StatusCode != 429 || e.Code != wire.CodeRateLimited || resp.Header.Get("Retry-After") != "6" ||
		resp.Header.Get("RateLimit-Policy") != `"dvp-handshake";q=10;w=60;burst=10` {
		t.Errorf("handshake 11: status %d %v: %s", resp.StatusCode, resp.Header, body)
	}
	if resp, _ := gatewaytest.Do(t, g.BaseAddr(), "GET", terms.PathHandshake, ""); resp.StatusCode != 200 || resp.Header.Get("RateLimit") != `"market";r=19;t=1` {
		t.Errorf("the terms: status %d, RateLimit %q", resp.StatusCode, resp.Header.Get("RateLimit"))
	}
}

// TestDvPOptions: valid and invalid limits, and no limits.
func TestDvPOptions(t *testing.T) {
	b := gatewaytest.NewBooks(t)
	for most, good := range map[int]bool{0: true, 1: true, wire.MaxWindow: true, wire.MaxWindow + 1: false, -1: false} {
		o := testOptions(b)
		if o.DvP.PerMinute = most; (o.Validate() == nil) != good {
			t.Errorf("%d in a window: %v", most, o.Validate())
		}
	}
	o := testOptions(b)
	if o.Handshake = (wire.Rate{PerMinute: -1, Burst: 1}); o.Validate() == nil {
		t.Error("a negative rate of handshakes is accepted")
	}
	deps, _ := dvpDependencies()
	g := start(t, testOptions(b), b, deps)
	addrs := []net.Addr{g.BaseAddr()}
	for range 20 {
		for _, path := range []string{terms.PathBuild, terms.PathHandshake} {
			if resp, _ := gatewaytest.Exchange(t, addrs[0], postText(path, "{}", bearer)); resp.StatusCode != 400 || resp.Header.Get("RateLimit") != "" {
				t.Fatalf("%s without limits: status %d %v", path, resp.StatusCode, resp.Header)
			}
		}
	}
}
