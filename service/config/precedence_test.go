package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"blockdesk/engine/book"
	"blockdesk/fixgw/participants"
	"blockdesk/service/config"
	"blockdesk/service/servicetest"
)

// TestFingerprintOfParticipants: every change of a participant is reported, and how the file
// is written, and where it is, is not.
func TestFingerprintOfParticipants(t *testing.T) {
	t.Parallel()
	parse := func(text string) []participants.Participant {
		t.Helper()
		list, err := participants.Parse([]byte(text))
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
		t.Error("the same participants, written otherwise, are reported as different")
	}
	for _, change := range []func(p *participants.Participant){
		func(p *participants.Participant) { p.Name = "B" },
		func(p *participants.Participant) { p.Number = 2 },
		func(p *participants.Participant) { p.CompIDs = []string{"A", "A2"} },
		func(p *participants.Participant) { p.PasswordHash += "x" },
		func(p *participants.Participant) { p.Ed25519 = "key" },
		func(p *participants.Participant) { p.Wallet = "wallet" },
		func(p *participants.Participant) { p.STP = book.STPCancelBoth },
		func(p *participants.Participant) { p.Limits = []participants.Limit{{Symbol: "*", BandBps: 1}} },
	} {
		list := parse(one)
		change(&list[0])
		if apart := config.DifferentParts(was.Parts, config.FingerprintOf(&cfg, list).Parts); !slices.Equal(apart, []string{config.ParticipantsPart}) {
			t.Errorf("%+v: %v", list[0], apart)
		}
	}
	if apart := config.DifferentParts(was.Parts, config.FingerprintOf[any](&cfg, nil).Parts); !slices.Equal(apart, []string{config.ParticipantsPart}) {
		t.Errorf("without participants: %v", apart)
	}
}

// Flags win over the environment, the environment over the file, the file over
// the defaults.
func TestConfigPrecedence(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, []byte("listen: {fix: 127.0.0.1:1, ws: 127.0.0.1:1, api: 127.0.0.1:1}\nfix: {comp_id: FILE}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, _, err := config.Load(file,
		[]string{"HOME=/nowhere", "BLOCKDESK_LISTEN_FIX=127.0.0.1:2", "BLOCKDESK_LISTEN_WS=127.0.0.1:2", "BLOCKDESK_SEED=1"},
		[]string{"listen.fix=127.0.0.1:3", "listen.fix=127.0.0.1:4"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{
		{cfg.Listen.FIX, "127.0.0.1:4"},
		{cfg.Listen.WS, "127.0.0.1:2"},
		{cfg.Listen.API, "127.0.0.1:1"},
		{cfg.Listen.Base, "127.0.0.1:8080"},
		{cfg.FIX.CompID, "FILE"},
		{cfg.Durability.Mode, "sync"},
	} {
		if c[0] != c[1] {
			t.Errorf("%q, want %q", c[0], c[1])
		}
	}
}
