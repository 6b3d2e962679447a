package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"blockdesk/httpgw/admin"
	"blockdesk/internal/atomicfile"
	"blockdesk/service"
	"blockdesk/service/config"
	"blockdesk/service/operator"
	"blockdesk/service/servicetest"
)

// TestConfigWatch: a node logs which others are configured differently, says so once
// a change, knows a silent one as it was, and counts no node of an older program and
// none that has left.
func TestConfigWatch(t *testing.T) {
	t.Parallel()
	published := map[string]config.Fingerprint{}
	left, silent := "", ""
	urls := map[string]string{}
	for _, id := range []string{"a", "b", "c", "old"} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if id == silent || id == left {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			status := admin.ClusterStatus{OK: true, ID: id, ConfigFingerprint: published[id].Whole, ConfigParts: published[id].Parts}
			for member, url := range urls {
				if member != left {
					status.Members = append(status.Members, admin.ClusterMember{ID: member, AdminURL: url})
				}
			}
			if err := json.NewEncoder(w).Encode(status); err != nil {
				t.Error(err)
			}
		}))
		t.Cleanup(s.Close)
		urls[id] = s.URL
	}
	cfg := config.Default()
	cfg.Cluster.ID = "a"
	cfg.Peers = []config.Peer{{ID: "a", Admin: urls["a"] + "/"}, {ID: "b", Admin: urls["b"]}} // the others are named by these
	var log bytes.Buffer
	w := newConfigWatch(&cfg, nil, slog.New(slog.NewTextHandler(&log, nil)))
	other := cfg
	other.Risk.BandBps++
	alike, differs := w.fingerprint(), config.FingerprintOf[any](&other, nil)
	published["a"], published["b"], published["c"] = alike, differs, alike
	for i, step := range []struct {
		change func()
		apart  string
		lines  int // published so far
	}{
		{func() {}, "b (risk)", 1},
		{func() {}, "b (risk)", 1},
		{func() { silent = "b" }, "b (risk)", 1},
		{func() { silent, published["c"] = "", differs }, "b (risk), c (risk)", 2},
		{func() { left, published["c"] = "b", alike }, "", 3},
		{func() { left = "" }, "b (risk)", 4},
	} {
		step.change()
		w.compare(t.Context())
		if got := operator.DifferencesText(w.differing()); got != step.apart || strings.Count(log.String(), "\n") != step.lines {
			t.Errorf("step %d: %q, want %q; said:\n%s", i, got, step.apart, &log)
		}
	}
	if !strings.Contains(log.String(), `nodes="b (risk), c (risk)"`) || !strings.Contains(log.String(), "level=INFO") {
		t.Errorf("said:\n%s", &log)
	}
}

// TestConfigWatchReadsParticipants: the fingerprint follows the participants file, and
// keeps the last valid one after the file has become invalid.
func TestConfigWatchReadsParticipants(t *testing.T) {
	t.Parallel()
	cfg, err := servicetest.Load(t, fmt.Sprintf("fix: {participants_file: %q}\n", servicetest.Participants(t)))
	if err != nil {
		t.Fatal(err)
	}
	list, err := service.LoadParticipants(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	w := newConfigWatch(&cfg, list, slog.New(slog.DiscardHandler))
	was := w.fingerprint()
	text, err := os.ReadFile(cfg.FIX.ParticipantsFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text  string
		apart bool
	}{
		{string(text) + "  - nonsense\n", false},
		{strings.Replace(string(text), "number: 2", "number: 22", 1), true},
		{"", true}, // refused: that of before stays
		{string(text), false},
	} {
		if err := atomicfile.Write(cfg.FIX.ParticipantsFile, []byte(c.text)); err != nil {
			t.Fatal(err)
		}
		w.readParticipants()
		if apart := len(config.DifferentParts(was.Parts, w.fingerprint().Parts)) > 0; apart != c.apart {
			t.Errorf("differs: %t, with\n%s", apart, c.text)
		}
	}
}
