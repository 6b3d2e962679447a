package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"blockdesk/bench/server"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
)

// feedFollower is a client that is not ours, in Node, which checks what the feed
// tells it until it is asked to end.
type feedFollower struct {
	name  string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   lockedBuffer
	ended chan error // closed behind how it ended
}

// followed is what a follower has counted.
type followed struct {
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

// followerDir returns where the followers live and Node's path, or skips the
// test.
func followerDir(t *testing.T) (node, dir string) {
	t.Helper()
	node, dir = tool(t, "node"), clientDir(t, "ws")
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "ws")); err != nil {
		runtest.Missing(t, "npm's ws", "npm --prefix internal/clients/ws ci")
	}
	return node, dir
}

// follow starts a follower of these symbols. The test ends it.
func follow(t *testing.T, s *server.Server, script, symbols string, more ...string) *feedFollower {
	t.Helper()
	node, dir := followerDir(t)
	args := append([]string{filepath.Join(dir, script), "--ws", s.Addresses.WS, "--rest", s.Addresses.API, "--symbols", symbols}, more...)
	f := &feedFollower{name: script, cmd: exec.Command(node, args...), ended: make(chan error, 1)}
	f.stdin = must(f.cmd.StdinPipe())
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
			err := errors.Join(f.cmd.Process.Kill(), <-f.ended) // or it is gone
			t.Logf("%s said: %s (%v)", f.name, &f.out, err)
		}
	})
	return f
}

// broken returns an error once the follower has ended by itself.
func (f *feedFollower) broken() error {
	select {
	case err := <-f.ended:
		return errors.Join(errors.New("the follower has ended"), err)
	default:
		return nil
	}
}

// lastLine returns the last whole line that the follower has printed.
func (f *feedFollower) lastLine() string {
	lines := strings.Split(f.out.String(), "\n")
	if len(lines) < 2 {
		return ""
	}
	return lines[len(lines)-2]
}

// counts returns what the follower has counted so far, without its tapes.
func (f *feedFollower) counts(t *testing.T) *followed {
	t.Helper()
	printed := func() int { return strings.Count(f.out.String(), "\n") }
	before := printed()
	if _, err := io.WriteString(f.stdin, "counts\n"); err != nil {
		t.Fatalf("%s: %v", f.name, errors.Join(err, f.broken()))
	}
	await.True(t, f.name+" to print its counts", func() bool { return printed() > before || len(f.ended) > 0 })
	counts := &followed{}
	if err := errors.Join(json.Unmarshal([]byte(f.lastLine()), counts), f.broken()); err != nil {
		t.Fatalf("%s: %v", f.name, err)
	}
	return counts
}

// finish has the follower end, and returns what it counted.
func (f *feedFollower) finish(t *testing.T) *followed {
	t.Helper()
	if err := f.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-f.ended:
		if err != nil {
			t.Fatalf("%s: %v\n%s", f.name, err, &f.out)
		}
	case <-time.After(runtest.Patience):
		t.Fatalf("%s does not end", f.name)
	}
	text := f.lastLine()
	var counts followed
	if err := json.Unmarshal([]byte(text), &counts); err != nil || !counts.OK {
		t.Fatalf("%s: %v\n%s", f.name, err, &f.out)
	}
	t.Logf("%s: %s", f.name, text)
	if counts.Lost != counts.Noticed+counts.Overtaken {
		t.Errorf("%s: %d updates thrown away, %d noticed, %d overtaken", f.name, counts.Lost, counts.Noticed, counts.Overtaken)
	}
	return &counts
}

