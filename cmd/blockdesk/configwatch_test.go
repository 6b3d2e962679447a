package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"blockdesk/bench/server"
	"blockdesk/engine/book"
	"blockdesk/fixgw"
	"blockdesk/httpgw/admin"
	"blockdesk/internal/await"
	"blockdesk/service/config"
)

// TestConfigWatch: a node tells which others are configured differently, says so once
// a change, knows a silent one as it was, and counts no node of an older program and
// none that has left.
func TestConfigWatch(t *testing.T) {
	t.Parallel()
	said := map[string]config.Fingerprint{}
	left, silent := "", ""
	urls := map[string]string{}
	for _, id := range []string{"a", "b", "c", "old"} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if id == silent || id == left {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			status := admin.ClusterStatus{OK: true, ID: id, ConfigFingerprint: said[id].Whole, ConfigParts: said[id].Parts}
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
	said["a"], said["b"], said["c"] = alike, differs, alike
	for i, step := range []struct {
		change func()
		apart  string
		lines  int // said so far
	}{
		{func() {}, "b (risk)", 1},
		{func() {}, "b (risk)", 1},
		{func() { silent = "b" }, "b (risk)", 1},
		{func() { silent, said["c"] = "", differs }, "b (risk), c (risk)", 2},
		{func() { left, said["c"] = "b", alike }, "", 3},
		{func() { left = "" }, "b (risk)", 4},
	} {
		step.change()
		w.look(t.Context())
		if got := apartText(w.differing()); got != step.apart || strings.Count(log.String(), "\n") != step.lines {
			t.Errorf("step %d: %q, want %q; said:\n%s", i, got, step.apart, &log)
		}
	}
	if !strings.Contains(log.String(), `nodes="b (risk), c (risk)"`) || !strings.Contains(log.String(), "level=INFO") {
		t.Errorf("said:\n%s", &log)
	}
}

// TestConfigWatchReadsParticipants: the fingerprint follows the participants file, and
// keeps to what was good where that has gone bad.
func TestConfigWatchReadsParticipants(t *testing.T) {
	t.Parallel()
	cfg, err := loadText(t, testConfig(t, ""))
	if err != nil {
		t.Fatal(err)
	}
	list, err := loadParticipants(&cfg)
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
		if err := replaceFile(cfg.FIX.ParticipantsFile, []byte(c.text)); err != nil {
			t.Fatal(err)
		}
		w.readParticipants()
		if apart := len(config.PartsApart(was.Parts, w.fingerprint().Parts)) > 0; apart != c.apart {
			t.Errorf("differs: %t, with\n%s", apart, c.text)
		}
	}
}

// TestGroupShowsDifferences: what a view says of nodes that are configured
// differently, which makes the group no worse.
func TestGroupShowsDifferences(t *testing.T) {
	t.Parallel()
	answers := playGroup(3, playedNode{id: "a", role: "leader", leader: "a"}, playedNode{id: "b", role: "standby", leader: "a"}, playedNode{id: "c", silent: true})
	for i, parts := range []map[string]string{{"risk": "1", "urls": "1"}, {"risk": "2", "urls": "1", "new": "1"}} {
		answers[i].status.ConfigFingerprint, answers[i].status.ConfigParts = fmt.Sprint(i), parts
	}
	shown := func() (*groupView, string) {
		var out strings.Builder
		v := judge(answers)
		if err := v.show(&out); err != nil {
			t.Fatal(err)
		}
		return v, out.String()
	}
	v, text := shown()
	if !strings.Contains(text, "\nconfigured differently from a: b (new, risk)\n\n") || v.ConfigOf != "a" || v.State != groupAtRisk {
		t.Errorf("%+v\n%s", v, text)
	}
	answers[0].status.ConfigFingerprint = "" // of an older program
	if v, text := shown(); len(v.ConfigDiffers) != 0 || strings.Contains(text, "configured") {
		t.Errorf("%+v\n%s", v, text)
	}
}

