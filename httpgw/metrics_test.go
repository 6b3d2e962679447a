package httpgw

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"blockdesk/httpgw/admin"
	"blockdesk/httpgw/gatewaytest"
	"blockdesk/internal/runtest"
)

// TestMetrics: every metric has its name and value, and requests are counted by
// address, route and status; a nil source has no metrics.
func TestMetrics(t *testing.T) {
	b := gatewaytest.NewBooks(t)
	g := start(t, testOptions(b), b, testDependencies())
	a := serveMetrics(t, admin.Options{
		Collectors: append(
			g.Collectors(),
			admin.NewMetrics("test_", func() uint64 { return 6 }).
				Gauge("fill_commands", "Fill.", func(n *uint64) float64 { return float64(*n) / 4 }).
				Counter("frames_total", "Frames.", func(n *uint64) float64 { return float64(*n) }),
			admin.NewFamily("test_lag_events", "Lag.", "consumer", prometheus.GaugeValue, func(send func(string, float64)) {
				send("feed", 3)
				send("fix", 4)
			}),
		),
		Ready: []admin.Check{
			{Name: "good", Err: func() error { return nil }},
			{Name: "bad", Err: func() error { return errors.New("no") }},
		},
	})
	gatewaytest.Do(t, g.BaseAddr(), "GET", "/api/v1/market/depth?symbol=SLUSD/USDC", "")
	gatewaytest.Do(t, g.BaseAddr(), "GET", "/api/v1/market/depth?symbol=SLUSD/USDC", "")
	gatewaytest.Do(t, g.APIAddr(), "GET", "/api/v1/market/depth?symbol=x", "")
	gatewaytest.Do(t, g.BaseAddr(), "GET", "/some/strange/path", "")
	gatewaytest.Do(t, g.BaseAddr(), "DELETE", "/", "")
	gatewaytest.Exchange(t, g.BaseAddr(), "nonsense\r\n\r\n")

	resp, err := http.Get("http://" + a.Addr().String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	defer http.DefaultClient.CloseIdleConnections()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	lines := make(map[string]bool)
	for line := range strings.Lines(string(text)) {
		lines[strings.TrimSpace(line)] = true
	}
	for _, want := range []string{
		"test_fill_commands 1.5", "# TYPE test_fill_commands gauge", "test_frames_total 6", "# TYPE test_frames_total counter",
		`test_lag_events{consumer="feed"} 3`, `test_lag_events{consumer="fix"} 4`,
		"blockdesk_ready 0", `blockdesk_readiness_check{check="good"} 1`, `blockdesk_readiness_check{check="bad"} 0`,
		`blockdesk_http_requests_total{route="/api/v1/market/depth",status="200",surface="base"} 2`,
		`blockdesk_http_requests_total{route="/api/v1/market/depth",status="400",surface="api"} 1`,
		`blockdesk_http_requests_total{route="unknown",status="404",surface="base"} 1`,
		`blockdesk_http_requests_total{route="unknown",status="405",surface="base"} 1`,
		`blockdesk_http_unreadable_requests_total{status="400"} 1`,
		`blockdesk_http_request_seconds_count{route="/api/v1/market/depth",surface="base"} 2`,
	} {
		if !lines[want] {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	if strings.Contains(string(text), "blockdesk_desk_") {
		t.Error("a metric without a source")
	}
	if n := strings.Count(string(text), "blockdesk_http_requests_total{"); n != 4 {
		t.Errorf("%d series of requests: kinds without a request are left out", n)
	}
	if strings.Contains(string(text), "strange") {
		t.Error("a client's path became a label")
	}
}

// serveMetrics runs an admin address until the test ends.
func serveMetrics(t *testing.T, o admin.Options) *admin.Server {
	t.Helper()
	o.Addr, o.ShutdownTimeout = "127.0.0.1:0", time.Second
	a, err := admin.New(o)
	if err != nil {
		t.Fatal(err)
	}
	runtest.Start(t, a.Run)
	return a
}
