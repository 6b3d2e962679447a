package service

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"blockdesk/engine"
	"blockdesk/engine/event"
	"blockdesk/market"
	"blockdesk/service/config"
	"blockdesk/service/demo"
	"blockdesk/service/servicetest"
)

// The desk's key is taken from its file, where that is kept as it must be and the
// key is the one that is configured. No error has anything of the key.
func TestOpenSigner(t *testing.T) {
	dir := t.TempDir()
	if err := demo.WriteKeys(dir, 1); err != nil {
		t.Fatal(err)
	}
	open := filepath.Join(dir, "open.json")
	text, err := os.ReadFile(demo.KeyFile(dir, demo.Desk))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(open, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o640); err != nil {
		t.Fatal(err)
	}
	secret, _, _ := strings.Cut(strings.TrimPrefix(string(text), "["), "]")
	for name, c := range map[string]struct {
		settle config.Settle
		want   string // empty: it is opened
	}{
		"the key":          {config.Settle{KeyFile: demo.KeyFile(dir, demo.Desk)}, ""},
		"the key by name":  {config.Settle{KeyFile: demo.KeyFile(dir, demo.Desk), Desk: demo.Address(demo.Desk)}, ""},
		"another key":      {config.Settle{KeyFile: demo.KeyFile(dir, demo.Treasury), Desk: demo.Address(demo.Desk)}, "settle.desk"},
		"no file":          {config.Settle{KeyFile: filepath.Join(dir, "none.json")}, "settle.key_file"},
		"others may read":  {config.Settle{KeyFile: open}, "settle.key_file"},
		"no signer there":  {config.Settle{SignerSocket: filepath.Join(dir, "s")}, "settle.signer_socket"},
		"a signer by name": {config.Settle{SignerSocket: filepath.Join(dir, "s"), Desk: demo.Address(demo.Desk)}, ""},
	} {
		signer, err := openSigner(&c.settle)
		switch {
		case c.want == "" && (err != nil || signer.Address() == [32]byte{}):
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("%s: the error has the key", name)
		}
	}
}

// TestLostSince: after a reconciliation payments are searched from the end of the journal
// on, if it has one.
func TestLostSince(t *testing.T) {
	state := engine.NewState(engine.StateOptions{})
	for _, c := range []struct {
		reconcile bool
		seq       uint64
		want      time.Time
	}{{reconcile: true}, {reconcile: true, seq: 1, want: time.Unix(0, 7)}, {seq: 2}} {
		if c.seq > 0 {
			state.Apply(&engine.Command{Kind: engine.Tick, Seq: c.seq, At: 7}, event.NewGrowingSink(4))
		}
		if got := lostSince(state, c.reconcile); !got.Equal(c.want) {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestDustOptions: dust is in atoms of its rail.
func TestDustOptions(t *testing.T) {
	for text, want := range map[string][2]market.Amount{
		"": {1_000_000, 5_000_000},
		"settle: {dust_usdc: '0', dust_sol: '0'}":       {0, 0},
		"settle: {dust_usdc: '1.0', dust_sol: '0.010'}": {1_000_000, 10_000_000},
	} {
		cfg, err := servicetest.Load(t, text)
		if err != nil {
			t.Fatal(err)
		}
		o, err := settleOptions(&cfg, nil)
		if got := o.Payments.Dust; err != nil || got[market.RailUSDC] != want[0] || got[market.RailSOL] != want[1] {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

// Only mode interval may lose a package.
func TestBuildsAreKeptBeforeTheyAreHandedOut(t *testing.T) {
	for mode, want := range map[string]bool{"sync": true, "quorum": true, "interval": false} {
		cfg := config.Default()
		cfg.Durability.Mode = mode
		if o, err := settleOptions(&cfg, nil); err != nil || o.SyncBuilds != want {
			t.Errorf("%s: %v, %v", mode, o.SyncBuilds, err)
		}
	}
}
