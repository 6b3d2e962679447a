package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"blockdesk/bench/server"
	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
)

// fromEnv returns a number from the environment, or otherwise.
func fromEnv(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s=%q: want a whole number", name, text)
	}
	return n
}

// Two firms trade as fast as they are answered, and the server is killed at a
// moment that it does not expect. After the restart everything that was
// acknowledged is there, what was not is answered when it is sent again, and no
// report says two things. BLOCKDESK_KILL_ROUNDS asks for more rounds,
// BLOCKDESK_SEED for the same orders again; the moment of the kill is new each
// time.
func TestKillLosesNothingAcknowledged(t *testing.T) {
	t.Parallel()
	rounds := int(fromEnv(t, "BLOCKDESK_KILL_ROUNDS", 3))
	seed := runtest.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	// Few commands a snapshot, so that restarts begin with one.
	s := startProgram(t, testConfig(t, "journal: {snapshot_every: 2000, keep_snapshots: 2}\n"))
	a, b := newTrader(traderA, seed), newTrader(traderB, seed+1)
	connectAll(t, s.Addresses.FIX, a, b)
	for round := range rounds {
		// Requests are under way all the time, so any number of reports is a moment that
		// the server does not expect.
		enough := reported(50+rng.IntN(3000), a, b)
		trading := startTrading(a, b)
		await.True(t, "reports", func() bool { return enough() || a.broken() != nil || b.broken() != nil })
		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
		trading.Wait()
		a.disconnect()
		b.disconnect()
		verifyJournal(t, s)
		if err := s.Restart(context.Background()); err != nil {
			t.Fatal(err)
		}
		connectAll(t, s.Addresses.FIX, a, b)
		late := settleRound(t, a, b)
		for _, tr := range []*trader{a, b} {
			if err := tr.checkStatus(); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			checkRepeats(t, tr, rng)
		}
		checkTrades(t, a, b)
		checkBook(t, s, a, b)
		t.Logf("round %d: %d + %d orders, %d + %d reports, %d fills, %d requests sent again", round,
			len(a.orders), len(b.orders), len(a.reports), len(b.reports), len(a.fills)+len(b.fills), late)
	}
	a.disconnect()
	b.disconnect()
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	verifyJournal(t, s)
}

// settleRound has the traders send every request again that the server has not
// answered, once it has resent what it has, and waits until each knows all that has
// happened to its orders. It returns how many requests those were.
func settleRound(t *testing.T, traders ...*trader) (late int) {
	t.Helper()
	for _, tr := range traders {
		late += sendLateAgain(t, tr)
	}
	// Only now has the server handled everything, and one firm's last order may have
	// filled the other's.
	for _, tr := range traders {
		if err := tr.barrier(); err != nil {
			t.Fatal(err)
		}
	}
	return late
}

func sendLateAgain(t *testing.T, tr *trader) int {
	t.Helper()
	if err := tr.barrier(); err != nil {
		t.Fatal(err)
	}
	late := tr.unanswered()
	for _, r := range late {
		if err := tr.sendAgain(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := tr.await("answers to what was sent again", func() bool { return tr.waiting == 0 }); err != nil {
		left := tr.unanswered()
		for _, r := range left[:min(1, len(left))] {
			t.Logf("the first is %s %q", r.msgType, r.body)
		}
		t.Fatalf("%v: of %d requests %d", err, len(late), len(left))
	}
	return len(late)
}

// checkRepeats sends some answered orders again: each gets its first report
// again, which the trader compares, and nothing new happens.
func checkRepeats(t *testing.T, tr *trader, rng *rand.Rand) {
	t.Helper()
	const repeats = 20
	tr.mu.Lock()
	before, again := len(tr.reports), tr.again
	tr.mu.Unlock()
	sent := 0
	for range 10 * repeats {
		id := tr.prefix + strconv.Itoa(1+rng.IntN(tr.next))
		tr.mu.Lock()
		r := tr.requests[id]
		tr.mu.Unlock()
		if r.msgType != "D" {
			continue
		}
		if err := tr.sendAgain(r); err != nil {
			t.Fatal(err)
		}
		if sent++; sent == repeats {
			break
		}
	}
	if err := tr.await("first reports again", func() bool { return tr.again == again+sent }); err != nil {
		t.Fatal(err)
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if len(tr.reports) != before {
		t.Fatalf("%s: %d orders sent again made %d new reports", tr.name, sent, len(tr.reports)-before)
	}
}

// checkTrades holds the two reports of each trade against each other: the
// maker's ExecID is the taker's with an M.
func checkTrades(t *testing.T, a, b *trader) {
	t.Helper()
	for _, tr := range []*trader{a, b} { // reports may still come
		tr.mu.Lock()
		defer tr.mu.Unlock()
	}
	for _, pair := range [][2]*trader{{a, b}, {b, a}} {
		for id, f := range pair[0].fills {
			other := id + "M"
			if strings.HasSuffix(id, "M") {
				other = strings.TrimSuffix(id, "M")
			}
			if theirs, ok := pair[1].fills[other]; !ok || theirs != f {
				t.Fatalf("%s has fill %s %+v, %s has %s %+v (%v)", pair[0].name, id, f, pair[1].name, other, theirs, ok)
			}
		}
	}
}

// checkBook holds the book that REST shows to the sum of what the traders know
// to be live.
func checkBook(t *testing.T, s *server.Server, traders ...*trader) {
	t.Helper()
	for _, tr := range traders {
		tr.mu.Lock()
		defer tr.mu.Unlock()
	}
	for _, symbol := range []string{testSymbol, otherSymbol} {
		want := map[string]uint64{}
		for _, tr := range traders {
			for _, o := range tr.orders {
				if o.live() && o.symbol == symbol {
					want[o.side+" "+o.price] += millionths(o.leaves)
				}
			}
		}
		// REST's view may be behind what FIX has told.
		await.Equal(t, "the book of "+symbol, fmt.Sprint(want), func() string {
			var depth restDepth
			getJSON(t, s.Addresses.API+"/api/v1/market/depth?limit=100&symbol="+symbol, &depth)
			got := map[string]uint64{}
			for side, levels := range map[string][][2]string{"1 ": depth.Bids, "2 ": depth.Asks} {
				for _, l := range levels {
					got[side+l[0]] = millionths(l[1])
				}
			}
			return fmt.Sprint(got)
		})
	}
}

// verifyJournal runs `blockdesk journal verify` on a stopped server's data.
func verifyJournal(t *testing.T, s *server.Server) {
	t.Helper()
	exe := programtest.Binary(t)
	verify := exec.Command(exe, "journal", "verify", "--data", s.DataDir())
	if out, err := verify.CombinedOutput(); err != nil {
		t.Fatalf("journal verify: %v\n%s", err, bytes.TrimSpace(out))
	}
}
