package programtest

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"blockdesk/bench/server"
	"blockdesk/internal/runtest"
)

// Run runs the program with these arguments and environment to its end, in a
// folder of its own unless dir names one, and returns all that it printed.
func Run(t *testing.T, dir string, env []string, args ...string) (string, error) {
	t.Helper()
	exe := Binary(t)
	if dir == "" {
		dir = t.TempDir()
	}
	ctx, cancel := context.WithTimeout(context.Background(), runtest.HangTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, exe, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), errors.Join(err, ctx.Err())
}

// CLI runs a command of the program against a server and returns what it prints.
func CLI(t *testing.T, s *server.Server, args ...string) string {
	t.Helper()
	out, err := Run(t, "", nil, append(args, "--data", s.DataDir())...)
	if err != nil {
		t.Fatalf("blockdesk %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// CLIRefused runs a command that must fail with these words.
func CLIRefused(t *testing.T, s *server.Server, words []string, args ...string) {
	t.Helper()
	out, err := Run(t, "", nil, append(args, "--data", s.DataDir())...)
	if err == nil {
		t.Fatalf("blockdesk %s is accepted:\n%s", strings.Join(args, " "), out)
	}
	for _, word := range words {
		if !strings.Contains(out, word) {
			t.Errorf("blockdesk %s does not say %q:\n%s", strings.Join(args, " "), word, out)
		}
	}
}

// EndsWith runs the program to its end, in a folder without a blockdesk.yaml.
func EndsWith(t *testing.T, args ...string) (code int, out string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), Binary(t), args...)
	cmd.Dir = t.TempDir()
	text, err := cmd.CombinedOutput()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(text)
}

// VerifyJournal runs `blockdesk journal verify` on a stopped server's data.
func VerifyJournal(t *testing.T, s *server.Server) {
	t.Helper()
	exe := Binary(t)
	verify := exec.Command(exe, "journal", "verify", "--data", s.DataDir())
	if out, err := verify.CombinedOutput(); err != nil {
		t.Fatalf("journal verify: %v\n%s", err, bytes.TrimSpace(out))
	}
}

// Shell runs a line as a person would, in dir, and returns what it prints.
func Shell(t *testing.T, dir, line string) string {
	t.Helper()
	out, err := ShellTry(t, dir, nil, line)
	if err != nil {
		t.Errorf("%s: %v\n%s", line, err, out)
	}
	return out
}

// ShellTry is Shell for a line that may fail, with additional environment variables. A
// line that hangs is ended together with everything that it has started.
func ShellTry(t *testing.T, dir string, env []string, line string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), runtest.HangTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", line)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	// A killed shell leaves its children running, and they continue to write into dir.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.CombinedOutput()
	return string(out), errors.Join(err, ctx.Err())
}
