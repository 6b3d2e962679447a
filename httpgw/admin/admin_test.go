package admin

import (
	"encoding/json"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"blockdesk/httpgw/gatewaytest"
	"blockdesk/httpgw/wire"
	"blockdesk/internal/runtest"
)

func startAdmin(t *testing.T, o Options) *Server {
	t.Helper()
	o.Addr, o.ShutdownTimeout = "127.0.0.1:0", time.Second
	a, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	runtest.Start(t, a.Run)
	return a
}

// TestHealthAndReadiness: each state of each check, by name.
func TestHealthAndReadiness(t *testing.T) {
	var live, journal error
	a := startAdmin(t, Options{
		Live: func() error { return live },
		Ready: []Check{
			{Name: "recovered", Err: func() error { return nil }},
			{Name: "journal_writable", Err: func() error { return journal }},
		},
	})
	const recovered = `{"name":"recovered","ok":true}`
	for _, step := range []struct {
		live, journal   error
		healthz, readyz int
		health, ready   string
	}{
		{nil, nil, 200, 200, `{"ok":true}`, `{"ok":true,"checks":[` + recovered + `,{"name":"journal_writable","ok":true}]}`},
		{
			nil, errors.New("disk full"), 200, 503, `{"ok":true}`,
			`{"ok":false,"checks":[` + recovered + `,{"name":"journal_writable","ok":false,"error":"disk full"}]}`,
		},
		{
			errors.New("matcher stopped"), nil, 503, 200, `{"ok":false,"error":"matcher stopped"}`,
			`{"ok":true,"checks":[` + recovered + `,{"name":"journal_writable","ok":true}]}`,
		},
	} {
		live, journal = step.live, step.journal
		resp, body := gatewaytest.Do(t, a.Addr(), "GET", "/healthz", "Connection: close\r\n")
		if resp.StatusCode != step.healthz || strings.TrimSpace(string(body)) != step.health {
			t.Errorf("healthz: %d %s, want %d %s", resp.StatusCode, body, step.healthz, step.health)
		}
		resp, body = gatewaytest.Do(t, a.Addr(), "GET", "/readyz", "Connection: close\r\n")
		if resp.StatusCode != step.readyz || strings.TrimSpace(string(body)) != step.ready {
			t.Errorf("readyz: %d %s, want %d %s", resp.StatusCode, body, step.readyz, step.ready)
		}
	}
}

// TestReadyWithout: an optional check is awaited at the start and makes nothing
// unready after it has passed or its grace is over.
func TestReadyWithout(t *testing.T) {
	for _, c := range []struct {
		wait        time.Duration
		first, last int
	}{{time.Hour, 503, 200}, {time.Nanosecond, 200, 200}, {0, 503, 503}} {
		down := errors.New("no node")
		a := startAdmin(t, Options{Ready: []Check{{Name: "chain", Err: func() error { return down }, Grace: c.wait}}})
		look := func(want int, reported string) {
			t.Helper()
			resp, body := gatewaytest.Do(t, a.Addr(), "GET", "/readyz", "Connection: close\r\n")
			if resp.StatusCode != want || !strings.Contains(string(body), reported) {
				t.Errorf("wait %s: %d %s, want %d and %s", c.wait, resp.StatusCode, body, want, reported)
			}
		}
		const problem = `{"name":"chain","ok":false,"error":"no node"}`
		look(c.first, problem)
		down = nil
		look(200, `{"name":"chain","ok":true}`)
		down = errors.New("no node")
		look(c.last, problem)
	}
}

// TestProfilesAndStrangers: pprof answers, unknown paths are 404, and POST is refused.
func TestProfilesAndStrangers(t *testing.T) {
	a := startAdmin(t, Options{})
	for target, want := range map[string]int{
		"/debug/pprof/": 200, "/debug/pprof/goroutine?debug=1": 200, "/debug/pprof/cmdline": 404, "/": 404, "/healthz": 200,
	} {
		if resp, _ := gatewaytest.Do(t, a.Addr(), "GET", target, "Connection: close\r\n"); resp.StatusCode != want {
			t.Errorf("%s: status %d, want %d", target, resp.StatusCode, want)
		}
	}
	if resp, _ := gatewaytest.Do(t, a.Addr(), "POST", "/metrics", "Connection: close\r\n"); resp.StatusCode != 405 {
		t.Errorf("POST /metrics: status %d", resp.StatusCode)
	}
}

// TestAdminConnectionLimit: adminConns connections, and one more.
func TestAdminConnectionLimit(t *testing.T) {
	a := startAdmin(t, Options{})
	for range adminConns {
		conn, err := net.Dial("tcp", a.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	resp, body := gatewaytest.Do(t, a.Addr(), "GET", "/healthz", "")
	if e := gatewaytest.DecodeError(t, body); resp.StatusCode != 503 || e.Code != wire.CodeOverloaded {
		t.Errorf("status %d: %s", resp.StatusCode, body)
	}
}

func TestAdminOptions(t *testing.T) {
	fine := func() error { return nil }
	for name, o := range map[string]Options{
		"has no name":          {Ready: []Check{{Err: fine}}},
		"no function":          {Ready: []Check{{Name: "x"}}},
		"two readiness checks": {Ready: []Check{{Name: "x", Err: fine}, {Name: "x", Err: fine}}},
		"negative":             {ShutdownTimeout: -1},
		"metrics": {Addr: "127.0.0.1:0", Collectors: []prometheus.Collector{
			prometheus.NewGauge(prometheus.GaugeOpts{Name: "twice"}), prometheus.NewGauge(prometheus.GaugeOpts{Name: "twice"}),
		}},
		"address": {Addr: "256.0.0.1:1"},
	} {
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Health bodies are JSON even for an error of hostile text.
	a := startAdmin(t, Options{Live: func() error { return errors.New("a \"quoted\"\nline") }})
	if _, body := gatewaytest.Do(t, a.Addr(), "GET", "/healthz", "Connection: close\r\n"); !json.Valid(body) {
		t.Errorf("body %s", body)
	}
}
