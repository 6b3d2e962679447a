package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
)

// TestBarLine: what a bar shows, down to a very narrow terminal.
func TestBarLine(t *testing.T) {
	t.Parallel()
	began := time.Unix(1000, 0)
	b := &bar{label: "backing up", measure: inBytes, began: began, done: 250_000_000, total: 1_000_000_000, now: func() time.Time { return began.Add(5 * time.Second) }}
	for columns, want := range map[int]string{
		0:  "backing up 25 % 250.0 MB of 1.0 GB, 50.0 MB/s 15s left",
		81: "backing up [#####..................] 25 % 250.0 MB of 1.0 GB, 50.0 MB/s 15s left",
		60: "backing up 25 % 250.0 MB of 1.0 GB, 50.0 MB/s 15s left",
		40: "backing up 25 % 15s left",
		17: "backing up 25 %",
		10: "25 %",
		3:  "25",
		1:  "",
	} {
		if got := b.line(columns); got != want || columns > 0 && len(got) >= columns {
			t.Errorf("%d columns: %q, want %q", columns, got, want)
		}
	}
	b.measure, b.total = inTime, 0
	if got := b.line(80); got != "backing up 5s" {
		t.Error(got)
	}
	b.measure, b.done, b.total = inCommands, 0, 10
	if got := b.line(0); got != "backing up 0 % 0 of 10 5s" {
		t.Error(got)
	}
}

// TestBarOnPipe: without a terminal a line comes every lineEvery and no oftener, and
// nothing where the work is short.
func TestBarOnPipe(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	b := (&settings{}).newBar(&out, "restoring", inSteps)
	at := b.began
	b.now = func() time.Time { return at }
	for i := range uint64(25) {
		at = b.began.Add(time.Duration(i) * time.Second)
		if err := b.set(context.Background(), i, 25); err != nil {
			t.Fatal(err)
		}
	}
	b.end()
	if want := "restoring 40 % 10 of 25 15s left\nrestoring 80 % 20 of 25 5s left\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := b.set(ctx, 1, 25); !errors.Is(err, context.Canceled) {
		t.Errorf("after Ctrl-C: %v", err)
	}
}

// openTerminal returns both ends of a new terminal.
func openTerminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		runtest.SkipMissing(t, "pseudo-terminal ("+err.Error()+")", "mount -t devpts devpts /dev/pts")
	}
	t.Cleanup(func() { person.Close() })
	fd := int(person.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close() })
	return person, program
}

// TestProgressOnTerminal backs a stopped service up whose history is a pipe that does
// not end, so that it lasts: on a terminal there is a bar, with --json and into a
// pipe there is none; Ctrl-C ends it with the terminal clean, nothing of the copy
// left, and the data whole.
func TestProgressOnTerminal(t *testing.T) {
	t.Parallel()
	d := programtest.StartDemo(t)
	if err := d.Stop(); err != nil {
		t.Fatal(err)
	}
	slow := filepath.Join(d.Data, "history", "slow")
	if err := syscall.Mkfifo(slow, 0o600); err != nil {
		t.Fatal(err)
	}
	feeder, err := os.OpenFile(slow, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer feeder.Close()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	begin := func(stderr *os.File, more ...string) (cmd *exec.Cmd, target string) {
		target = filepath.Join(t.TempDir(), "copy")
		cmd = exec.Command(exe, append([]string{"backup", target, "--data", d.Data}, more...)...)
		cmd.Stderr = stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		return cmd, target
	}
	// interrupt sends Ctrl-C, feeds the pipe until the program sees it, and waits.
	interrupt := func(cmd *exec.Cmd) {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { _ = cmd.Wait(); close(ended) }()
		for {
			select {
			case <-ended:
				return
			case <-time.After(20 * time.Millisecond):
				if _, err := feeder.Write([]byte("more")); err != nil {
					t.Error(err)
					return
				}
			}
		}
	}
	person, program := openTerminal(t)
	cmd, target := begin(program)
	var seen bytes.Buffer
	piece := make([]byte, 4096)
	for !strings.Contains(seen.String(), "backing up") {
		n, err := person.Read(piece)
		if err != nil {
			t.Fatalf("%v: %q", err, seen.String())
		}
		seen.Write(piece[:n])
	}
	interrupt(cmd)
	program.Close()
	rest, _ := io.ReadAll(person) // ends with an error once the other end is closed
	seen.Write(rest)
	text := seen.String()
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
		t.Errorf("exit code %d: %q", code, text)
	}
	if clean := strings.LastIndex(text, "\r\x1b[K"); clean < 0 || !strings.HasPrefix(text[clean:], "\r\x1b[Kblockdesk: interrupted") {
		t.Errorf("the terminal is not clean: %q", text)
	}
	if _, err := os.Stat(target); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("of the copy %s is left: %v", target, err)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	cmd, target = begin(writer, "--json")
	writer.Close()
	await.True(t, "the copy to have begun", func() bool {
		_, err := os.Stat(filepath.Join(target, "history", "slow"))
		return err == nil
	})
	interrupt(cmd)
	if printed, err := io.ReadAll(reader); err != nil || strings.ContainsAny(string(printed), "\r\x1b#") {
		t.Errorf("into a pipe: %q, %v", printed, err)
	}
	if out, err := exec.Command(exe, "journal", "verify", "--data", d.Data).CombinedOutput(); err != nil {
		t.Errorf("the data are not whole: %v: %s", err, out)
	}
}

// TestReaderGone: a reader that has had enough ends a command quietly.
func TestReaderGone(t *testing.T) {
	t.Parallel()
	d := programtest.StartDemo(t)
	if err := d.Stop(); err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	reader.Close()
	var errOut bytes.Buffer
	cmd := exec.Command(exe, "journal", "dump", "--data", d.Data)
	cmd.Stdout, cmd.Stderr = writer, &errOut
	if err := cmd.Run(); err != nil || errOut.Len() > 0 {
		t.Errorf("%v: %s", err, errOut.String())
	}
	writer.Close()
}
