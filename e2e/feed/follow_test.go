package feed

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"blockdesk/bench/server"
	"blockdesk/e2e/feedtest"
	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
)

// An hour of recorded order flow goes through FIX at speed while the service is stopped
// and killed in between. Independent clients follow it, through gaps and disconnections
// that they cause, and miss nothing: every checksum is right, their books equal REST's at
// the same seq, their tickets the desk's, and their trades the journal's. So do the
// trades and candles of the history.
//
// BLOCKDESK_FEED_SECONDS is the time for the whole hour; without it the test replays its
// beginning for a few seconds.
func TestFeedThroughAnHour(t *testing.T) {
	runtest.SkipUnderRace(t, "its clients are not Go, and the tests of feed race the same code")
	t.Parallel()
	feedtest.FollowerDir(t)
	const fewSeconds = 8
	budget := time.Duration(programtest.FromEnv(t, "BLOCKDESK_FEED_SECONDS", fewSeconds)) * time.Second
	whole := os.Getenv("BLOCKDESK_FEED_SECONDS") != ""
	away := "1200" // ms
	if whole {
		away = "6000" // more than a resume can bridge, and a snapshot's trades
	}
	seed := runtest.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 2))
	s := programtest.Start(t, replayConfig(t, programtest.DeskConfig))
	symbols := stockSymbol + "," + deepSymbol + "," + programtest.Symbol
	followers := []*feedtest.Follower{
		feedtest.Follow(t, s, "follow.mjs", symbols, "--disturb", "400", "--away", away, "--tickets"),
		feedtest.Follow(t, s, "follow.mjs", symbols, "--disturb", "700", "--away", "500", "--compress", "--tickets"),
		feedtest.Follow(t, s, "stream.mjs", symbols, "--disturb", "900", "--away", "300", "--tickets"),
	}
	r := newReplayer(loadDay(t))
	r.connect(t, s.Addresses.FIX)
	began, restarts := time.Now(), 0
	for {
		stretch := time.Duration(1500+rng.Int64N(2500)) * time.Millisecond
		if whole {
			stretch *= 3
		}
		replayFor(t, r, stretch, func() { moveTickets(t, s, restarts) })
		for _, f := range followers {
			if err := f.Err(); err != nil {
				t.Fatal(err)
			}
		}
		if r.over() {
			break
		}
		if time.Since(began) > budget && restarts >= 2 {
			if !slices.ContainsFunc(followers, func(f *feedtest.Follower) bool { return !enough(f.Counts(t), restarts) }) {
				break
			}
			continue
		}
		for _, f := range followers {
			await.True(t, f.Name+" to follow what has begun", func() bool { return f.Counts(t).Epochs > restarts })
		}
		restarts++
		restart(t, s, r, restarts%2 == 0)
	}
	if whole && !r.over() {
		t.Errorf("%v of the hour were played in %v", r.played(), budget)
	}
	r.disconnect()
	counts := make([]*feedtest.Followed, 0, len(followers))
	for _, f := range followers {
		counts = append(counts, f.Finish(t))
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	tapes := feedtest.JournalTapes(t, s)
	if err := s.Restart(context.Background()); err != nil {
		t.Fatal(err)
	}
	feedtest.CheckHistory(t, s, tapes)
	for i, c := range counts {
		checkFollowed(t, followers[i].Name, c, tapes, restarts)
	}
	t.Logf("%v of the market, %d rows and %d deep messages in %v, %d restarts", r.played().Round(time.Second), r.row, r.record,
		time.Since(began).Round(time.Second), restarts)
}

// replayFor replays for a while, calls cut while messages are under way, and waits until
// the replay has stopped.
func replayFor(t *testing.T, r *replayer, d time.Duration, cut func()) {
	t.Helper()
	stop, played := make(chan struct{}), make(chan error, 1)
	go func() { played <- r.replay(stop) }()
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
	programtest.CLI(t, s, "ticket", "post", "--pair", programtest.Symbol, "--label", "Block", "--tranches", "250000,1000")
	if round > 0 {
		programtest.CLI(t, s, "ticket", "withdraw", "T"+strconv.Itoa(round))
	}
	programtest.CLI(t, s, "price", "set", "--pair", programtest.Symbol, "--usd", fmt.Sprintf("0.99%d", round%9+1))
}

// restart ends the service during the replay, by a signal or by a kill, and starts it
// again.
func restart(t *testing.T, s *server.Server, r *replayer, politely bool) {
	t.Helper()
	end := s.Kill
	if politely {
		end = s.Stop
	}
	replayFor(t, r, 100*time.Millisecond, func() {
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

// enough reports whether a follower has seen everything that the test is about.
func enough(c *feedtest.Followed, restarts int) bool {
	return c.Epochs == restarts+1 && c.Connections > restarts && c.Updates >= 100 && c.Heartbeats >= 2 &&
		c.DepthCompared >= 4 && c.TradesCompared >= 4 && c.Tickets >= 2*restarts && c.TicketsCompared >= 2 &&
		c.Lost >= 2 && c.Noticed >= 1 && c.Resumed >= 4 && c.Resyncs >= 1
}

// checkFollowed compares a follower's tapes with the journal's.
func checkFollowed(t *testing.T, name string, c *feedtest.Followed, tapes map[string]*feedtest.Tape, restarts int) {
	t.Helper()
	for symbol, of := range tapes {
		got := c.Tapes[symbol]
		if got.Trades != len(of.Trades) || got.SHA256 != of.Digest() {
			t.Errorf("%s: %d trades of %s, the journal has %d, or they differ", name, got.Trades, symbol, len(of.Trades))
		}
		if len(of.Trades) < 10 && symbol != programtest.Symbol {
			t.Errorf("only %d trades of %s", len(of.Trades), symbol)
		}
	}
	if !enough(c, restarts) {
		t.Errorf("%s has seen too little over %d restarts: %+v", name, restarts, c)
	}
}
