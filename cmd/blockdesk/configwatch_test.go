package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"blockdesk/bench/server"
	"blockdesk/e2e/programtest"
	"blockdesk/engine/book"
	"blockdesk/fixgw"
	"blockdesk/internal/await"
	"blockdesk/service/config"
	"blockdesk/service/servicetest"
)

// TestRollingConfiguration changes a group's configuration a node at a time: while
// they differ each node tells of the other, and the status what differs.
func TestRollingConfiguration(t *testing.T) {
	t.Parallel()
	exe := programtest.Binary(t)
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
		out, _ := run(t, "", nil, "cluster", "status", "--admin", g[0].Addresses.Admin) // it fails where the group is not well
		return out
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
	hash, err := servicetest.PasswordHash()
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