// TestRollingConfiguration changes a group's configuration a node at a time: while
// they differ each node tells of the other, and the status what differs.
func TestRollingConfiguration(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	g, err := server.StartGroup(context.Background(), exe, dir, testConfig(t, "risk: {band_bps: 5000}\nlog: {level: warn}\n"), 2, roomyTimeoutMS*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Kill(); err != nil {
			t.Error(err)
		}
	})
	tells := func(count string) {
		t.Helper()
		for i, s := range g {
			await.True(t, fmt.Sprintf("n%d to report %s", i+1, count), func() bool {
				return strings.Contains(answered(s.Addresses.Admin+"/metrics"), "blockdesk_cluster_config_differs "+count+"\n")
			})
		}
	}
	change := func(i int) {
		t.Helper()
		file := filepath.Join(dir, fmt.Sprintf("n%d", i+1), "config.yaml")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		changed := strings.Replace(string(text), "band_bps: 5000", "band_bps: 4000", 1)
		if err := errors.Join(os.WriteFile(file, []byte(changed), 0o600), g[i].Stop(), g[i].Restart(context.Background())); err != nil {
			t.Fatal(err)
		}
	}
	tells("0")
	change(0)
	tells("1")
	status := func() string {
		var out, errOut bytes.Buffer
		execute(t.Context(), []string{"cluster", "status", "--admin", g[0].Addresses.Admin}, &out, &errOut)
		return out.String()
	}
	await.True(t, "a status of both", func() bool {
		text := status()
		return strings.Contains(text, "configured differently from n2: n1 (risk)\n") || strings.Contains(text, "configured differently from n1: n2 (risk)\n")
	})
	await.True(t, "n2 to say it in its log", func() bool { return strings.Contains(g[1].Log(), `nodes="n1 (risk)"`) })
	change(1)
	tells("0")
	if text := status(); strings.Contains(text, "configured differently") {
		t.Errorf("a status of nodes that are alike:\n%s", text)
	}
}

// TestFingerprintOfParticipants: whatever is changed of one is told, and how the file
// is written, and where it is, is not.
func TestFingerprintOfParticipants(t *testing.T) {
	t.Parallel()
	parse := func(text string) []fixgw.Participant {
		t.Helper()
		list, err := fixgw.ParseParticipants([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	hash, err := testHash()
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	one := fmt.Sprintf("participants:\n  - {name: A, number: 1, comp_ids: [A], password_hash: %q}\n", hash)
	was := config.FingerprintOf(&cfg, parse(one))
	if got := config.FingerprintOf(&cfg, parse("# a word\n"+strings.Replace(one, "number: 1", "stp: cancel_newest, number: 1", 1))); got.Whole != was.Whole {
		t.Error("the same participants, written otherwise, are told apart")
	}
	for _, change := range []func(p *fixgw.Participant){
		func(p *fixgw.Participant) { p.Name = "B" },
		func(p *fixgw.Participant) { p.Number = 2 },
		func(p *fixgw.Participant) { p.CompIDs = []string{"A", "A2"} },
		func(p *fixgw.Participant) { p.PasswordHash += "x" },
		func(p *fixgw.Participant) { p.Ed25519 = "key" },
		func(p *fixgw.Participant) { p.Wallet = "wallet" },
		func(p *fixgw.Participant) { p.STP = book.STPCancelBoth },
		func(p *fixgw.Participant) { p.Limits = []fixgw.Limit{{Symbol: "*", BandBps: 1}} },
	} {
		list := parse(one)
		change(&list[0])
		if apart := config.PartsApart(was.Parts, config.FingerprintOf(&cfg, list).Parts); !slices.Equal(apart, []string{config.ParticipantsPart}) {
			t.Errorf("%+v: %v", list[0], apart)
		}
	}
	if apart := config.PartsApart(was.Parts, config.FingerprintOf[any](&cfg, nil).Parts); !slices.Equal(apart, []string{config.ParticipantsPart}) {
		t.Errorf("without participants: %v", apart)
	}
}
