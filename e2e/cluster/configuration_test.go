package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"blockdesk/bench/server"
	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
)

// TestRollingConfiguration changes a group's configuration a node at a time: while
// they differ each node logs the other, and the status says what differs.
func TestRollingConfiguration(t *testing.T) {
	t.Parallel()
	exe := programtest.Binary(t)
	dir := t.TempDir()
	g, err := server.StartGroup(context.Background(), exe, dir, programtest.Config(t, "risk: {band_bps: 5000}\nlog: {level: warn}\n"), 2, roomyTimeoutMS*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Kill(); err != nil {
			t.Error(err)
		}
	})
	reports := func(count string) {
		t.Helper()
		for i, s := range g {
			await.True(t, fmt.Sprintf("n%d to report %s", i+1, count), func() bool {
				return strings.Contains(programtest.Answered(s.Addresses.Admin+"/metrics"), "blockdesk_cluster_config_differs "+count+"\n")
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
	reports("0")
	change(0)
	reports("1")
	status := func() string {
		out, _ := programtest.Run(t, "", nil, "cluster", "status", "--admin", g[0].Addresses.Admin) // it fails where the group is not well
		return out
	}
	await.True(t, "a status of both", func() bool {
		text := status()
		return strings.Contains(text, "configured differently from n2: n1 (risk)\n") || strings.Contains(text, "configured differently from n1: n2 (risk)\n")
	})
	await.True(t, "n2 to say it in its log", func() bool { return strings.Contains(g[1].Log(), `nodes="n1 (risk)"`) })
	change(1)
	reports("0")
	if text := status(); strings.Contains(text, "configured differently") {
		t.Errorf("a status of nodes that are alike:\n%s", text)
	}
}
