package service

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"blockdesk/e2e/feedtest"
	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
	"blockdesk/service/operator"
)

// The demo trades by itself, and stops at a signal.
func TestDemoMovesTheFeed(t *testing.T) {
	t.Parallel()
	exe := programtest.Binary(t)
	dir := t.TempDir()
	cmd := exec.Command(exe, append([]string{"serve", "--demo", "--data", dir}, programtest.FreePorts...)...)
	cmd.Dir = t.TempDir() // no blockdesk.yaml of this checkout
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		ended <- cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("killed at the end: %v", errors.Join(cmd.Process.Kill(), <-ended))
		}
	})
	var at operator.Addresses
	await.True(t, "addresses.json", func() bool {
		text, err := os.ReadFile(filepath.Join(dir, "addresses.json"))
		return err == nil && json.Unmarshal(text, &at) == nil
	})
	began := time.Now() // a person can read the addresses
	conn := feedtest.Subscribe(t, at.WS)
	feedtest.FeedUntil(t, conn, "l2", func(m *feedtest.FeedMessage) bool { return m.Type == "update" })
	t.Logf("the feed moved after %v", time.Since(began))
	feedtest.FeedUntil(t, conn, "trades", func(m *feedtest.FeedMessage) bool { return len(m.Trades) > 0 })
	began = time.Now()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := await.Receive(t, "the end", ended); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	t.Logf("stopped after %v", time.Since(began).Round(time.Millisecond))
	for _, word := range []string{at.FIX, at.Base, at.WS, "GUEST"} {
		if !strings.Contains(out.String(), word) {
			t.Errorf("%s is not printed:\n%s", word, &out)
		}
	}
	if regexp.MustCompile(`level=ERROR|level=WARN`).MatchString(out.String()) {
		t.Errorf("the demo warns:\n%s", &out)
	}
}

// Each of these is refused before anything listens, with what is wrong.
func TestServeRefusesBadConfiguration(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file string
		env  []string
		args []string
		want []string
	}{
		"unknown key": {
			file: "log: {level: info}\nlisten:\n  fix: 127.0.0.1:0\n  fixx: 127.0.0.1:1\n",
			want: []string{"fixx", "[4:"},
		},
		"unknown key at the top":  {file: "log: {level: info}\n\nlistne: {}\n", want: []string{"listne", "[3:"}},
		"wrong type":              {file: "fix:\n  max_sessions: many\n", want: []string{"[2:", "fix.max_sessions", "many", "a whole number"}},
		"out of range":            {file: "fix: {max_sessions: 0}\n", want: []string{"fix.max_sessions", "1 to 10000"}},
		"rate out of range":       {file: "http: {market_data_per_minute: 60000001}\n", want: []string{"http.market_data_per_minute"}},
		"unknown word":            {file: "durability: {mode: fast}\n", want: []string{"durability.mode", "fast", "sync"}},
		"unknown variable":        {env: []string{"BLOCKDESK_LISTEN_FIXX=127.0.0.1:0"}, want: []string{"BLOCKDESK_LISTEN_FIXX"}},
		"bad variable":            {env: []string{"BLOCKDESK_DEMO=perhaps"}, want: []string{"BLOCKDESK_DEMO", "true or false"}},
		"unknown --set":           {args: []string{"--set", "listen.fixx=1"}, want: []string{"listen.fixx"}},
		"bad --set":               {args: []string{"--set", "engine.max_batch=1.5"}, want: []string{"engine.max_batch", "whole number"}},
		"ring of odd size":        {args: []string{"--set", "engine.ingress_size=100"}, want: []string{"IngressSize 100", "power of two"}},
		"batch past a frame":      {args: []string{"--set", "engine.max_batch=8193"}, want: []string{"MaxBatch 8193"}},
		"no participants":         {want: []string{"participants", "--demo"}},
		"participants not there":  {file: "fix: {participants_file: nobody.yaml}\n", want: []string{"nobody.yaml"}},
		"demo on all addresses":   {args: []string{"--demo", "--set", "listen.fix=0.0.0.0:0"}, want: []string{"loopback", "0.0.0.0:0"}},
		"demo on a public base":   {args: []string{"--demo", "--set", "listen.base=192.0.2.1:80"}, want: []string{"loopback", "192.0.2.1:80"}},
		"demo over TLS":           {args: []string{"--demo", "--set", "fix.tls_cert_file=a", "--set", "fix.tls_key_file=b"}, want: []string{"fix.tls_cert_file", "plain FIX"}},
		"half a TLS":              {args: []string{"--demo", "--set", "fix.tls_cert_file=a"}, want: []string{"fix.tls_key_file", "set both"}},
		"demo on no host":         {args: []string{"--demo", "--set", "listen.ws=:0"}, want: []string{"loopback"}},
		"no such port":            {args: []string{"--demo", "--set", "listen.fix=127.0.0.1:99999"}, want: []string{"listen.fix", "127.0.0.1:99999"}},
		"no such proxy":           {file: "trusted_proxies: [nobody]\n", args: []string{"--demo"}, want: []string{"trusted_proxies", "nobody"}},
		"limit of nonsense":       {args: []string{"--demo", "--set", "risk.max_qty=lots"}, want: []string{"MAKER", "max_qty", "lots"}},
		"instrument twice":        {file: programtest.Instruments("A/B", "A/B"), want: []string{"instruments[1]", "A/B"}},
		"tick of nothing":         {file: strings.Replace(programtest.Instruments("A/B"), `tick: "0.01"`, `tick: "0"`, 1), want: []string{"instruments[0]", "tick"}},
		"tick finer than decimal": {file: strings.Replace(programtest.Instruments("A/B"), `tick: "0.01"`, `tick: "0.001"`, 1), want: []string{"instruments[0]", "tick", "0.001"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if c.file != "" {
				if err := os.WriteFile(filepath.Join(dir, "blockdesk.yaml"), []byte(c.file), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for _, check := range [][]string{{"--check"}, nil} {
				args := append([]string{"serve"}, check...)
				out, err := programtest.Run(t, dir, c.env, append(append(args, programtest.FreePorts...), c.args...)...)
				if err == nil {
					t.Fatalf("%v is accepted:\n%s", args, out)
				}
				for _, word := range c.want {
					if !strings.Contains(out, word) {
						t.Errorf("%v: the error does not say %q:\n%s", args, word, out)
					}
				}
				if strings.Contains(out, "panic") || strings.Contains(out, "goroutine ") {
					t.Errorf("%v panics:\n%s", args, out)
				}
			}
		})
	}
}

// --check says yes to what serve would run, and leaves nothing behind.
func TestCheckAcceptsAndLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{{"--demo"}, {"--demo", "--set", "http.market_data_per_minute=0"}, {"--demo", "--set", "listen.fix=localhost:0"}} {
		out, err := programtest.Run(t, dir, nil, append([]string{"serve", "--check"}, args...)...)
		if err != nil || !strings.Contains(out, "valid") {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) > 0 {
		t.Fatalf("--check has made %s", left[0].Name())
	}
}
