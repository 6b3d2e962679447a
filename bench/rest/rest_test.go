package rest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"blockdesk/bench"
	"blockdesk/bench/server"
)

func TestWrkResult(t *testing.T) {
	r, err := parseWrk("Running 1s test\n  64 connections\n" +
		`RESULT {"requests":7,"bytes":900,"micros":1000500,"connect":1,"read":2,"write":3,"timeout":4,"over399":5,"statuses":{"200":4,"429":3}}` + "\n")
	if err != nil {
		t.Fatal(err)
	}
	if r.Requests != 7 || r.broken() != 10 || r.Over399 != 5 || r.Statuses["429"] != 3 || r.elapsed() != 1000500*time.Microsecond {
		t.Errorf("%+v", r)
	}
	for _, bad := range []string{"", "unable to connect", "RESULT {"} {
		if _, err := parseWrk(bad); err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestAnswersOfMetrics(t *testing.T) {
	admin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`# TYPE blockdesk_http_requests_total counter
blockdesk_http_requests_total{route="/a",status="200",surface="base"} 20
blockdesk_http_requests_total{route="/a",status="304",surface="api"} 3
blockdesk_http_requests_total{route="/a",status="429",surface="base"} 1.5e+06
blockdesk_http_requests_total{route="/b",status="429",surface="base"} 1
other_total{route="/a",status="200"} 9
`))
	}))
	defer admin.Close()
	got, err := answersOf(admin.URL)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got["/a"] != (answers{23, 1_500_023}) || got["/b"] != (answers{0, 1}) {
		t.Errorf("%+v", got)
	}
}

// TestFullSpeedIsJudged: one request too many, one too few, another status, a
// broken connection and grown memory each break a goal.
func TestFullSpeedIsJudged(t *testing.T) {
	const ran = 10 * time.Second
	sound := func() (w *wrkResult, after map[string]answers, memory []int64) {
		w = &wrkResult{Requests: 1000, Micros: ran.Microseconds(), Statuses: map[string]int64{"200": 25, "304": 20, "429": 955}}
		return w, map[string]answers{server.DepthTarget: {let: 130}, server.TicketsTarget: {let: 1}, server.QuoteTarget: {let: 115}},
			[]int64{50e6, 80e6, 100e6, 100e6, 101e6, 102e6, 101e6, 101e6}
	}
	before := map[string]answers{server.DepthTarget: {let: 101}, server.QuoteTarget: {let: 100}}
	for name, spoil := range map[string]func(*wrkResult, map[string]answers, []int64){
		"":                func(*wrkResult, map[string]answers, []int64) {},
		"a read more":     func(_ *wrkResult, a map[string]answers, _ []int64) { a[server.TicketsTarget] = answers{let: 2} },
		"two reads fewer": func(_ *wrkResult, a map[string]answers, _ []int64) { a[server.DepthTarget] = answers{let: 128} },
		"a quote more":    func(_ *wrkResult, a map[string]answers, _ []int64) { a[server.QuoteTarget] = answers{let: 116} },
		"a 500":           func(w *wrkResult, _ map[string]answers, _ []int64) { w.Statuses["500"], w.Statuses["429"] = 1, 954 },
		"a broken one":    func(w *wrkResult, _ map[string]answers, _ []int64) { w.Read = 1 },
		"memory":          func(_ *wrkResult, _ map[string]answers, m []int64) { m[len(m)-1] = 130e6 },
	} {
		w, after, memory := sound()
		spoil(w, after, memory)
		b := &restBench{o: Benchmark{Flood: int(ran / time.Second)}, r: bench.NewReport("x")}
		b.judge(w, before, after, ran, memory)
		missed := 0
		for _, q := range b.r.Ratios {
			if !q.Met() {
				missed++
			}
		}
		if want := min(len(name), 1); missed != want {
			t.Errorf("%q: %d goals missed, want %d: %+v", name, missed, want, b.r.Ratios)
		}
	}
}

func TestQuieterHalfCounts(t *testing.T) {
	s := &restSide{rounds: []restFigure{{90, 0.9}, {10, 0.1}, {30, 0.3}, {80, 0.8}, {20, 0.2}}}
	if perOp, others := s.perOp(); perOp != 20 || others != 0.3 {
		t.Errorf("%v ns with %v cores busy", perOp, others)
	}
	s = &restSide{rounds: []restFigure{{7, 0.5}}}
	if perOp, others := s.perOp(); perOp != 7 || others != 0.5 {
		t.Errorf("one round: %v ns with %v cores busy", perOp, others)
	}
}
