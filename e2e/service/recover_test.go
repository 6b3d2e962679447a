package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"blockdesk/bench/server"
	"blockdesk/e2e/fixtest"
	"blockdesk/e2e/programtest"
	"blockdesk/fixgw/fixclient"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
)

// tradeOnce lets the two firms trade on fresh sessions, until each has some hundred
// reports.
func tradeOnce(t *testing.T, s *server.Server, seed uint64) (a, b *fixtest.Trader) {
	t.Helper()
	a, b = fixtest.NewTrader(programtest.FirmA, seed), fixtest.NewTrader(programtest.FirmB, seed+1)
	fixtest.ConnectAll(t, s.Addresses.FIX, a, b)
	fixtest.TradeUntil(t, "reports", fixtest.Reported(300, a, b), a, b)
	return a, b
}

// tradeUntilPruned lets the two firms trade until the journal has lost its beginning,
// and stops the service.
func tradeUntilPruned(t *testing.T, s *server.Server) (a, b *fixtest.Trader) {
	t.Helper()
	a, b = fixtest.NewTrader(programtest.FirmA, 1), fixtest.NewTrader(programtest.FirmB, 2)
	fixtest.ConnectAll(t, s.Addresses.FIX, a, b)
	snapshots := func() []string { // by their seq
		return programtest.Must(filepath.Glob(filepath.Join(s.DataDir(), "journal", "snapshots", "*.snap")))
	}
	// The gateway's cursor is synced once a second, and nothing is pruned before. State that is
	// pruned has to be more than what was there before the trading.
	fixtest.TradeUntil(t, "reports", fixtest.Reported(300, a, b), a, b)
	last := ""
	fixtest.TradeUntil(t, "a pruned journal", func() bool {
		list := snapshots()
		if len(list) > 0 && last == "" {
			last = list[len(list)-1]
		}
		return len(list) > 0 && list[0] > last
	}, a, b)
	a.Disconnect()
	b.Disconnect()
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	return a, b
}

// serveArgs are the arguments that s is started with.
func serveArgs(s *server.Server, more ...string) []string {
	config := filepath.Join(filepath.Dir(s.DataDir()), "config.yaml")
	return append([]string{"serve", "--config", config, "--data", s.DataDir()}, append(programtest.FreePorts, more...)...)
}

// reconciled starts the service once with --reconcile, and stops it.
func reconciled(t *testing.T, s *server.Server) {
	t.Helper()
	exe := programtest.Binary(t)
	cmd := exec.Command(exe, serveArgs(s, "--reconcile")...)
	var out strings.Builder
	cmd.Stderr = &out
	if err := os.Remove(filepath.Join(s.DataDir(), "addresses.json")); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	await.True(t, "addresses.json", func() bool {
		_, err := os.Stat(filepath.Join(s.DataDir(), "addresses.json"))
		return err == nil
	})
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
}

// After the FIX store or the journal was lost or restored alone, the service
// says so and how to go on; then the two agree and orders are answered.
func TestStoreAndJournalDoNotFit(t *testing.T) {
	t.Parallel()
	for name, part := range map[string]struct {
		folder string
		early  bool // what is put back is of before the trading, else nothing is
		within string
	}{
		"the FIX store is lost":     {folder: "fix", within: "FIX store was lost or is older"},
		"the FIX store is older":    {folder: "fix", early: true, within: "FIX store was lost or is older"},
		"the desk's store is lost":  {folder: "desk", within: "desk's store was lost or is older"},
		"the desk's store is older": {folder: "desk", early: true, within: "desk's store was lost or is older"},
		"the journal is lost":       {folder: "journal", within: "the journal ends at seq 0"},
		"the journal is of earlier": {folder: "journal", early: true, within: "the journal ends at seq"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := programtest.Start(t, programtest.Config(t, "journal: {snapshot_every: 50, keep_snapshots: 1}\n"))
			if err := s.Stop(); err != nil {
				t.Fatal(err)
			}
			path, copied := filepath.Join(s.DataDir(), part.folder), t.TempDir()+"/kept"
			if part.early {
				if err := os.CopyFS(copied, os.DirFS(path)); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Restart(context.Background()); err != nil {
				t.Fatal(err)
			}
			a, b := tradeUntilPruned(t, s)
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
			if part.early {
				if err := os.Rename(copied, path); err != nil {
					t.Fatal(err)
				}
			}
			out, err := programtest.Run(t, "", nil, serveArgs(s)...)
			if err == nil || !strings.Contains(out, part.within) || !strings.Contains(out, "--reconcile") {
				t.Fatalf("it starts, or does not say why: %v\n%s", err, out)
			}
			reconciled(t, s)
			if err := s.Restart(context.Background()); err != nil {
				t.Fatal(err)
			}
			if part.folder == "desk" { // no order was touched
				if err := errors.Join(a.Connect(s.Addresses.FIX), b.Connect(s.Addresses.FIX)); err != nil {
					t.Fatal(err)
				}
			} else {
				a, b = tradeOnce(t, s, 5)
			}
			fixtest.ResolveRound(t, a, b)
			checkBook(t, s, a, b)
			a.Disconnect()
			b.Disconnect()
		})
	}
}

