package fix

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/service/config"
)

// script runs `blockdesk fix client` with these lines on standard input, as the
// participant AA, and returns what it printed. state is where its numbers are.
func script(t *testing.T, address, state, lines string, args ...string) (string, error) {
	t.Helper()
	exe := programtest.Binary(t)
	ctx, cancel := context.WithTimeout(context.Background(), runtest.HangTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, exe, append([]string{
		"fix", "client", "--address", address, "--comp-id", programtest.FirmA, "--sequence-file", filepath.Join(state, "aa.seq"),
	}, args...)...)
	cmd.Dir = state
	cmd.Env = append(os.Environ(), config.FIXPasswordEnv+"="+programtest.Password)
	cmd.Stdin = strings.NewReader(lines)
	out, err := cmd.CombinedOutput()
	return string(out), errors.Join(err, ctx.Err())
}

// A script trades: each line waits for its answer, the numbers go on from start
// to start, and what is refused can fail it.
func TestFIXClientScript(t *testing.T) {
	t.Parallel()
	logs := filepath.Join(t.TempDir(), "log")
	config := strings.Replace(programtest.Config(t, ""), "fix:\n", fmt.Sprintf("fix:\n  message_log_dir: %q\n", logs), 1)
	s := programtest.Start(t, config)
	dir := t.TempDir()
	out, err := script(t, s.Addresses.FIX, dir, `# rest, change, look, take back
buy SLUSD/USDC 5 at 1.01
amend last qty=7 price=1.02
orders
book SLUSD/USDC 2
cancel last
market sell SLUSD/USDC 1
`, "--strict")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	inOrder(t, out, "logged on", "next numbers: 2 out, 2 in", "accepted   buy 5 SLUSD/USDC at 1.01", "amended    buy 7 SLUSD/USDC at 1.02",
		"orders     1 live", "book       SLUSD/USDC bid 1.0", "cancelled  buy 7 SLUSD/USDC", "logged out") // the book may be that of a moment ago

	numbers, err := os.ReadFile(filepath.Join(dir, "aa.seq"))
	if err != nil {
		t.Fatal(err)
	}
	var next int
	if n, err := fmt.Sscanf(string(numbers), "sender %d", &next); n != 1 || next < 8 { // behind its seven messages, and Heartbeats
		t.Fatalf("%q: %v", numbers, err)
	}

	// The second start goes on where the first ended, and asks for what it has had.
	out, err = script(t, s.Addresses.FIX, dir, "resend 2 3\nbuy SLUSD/USDC 1 at 1 ioc\nbogus\n", "--no-cancel-on-disconnect", "--strict")
	if err == nil || !strings.Contains(out, "1 commands were refused") {
		t.Errorf("%v\n%s", err, out)
	}
	inOrder(t, out, fmt.Sprintf("next numbers: %d out", next+1), "buy 5 SLUSD/USDC at 1.01", "[again]", "cancelled  buy 1", "invalid command")
	if out, err := script(t, s.Addresses.FIX, dir, "buy NO/SUCH 1 at 1\n"); err != nil || !strings.Contains(out, "UNKNOWN_SYMBOL") {
		t.Errorf("without --strict: %v\n%s", err, out)
	}

	// JSON, and the messages themselves, without the password.
	out, err = script(t, s.Addresses.FIX, dir, "buy SLUSD/USDC 5 at 1.01\n", "--json", "--raw")
	if err != nil || strings.Contains(out, programtest.Password) {
		t.Errorf("%v\n%s", err, out)
	}
	var events []string
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		var r struct{ Event, Text string }
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		events = append(events, r.Event)
	}
	inOrder(t, strings.Join(events, " "), "> < logged on", "> < accepted", "logged out")

	// Numbers from nowhere are refused, and --reset begins anew.
	if out, err := script(t, s.Addresses.FIX, t.TempDir(), ""); err == nil || !strings.Contains(out, "MsgSeqNum too low") {
		t.Errorf("numbers of a fresh start: %v\n%s", err, out)
	}
	if out, err := script(t, s.Addresses.FIX, t.TempDir(), "", "--reset"); err != nil || !strings.Contains(out, "next numbers: 2 out, 2 in") {
		t.Errorf("--reset: %v\n%s", err, out)
	}
	readMessageLog(t, logs)
}

// readMessageLog holds `blockdesk fix log` to what the script above has done.
func readMessageLog(t *testing.T, logs string) {
	out, err := programtest.Run(t, "", nil, "fix", "log", logs, "--comp-id", programtest.FirmA, "--type", "A,D,8", "--since", "1h")
	if err != nil || strings.Contains(out, programtest.Password) {
		t.Fatalf("%v\n%s", err, out)
	}
	inOrder(t, out, "in  AA #1 Logon (A)", "Password=<hidden>", "out AA #1 Logon (A)", "in  AA #2 NewOrderSingle (D)", "Side=1(BUY)", "OrderQty=5",
		"out AA #2 ExecutionReport (8)", "ExecType=0(NEW)")
	if strings.Contains(out, "Heartbeat") || strings.Contains(out, "OrderCancelRequest") {
		t.Errorf("more than was asked for:\n%s", out)
	}
	for args, want := range map[string]string{
		"--since=10s --type=ZZ": "", "--since=2999-01-02T00:00:00Z": "", "--since=soon": "neither a duration", "--header --type=A": "BodyLength=<hidden>",
		"--json --type=D": `"name":"ClOrdID"`,
	} {
		out, err := programtest.Run(t, "", nil, append([]string{"fix", "log", logs}, strings.Fields(args)...)...)
		if want == "" && (err != nil || out != "") || !strings.Contains(out, want) {
			t.Errorf("%s: %v: %s", args, err, out)
		}
	}
	if out, err := programtest.Run(t, "", nil, "fix", "log"); err == nil || !strings.Contains(out, "message_log_dir") {
		t.Errorf("no folder: %v: %s", err, out)
	}
}