// An hour of recorded order flow goes through FIX at speed, while the service is
// stopped and killed in between. Clients that are not ours follow it, through
// gaps that they make themselves and connections that they break, and miss
// nothing: every checksum holds, their books are REST's at the same number, their
// tickets the desk's, and their trades the journal's. So are the trades and the candles of the
// history afterwards.
//
// BLOCKDESK_FEED_SECONDS is for how long the hour may be played, and then all of
// it must be; without it, its beginning is, for a few seconds.
func TestFeedThroughAnHour(t *testing.T) {
	runtest.NotRaced(t, "its clients are not Go, and the tests of feed race the same code")
	t.Parallel()
	followerDir(t)
	const fewSeconds = 8
	budget := time.Duration(fromEnv(t, "BLOCKDESK_FEED_SECONDS", fewSeconds)) * time.Second
	whole := os.Getenv("BLOCKDESK_FEED_SECONDS") != ""
	away := "1200" // ms
	if whole {
		away = "6000" // more than a resume can bridge, and a snapshot's trades
	}
	seed := runtest.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 2))
	s := startProgram(t, replayConfig(t, deskConfig))
	symbols := stockSymbol + "," + deepSymbol + "," + testSymbol
	followers := []*feedFollower{
		follow(t, s, "follow.mjs", symbols, "--disturb", "400", "--away", away, "--tickets"),
		follow(t, s, "follow.mjs", symbols, "--disturb", "700", "--away", "500", "--compress", "--tickets"),
		follow(t, s, "stream.mjs", symbols, "--disturb", "900", "--away", "300", "--tickets"),
	}
	r := newReplayer(loadDay(t))
	r.connect(t, s.Addresses.FIX)
	began, restarts := time.Now(), 0
	for {
		stretch := time.Duration(1500+rng.Int64N(2500)) * time.Millisecond
		if whole {
			stretch *= 3
		}
		playFor(t, r, stretch, func() { moveTickets(t, s, restarts) })
		for _, f := range followers {
			if err := f.broken(); err != nil {
				t.Fatal(err)
			}
		}
		if r.over() {
			break
		}
		if time.Since(began) > budget && restarts >= 2 {
			if !slices.ContainsFunc(followers, func(f *feedFollower) bool { return !f.counts(t).enough(restarts) }) {
				break
			}
			continue
		}
		for _, f := range followers {
			await.True(t, f.name+" to follow what has begun", func() bool { return f.counts(t).Epochs > restarts })
		}
		restarts++
		restart(t, s, r, restarts%2 == 0)
	}
	if whole && !r.over() {
		t.Errorf("%v of the hour were played in %v", r.played(), budget)
	}
	r.disconnect()
	counts := make([]*followed, 0, len(followers))
	for _, f := range followers {
		counts = append(counts, f.finish(t))
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	tapes := journalTapes(t, s)
	if err := s.Restart(context.Background()); err != nil {
		t.Fatal(err)
	}
	checkHistory(t, s, tapes)
	for i, c := range counts {
		checkFollowed(t, followers[i].name, c, tapes, restarts)
	}
	t.Logf("%v of the market, %d rows and %d deep messages in %v, %d restarts", r.played().Round(time.Second), r.row, r.record,
		time.Since(began).Round(time.Second), restarts)
}

// playFor plays for a while, calls cut while messages are under way, and waits
// until the replay has stopped.
func playFor(t *testing.T, r *replayer, d time.Duration, cut func()) {
	t.Helper()
	stop, played := make(chan struct{}), make(chan error, 1)
	go func() { played <- r.play(stop) }()
	select {
	case err := <-played: // the day is over
		if err != nil {
			t.Fatal(err)
		}
		return
	case <-time.After(d):
	}
	cut()
	close(stop)
	if err := <-played; err != nil {
		t.Fatal(err)
	}
}

// moveTickets posts a ticket, withdraws the one before, and moves all their prices.
func moveTickets(t *testing.T, s *server.Server, round int) {
	t.Helper()
	cli(t, s, "ticket", "post", "--pair", testSymbol, "--label", "Block", "--tranches", "250000,1000")
	if round > 0 {
		cli(t, s, "ticket", "withdraw", "T"+strconv.Itoa(round))
	}
	cli(t, s, "price", "set", "--pair", testSymbol, "--usd", fmt.Sprintf("0.99%d", round%9+1))
}

// restart ends the service while the day is played, by a signal or by a kill,
// and starts it again.
func restart(t *testing.T, s *server.Server, r *replayer, politely bool) {
	t.Helper()
	end := s.Kill
	if politely {
		end = s.Stop
	}
	playFor(t, r, 100*time.Millisecond, func() {
		if err := end(); err != nil {
			t.Fatal(err)
		}
	})
	r.disconnect()
	if err := s.Restart(context.Background()); err != nil {
		t.Fatal(err)
	}
	r.connect(t, s.Addresses.FIX)
	r.settle(t)
}

// enough reports whether a follower has met all that it is there for: a run that has
// seen little proves little.
func (c *followed) enough(restarts int) bool {
	return c.Epochs == restarts+1 && c.Connections > restarts && c.Updates >= 100 && c.Heartbeats >= 2 &&
		c.DepthCompared >= 4 && c.TradesCompared >= 4 && c.Tickets >= 2*restarts && c.TicketsCompared >= 2 &&
		c.Lost >= 2 && c.Noticed >= 1 && c.Resumed >= 4 && c.Resyncs >= 1
}

// checkFollowed holds a follower's tapes to the journal's.
func checkFollowed(t *testing.T, name string, c *followed, tapes map[string]*tape, restarts int) {
	t.Helper()
	for symbol, of := range tapes {
		got := c.Tapes[symbol]
		if got.Trades != len(of.trades) || got.SHA256 != of.digest() {
			t.Errorf("%s: %d trades of %s, the journal has %d, or they differ", name, got.Trades, symbol, len(of.trades))
		}
		if len(of.trades) < 10 && symbol != testSymbol {
			t.Errorf("only %d trades of %s", len(of.trades), symbol)
		}
	}
	if !c.enough(restarts) {
		t.Errorf("%s has seen too little over %d restarts: %+v", name, restarts, c)
	}
}