// A journal of before the desk has nothing that a new desk's store could miss.
func TestNewDeskOnAnOldJournal(t *testing.T) {
	t.Parallel()
	s := programtest.Start(t, programtest.Config(t, "journal: {snapshot_every: 50, keep_snapshots: 1}\nrfq: {enabled: false}\n"))
	if r := programtest.Do(t, s.Addresses.Base+"/api/v1/rfq/levels", ""); r.StatusCode != 404 {
		t.Errorf("a desk that is not enabled answers %d", r.StatusCode)
	}
	programtest.CLIRefused(t, s, []string{"desk enabled"}, "ticket", "list")
	tradeUntilPruned(t, s)
	if err := os.RemoveAll(filepath.Join(s.DataDir(), "desk")); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(filepath.Dir(s.DataDir()), "config.yaml")
	if err := os.WriteFile(config, []byte(programtest.Config(t, programtest.DeskConfig)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Restart(context.Background()); err != nil {
		t.Fatal(err)
	}
	programtest.CLI(t, s, "ticket", "post", "--pair", programtest.Symbol, "--label", "A", "--tranches", "250")
}

// In mode interval the death of the process loses nothing that was reported, and a power
// failure (the files of what was not synced are lost) does. Later events have ids of their
// own: no ExecID says two things, no OrderID names two orders.
func TestIntervalCrashReusesNoID(t *testing.T) {
	t.Parallel()
	s := programtest.Start(t, programtest.Config(t, "durability: {mode: interval, interval_ms: 1000}\n"))
	reports, orders := map[string]string{}, map[string]string{}
	for round := range 4 {
		type restated struct{ exec, id, clOrdID, kind string }
		var got []restated
		var reported atomic.Int64 // len(got)
		client, err := fixclient.Dial(t.Context(), fixclient.Options{
			Addr: s.Addresses.FIX, SenderCompID: programtest.FirmA, TargetCompID: "BLOCKDESK", Username: programtest.FirmA, Password: programtest.Password,
			Timeout: runtest.HangTimeout,
		})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() {
			ended <- client.Run(context.Background(), func(m *fixclient.Message) error {
				if m.Type() == "8" {
					got = append(got, restated{string(m.Get(17)), string(m.Get(37)), string(m.Get(11)), string(m.Get(150))})
					reported.Add(1)
				}
				return nil
			})
		}()
		for i := range 2000 {
			body := fmt.Sprintf("11=%d-%d|55=%s|54=1|38=%d|40=2|44=1|59=3|60=%s|", round, i, programtest.Symbol, 1+i,
				time.Now().UTC().Format("20060102-15:04:05"))
			if err := client.Send("D", []byte(strings.ReplaceAll(body, "|", "\x01"))); err != nil {
				t.Fatal(err)
			}
		}
		await.True(t, "some reports", func() bool { return reported.Load() >= 200 }) // more are on their way
		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
		<-ended
		lost := round%2 == 1
		if lost {
			removeUnsynced(t, s)
		}
		for _, m := range got {
			content := m.clOrdID + " " + m.kind
			if was, ok := reports[m.exec]; ok && was != content {
				t.Fatalf("ExecID %s was of %s, now of %s", m.exec, was, content)
			}
			if was, ok := orders[m.id]; ok && was != m.clOrdID {
				t.Fatalf("OrderID %s was of %s, now of %s", m.id, was, m.clOrdID)
			}
			reports[m.exec], orders[m.id] = content, m.clOrdID
		}
		if err := s.Restart(context.Background()); err != nil {
			t.Fatal(err)
		}
		t.Logf("round %d: %d reports, %d orders", round, len(reports), len(orders))
		if !lost {
			last := got[len(got)-1]
			requireOrder(t, s, last.clOrdID)
		}
	}
}

// removeUnsynced removes what a power failure takes.
func removeUnsynced(t *testing.T, s *server.Server) {
	t.Helper()
	found := 0
	err := filepath.WalkDir(s.DataDir(), func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(filepath.Base(path), "unsynced-") {
			found++
			return os.Remove(path)
		}
		return err
	})
	if err != nil || found != 2 {
		t.Fatalf("%d files of frames that were not synced, want 2: %v", found, err)
	}
}

// requireOrder asks for the status of an order over FIX.
func requireOrder(t *testing.T, s *server.Server, clOrdID string) {
	t.Helper()
	client, err := fixclient.Dial(t.Context(), fixclient.Options{
		Addr: s.Addresses.FIX, SenderCompID: programtest.FirmA, TargetCompID: "BLOCKDESK", Username: programtest.FirmA, Password: programtest.Password,
		Timeout: runtest.HangTimeout,
	})
	if err != nil {
		t.Fatal(err)
	}
	answer := make(chan string, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- client.Run(context.Background(), func(m *fixclient.Message) error {
			if m.Type() == "8" && string(m.Get(150)) == "I" && string(m.Get(11)) == clOrdID {
				answer <- string(m.Get(39))
			}
			return nil
		})
	}()
	body := fmt.Sprintf("11=%s|55=%s|54=1|", clOrdID, programtest.Symbol)
	if err := client.Send("H", []byte(strings.ReplaceAll(body, "|", "\x01"))); err != nil {
		t.Fatal(err)
	}
	if status := await.Receive(t, "the status of "+clOrdID, answer); status == "8" {
		t.Fatalf("order %s, which was reported before the process died, is unknown", clOrdID)
	}
	if err := client.Logout(); err != nil {
		t.Fatal(err)
	}
	<-ended
}

// The limit of live orders may change from start to start.
func TestMaxOrdersChanges(t *testing.T) {
	t.Parallel()
	s := programtest.Start(t, programtest.Config(t, ""))
	for _, n := range []int{5, 1 << 20, 100} {
		a, b := tradeOnce(t, s, uint64(n))
		a.Disconnect()
		b.Disconnect()
		if n == 100 {
			if err := s.Kill(); err != nil {
				t.Fatal(err)
			}
		} else if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
		programtest.VerifyJournal(t, s)
		config := filepath.Join(filepath.Dir(s.DataDir()), "config.yaml")
		if err := os.WriteFile(config, []byte(programtest.Config(t, fmt.Sprintf("engine: {max_orders: %d}\n", n))), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := s.Restart(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
}

// More setup than the rings hold does not stand in its own way.
func TestSetupLargerThanTheRings(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString("engine: {ingress_size: 64, egress_size: 1024}\n")
	var symbols []string
	for i := range 500 {
		symbols = append(symbols, fmt.Sprintf("A%d/B", i))
	}
	text.WriteString(programtest.Instruments(symbols...))
	programtest.Start(t, programtest.Config(t, text.String()))
}

// A stop in the middle of the trading loses nothing.
func TestStopUnderLoad(t *testing.T) {
	s := programtest.Start(t, programtest.Config(t, "journal: {snapshot_every: 2000, keep_snapshots: 2}\n"))
	a, b := fixtest.NewTrader(programtest.FirmA, 21), fixtest.NewTrader(programtest.FirmB, 22)
	for range 2 {
		fixtest.ConnectAll(t, s.Addresses.FIX, a, b)
		enough := fixtest.Reported(300, a, b)
		trading := fixtest.StartTrading(a, b)
		await.True(t, "reports", func() bool { return enough() || a.Err() != nil || b.Err() != nil })
		began := time.Now()
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
		t.Logf("the stop took %v", time.Since(began))
		trading.Wait()
		a.Disconnect()
		b.Disconnect()
		programtest.VerifyJournal(t, s)
		if err := s.Restart(context.Background()); err != nil {
			t.Fatal(err)
		}
		fixtest.ConnectAll(t, s.Addresses.FIX, a, b)
		fixtest.ResolveRound(t, a, b)
		for _, tr := range []*fixtest.Trader{a, b} {
			if err := tr.CheckStatus(); err != nil {
				t.Fatal(err)
			}
		}
		fixtest.CheckTrades(t, a, b)
		checkBook(t, s, a, b)
		a.Disconnect()
		b.Disconnect()
	}
}

// A desk's store that was damaged, or put there from another service, is not
// served from: its answers would be missing or another's.
func TestDeskStoreOfAnother(t *testing.T) {
	t.Parallel()
	var services [2]*server.Server
	for i := range services {
		s := programtest.Start(t, programtest.Config(t, programtest.DeskConfig))
		programtest.CLI(t, s, "ticket", "post", "--pair", programtest.Symbol, "--label", "A", "--tranches", "250")
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
		services[i] = s
	}
	mine, other := filepath.Join(services[0].DataDir(), "desk"), filepath.Join(services[1].DataDir(), "desk")
	if err := os.RemoveAll(mine); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(other, mine); err != nil {
		t.Fatal(err)
	}
	out, err := programtest.Run(t, "", nil, serveArgs(services[0])...)
	if err == nil || !strings.Contains(out, "damaged") || !strings.Contains(out, "--reconcile") {
		t.Fatalf("it starts, or does not say why: %v\n%s", err, out)
	}
	if err := os.RemoveAll(mine); err != nil {
		t.Fatal(err)
	}
	if err := services[0].Restart(context.Background()); err != nil {
		t.Errorf("the journal makes the store again: %v", err)
	}
}
