package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"blockdesk/service/config"
)

func TestJudgements(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	at := func(behind time.Duration) []nodeState { return []nodeState{{}, {time: now.Add(-behind)}} }
	one := "1"
	for name, c := range map[string]struct {
		got  Finding
		want State
		text string
	}{
		"a good clock":         {clock(clockState{synchronised: true, maxError: time.Millisecond}), OK, "1ms"},
		"a vague clock":        {clock(clockState{synchronised: true, maxError: time.Second}), Warning, "1s"},
		"a free-running clock": {clock(clockState{}), Warning, "not synchronised"},
		"an unknown clock":     {clock(clockState{err: errors.New("why")}), Skipped, "why"},
		"enough space":         {judgeSpace(50, 10, 20), OK, "50 %"},
		"little space":         {judgeSpace(19, 10, 20), Warning, "old market data is deleted"},
		"too little space":     {judgeSpace(9, 10, 20), Problem, "only cancels"},
		"a fast disk":          {judgeSync([]time.Duration{1000, 2000, 3000}, "sync"), OK, "median 2µs, worst 3µs"},
		"a slow disk":          {judgeSync([]time.Duration{1, slowSync + 1, slowSync + 2}, "sync"), Warning, "10ms"},
		"a disk that stalls":   {judgeSync([]time.Duration{1, 2, stalledSync + 1}, "interval"), Warning, "200ms"},
		"enough files":         {judgeFiles(100, 100), OK, "100"},
		"few files":            {judgeFiles(99, 100), Warning, "99"},
		"the chain's time":     {chainClock(at(clockApart), now), OK, "30s"},
		"another time":         {chainClock(at(-clockApart-time.Second), now), Warning, "31s"},
		"a wrong time":         {chainClock(at(time.Hour), now), Problem, "1h"},
		"no time":              {chainClock(nil, now), Skipped, "no node"},
		"fresh prices":         {judgePrices([]price{{Pair: "A/B", Price: &one}}), OK, "1 prices"},
		"an old price":         {judgePrices([]price{{Pair: "A/B", Price: &one, Stale: true}, {Rail: "SOL"}}), Warning, "A/B, SOL"},
	} {
		if c.got.State != c.want || !strings.Contains(c.got.Text, c.text) {
			t.Errorf("%s: %+v, want %s with %q", name, c.got, c.want, c.text)
		}
		if bad := c.got.State == Warning || c.got.State == Problem; bad != (c.got.Do != "") {
			t.Errorf("%s: %+v: what to do?", name, c.got)
		}
	}
}

func TestJudgeNodes(t *testing.T) {
	t.Parallel()
	list := judgeNodes([]nodeState{
		{name: "a", slot: 1000}, {name: "b", slot: 1000 - behindSlots - 1}, {name: "c", slot: 1000, took: slowNode + 1}, {name: "d", err: errors.New("down")},
	})
	for i, want := range []State{OK, Warning, Warning, Warning} {
		if list[i].State != want {
			t.Errorf("%+v, want %s", list[i], want)
		}
	}
	if alone := judgeNodes([]nodeState{{err: errors.New("down")}}); alone[0].State != Problem {
		t.Errorf("the only node is down: %+v", alone)
	}
	if name := nodeName("https://user:secret@host.example:1/key?api=secret"); name != "host.example:1" {
		t.Errorf("a node is called %q", name)
	}
	if strings.Contains(nodeName("::secret"), "secret") {
		t.Error("an unreadable URL is shown")
	}
}

// TestExamine: an empty machine is examined without a service, and one with a service that
// is not ready says why.
func TestExamine(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.DataDir = t.TempDir()
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	defer node.Close()
	cfg.Chain.RPCURLs = node.URL
	admin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte(`{"ok":false,"checks":[{"name":"journal","ok":false,"error":"read-only"},{"name":"feed","ok":true}]}`))
	}))
	defer admin.Close()
	o := Options{Config: &cfg, Check: func(*config.Config) error { return errors.New("refused") }, Timeout: 5 * time.Second}
	by := func() map[string]Finding {
		found := map[string]Finding{}
		for _, f := range Examine(context.Background(), o) {
			found[f.Check] = f
		}
		return found
	}
	found := by()
	if found["configuration"].State != Problem || found["configuration"].Text != "refused" || found["service"].State != Skipped || found["disk sync"].State == Problem {
		t.Errorf("%+v", found)
	}
	if n := found["node "+strings.TrimPrefix(node.URL, "http://")]; n.State != Problem {
		t.Errorf("a node that makes no sense: %+v", n)
	}
	addresses, err := json.Marshal(map[string]string{"admin_url": admin.URL})
	if err == nil {
		err = os.WriteFile(filepath.Join(cfg.DataDir, "addresses.json"), addresses, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if s := by()["service"]; s.State != Problem || !strings.Contains(s.Text, "journal: read-only") {
		t.Errorf("a service that is not ready: %+v", s)
	}
	if left, err := filepath.Glob(filepath.Join(cfg.DataDir, ".doctor-*")); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
}

// TestAsGiven: what is given beside a service that runs is no problem of the service.
func TestAsGiven(t *testing.T) {
	t.Parallel()
	for service, want := range map[State]State{OK: Warning, Warning: Warning, Skipped: Problem, Problem: Problem} {
		if got := asGiven([]Finding{{State: Problem}, {State: OK}}, service); got[0].State != want || got[1].State != OK {
			t.Errorf("%s: %+v", service, got)
		}
	}
}

func TestWorst(t *testing.T) {
	t.Parallel()
	for want, list := range map[State][]Finding{OK: {{State: Skipped}, {State: OK}}, Warning: {{State: Warning}, {State: OK}}, Problem: {{State: Problem}, {State: Warning}}} {
		if got := Worst(list); got != want {
			t.Errorf("%+v: %s", list, got)
		}
	}
}
