// Package feedtest follows the public feed for tests: message by message in the test
// itself, and with npm clients in processes of their own, which know only the published
// documents.
//
// Both are compared with tapes: the trades that a replay of the
// stopped server's journal gives, with the naive order book and without the feed's code. A
// Follower loses messages on purpose and must notice and recover; its counts are in
// Followed. A test is skipped where Node or the npm packages are missing.
package feedtest

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"blockdesk/bench/server"
	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
)

// Follower is an independent client in Node that checks the feed until it is asked to
// end.
type Follower struct {
	Name  string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   programtest.Buffer
	ended chan error // closed behind how it ended
}

// Followed are a follower's counts.
type Followed struct {
	OK              bool `json:"ok"`
	Messages        int  `json:"messages"`
	Snapshots       int  `json:"snapshots"`
	Updates         int  `json:"updates"`
	Trades          int  `json:"trades"`
	Heartbeats      int  `json:"heartbeats"`
	Epochs          int  `json:"epochs"`
	Lost            int  `json:"lost"`      // updates thrown away on purpose
	Noticed         int  `json:"noticed"`   // of those
	Overtaken       int  `json:"overtaken"` // of those, by a snapshot or a resume
	Healed          int  `json:"healed"`    // trades that a snapshot had passed over, from REST
	DepthCompared   int  `json:"depth_compared"`
	TradesCompared  int  `json:"trades_compared"`
	Tickets         int  `json:"tickets"` // messages of their channel
	TicketsCompared int  `json:"tickets_compared"`
	Connections     int  `json:"connections"`
	Restarts        int  `json:"restarts"` // closes with 1012
	Compressed      int  `json:"compressed"`
	Resumed         int  `json:"resumed"` // streams
	Resyncs         int  `json:"resyncs"`
	Resubscribed    int  `json:"resubscribed"`
	Tapes           map[string]struct {
		Trades int    `json:"trades"`
		SHA256 string `json:"sha256"`
	} `json:"tapes"`
}

// Follow starts a follower of these symbols. The test ends it.
func Follow(t *testing.T, s *server.Server, script, symbols string, more ...string) *Follower {
	t.Helper()
	node, dir := FollowerDir(t)
	args := append([]string{filepath.Join(dir, script), "--ws", s.Addresses.WS, "--rest", s.Addresses.API, "--symbols", symbols}, more...)
	f := &Follower{Name: script, cmd: exec.Command(node, args...), ended: make(chan error, 1)}
	f.stdin = programtest.Must(f.cmd.StdinPipe())
	f.cmd.Stdout, f.cmd.Stderr = &f.out, &f.out
	if err := f.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		f.ended <- f.cmd.Wait()
		close(f.ended)
	}()
	t.Cleanup(func() {
		if t.Failed() {
			err := errors.Join(f.cmd.Process.Kill(), <-f.ended) // or it has ended
			t.Logf("%s said: %s (%v)", f.Name, &f.out, err)
		}
	})
	return f
}

// FollowerDir returns the followers' folder and Node's path, or skips the test.
func FollowerDir(t *testing.T) (node, dir string) {
	t.Helper()
	node, dir = programtest.Tool(t, "node"), programtest.ClientDir(t, "ws")
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "ws")); err != nil {
		runtest.SkipMissing(t, "npm's ws", "npm --prefix internal/clients/ws ci")
	}
	return node, dir
}

// Err returns an error once the follower has ended by itself.
func (f *Follower) Err() error {
	select {
	case err := <-f.ended:
		return errors.Join(errors.New("the follower has ended"), err)
	default:
		return nil
	}
}

// lastLine returns the last whole line that the follower has printed.
func (f *Follower) lastLine() string {
	lines := strings.Split(f.out.String(), "\n")
	if len(lines) < 2 {
		return ""
	}
	return lines[len(lines)-2]
}

// Counts returns what the follower has counted so far, without its tapes.
func (f *Follower) Counts(t *testing.T) *Followed {
	t.Helper()
	printed := func() int { return strings.Count(f.out.String(), "\n") }
	before := printed()
	if _, err := io.WriteString(f.stdin, "counts\n"); err != nil {
		t.Fatalf("%s: %v", f.Name, errors.Join(err, f.Err()))
	}
	await.True(t, f.Name+" to print its counts", func() bool { return printed() > before || len(f.ended) > 0 })
	counts := &Followed{}
	if err := errors.Join(json.Unmarshal([]byte(f.lastLine()), counts), f.Err()); err != nil {
		t.Fatalf("%s: %v", f.Name, err)
	}
	return counts
}

// Finish ends the follower and returns its counts.
func (f *Follower) Finish(t *testing.T) *Followed {
	t.Helper()
	if err := f.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-f.ended:
		if err != nil {
			t.Fatalf("%s: %v\n%s", f.Name, err, &f.out)
		}
	case <-time.After(runtest.HangTimeout):
		t.Fatalf("%s does not end", f.Name)
	}
	text := f.lastLine()
	var counts Followed
	if err := json.Unmarshal([]byte(text), &counts); err != nil || !counts.OK {
		t.Fatalf("%s: %v\n%s", f.Name, err, &f.out)
	}
	t.Logf("%s: %s", f.Name, text)
	if counts.Lost != counts.Noticed+counts.Overtaken {
		t.Errorf("%s: %d updates thrown away, %d noticed, %d overtaken", f.Name, counts.Lost, counts.Noticed, counts.Overtaken)
	}
	return &counts
}