// inOrder wants the parts one after the other in text.
func inOrder(t *testing.T, text string, parts ...string) {
	t.Helper()
	rest := text
	for _, part := range parts {
		_, after, ok := strings.Cut(rest, part)
		if !ok {
			t.Fatalf("%q is not where it should be:\n%s", part, text)
		}
		rest = after
	}
}

// The client outlives the service: it logs on again, and goes on.
func TestFIXClientReconnects(t *testing.T) {
	t.Parallel()
	s := programtest.Start(t, programtest.Config(t, ""))
	exe := programtest.Binary(t)
	cmd := exec.Command(exe, "fix", "client", "--address", s.Addresses.FIX, "--comp-id", programtest.FirmA,
		"--sequence-file", filepath.Join(t.TempDir(), "aa.seq"), "--no-cancel-on-disconnect", "--wait", "4m")
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), config.FIXPasswordEnv+"="+programtest.Password)
	out, in := &programtest.Buffer{}, programtest.Must(cmd.StdinPipe())
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%v\n%s", cmd.Process.Kill(), out)
		}
	})
	enter := func(line, want string) {
		t.Helper()
		if _, err := io.WriteString(in, line+"\n"); err != nil {
			t.Fatal(err)
		}
		await.True(t, want, func() bool { return strings.Contains(out.String(), want) })
	}
	enter("buy SLUSD/USDC 5 at 1.01 gtc", "accepted   buy 5")
	enter("book SLUSD/USDC 1", "bid 1.01 x 5")
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	await.True(t, "cut off", func() bool { return strings.Contains(out.String(), "cut off") })
	if err := s.Restart(context.Background()); err != nil {
		t.Fatal(err)
	}
	await.True(t, "a second logon", func() bool { return strings.Count(out.String(), "logged on") == 2 })
	enter("amend last qty=6", "amended    buy 6")
	await.True(t, "the book is followed again", func() bool { return strings.Contains(out.String(), "bid 1.01 x 6") })
	enter("quit", "logged out")
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A key proves as a password does, over TLS too.
func TestFIXClientKeyAndTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	seed := make([]byte, ed25519.SeedSize)
	key := ed25519.NewKeyFromSeed(seed)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	keyFile := filepath.Join(dir, "aa.pem")
	if err := os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	people := filepath.Join(dir, "participants.yaml")
	text := fmt.Sprintf("participants:\n  - {name: %[1]s, number: 1, comp_ids: [%[1]s], ed25519: %q, stp: cancel_newest}\n",
		programtest.FirmA, base64.StdEncoding.EncodeToString(key[ed25519.SeedSize:]))
	if err := os.WriteFile(people, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	certs := filepath.Join(dir, "certs")
	if out, err := programtest.Run(t, "", nil, "fix", "cert", certs); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s := programtest.Start(t, fmt.Sprintf("fix:\n  participants_file: %q\n  tls_cert_file: %q\n  tls_key_file: %q\n",
		people, filepath.Join(certs, "server.pem"), filepath.Join(certs, "server.key")))
	args := []string{"--key", keyFile, "--tls", "--ca", filepath.Join(certs, "ca.pem")}
	if out, err := script(t, s.Addresses.FIX, dir, "buy SLUSD/USDC 1 at 1\n", append(args, "--strict")...); err != nil || !strings.Contains(out, "accepted") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := script(t, s.Addresses.FIX, dir, "", append(args, "--server-name", "example.org")...); err == nil || !strings.Contains(out, "example.org") {
		t.Errorf("another's certificate: %v\n%s", err, out)
	}
}

// An impossible option is refused before anything is dialed.
func TestFIXClientRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	bad, empty := write("bad", "sender 1\ntarget x\n"), write("empty.pem", "secret of mine")
	base := []string{"--comp-id", "X", "--address", "127.0.0.1:1"}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"nobody":        {nil, "--comp-id is required"},
		"no password":   {append(base, "--sequence-file", filepath.Join(dir, "a")), "no password"},
		"numbers":       {append(base, "--sequence-file", bad), "has no sequence numbers"},
		"heartbeat":     {append(base, "--heartbeat", "9"), "--heartbeat: 9"},
		"wait":          {append(base, "--wait", "2h"), "--wait: 2h"},
		"ca alone":      {append(base, "--ca", "x"), "need --tls"},
		"no ca":         {append(base, "--tls", "--ca", empty), "holds no certificate"},
		"no key":        {append(base, "--sequence-file", filepath.Join(dir, "b"), "--key", empty), "neither PEM nor"},
		"password file": {append(base, "--sequence-file", filepath.Join(dir, "c"), "--password-file", filepath.Join(dir, "none")), "no such file"},
	} {
		out, err := programtest.Run(t, "", []string{"HOME=" + dir}, append([]string{"fix", "client"}, c.args...)...)
		if err == nil || !strings.Contains(out, c.want) || strings.Contains(out, "secret of mine") {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
}
