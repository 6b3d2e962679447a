package service

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"blockdesk/bench/server"
	"blockdesk/e2e/fixtest"
	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
)

// Two firms trade as fast as they are answered, and the server is killed at a
// moment that it does not expect. After the restart everything that was
// acknowledged is there, what was not is answered when it is sent again, and no
// report says two things. BLOCKDESK_KILL_ROUNDS asks for more rounds,
// BLOCKDESK_SEED for the same orders again; the moment of the kill is new each
// time.
func TestKillLosesNothingAcknowledged(t *testing.T) {
	t.Parallel()
	rounds := int(programtest.FromEnv(t, "BLOCKDESK_KILL_ROUNDS", 3))
	seed := runtest.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	// Few commands a snapshot, so that restarts begin with one.
	s := programtest.Start(t, programtest.Config(t, "journal: {snapshot_every: 2000, keep_snapshots: 2}\n"))
	a, b := fixtest.NewTrader(programtest.FirmA, seed), fixtest.NewTrader(programtest.FirmB, seed+1)
	fixtest.ConnectAll(t, s.Addresses.FIX, a, b)
	for round := range rounds {
		// Requests are under way all the time, so any number of reports is a moment that
		// the server does not expect.
		enough := fixtest.Reported(50+rng.IntN(3000), a, b)
		trading := fixtest.StartTrading(a, b)
		await.True(t, "reports", func() bool { return enough() || a.Err() != nil || b.Err() != nil })
		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
		trading.Wait()
		a.Disconnect()
		b.Disconnect()
		programtest.VerifyJournal(t, s)
		if err := s.Restart(context.Background()); err != nil {
			t.Fatal(err)
		}
		fixtest.ConnectAll(t, s.Addresses.FIX, a, b)
		late := fixtest.ResolveRound(t, a, b)
		for _, tr := range []*fixtest.Trader{a, b} {
			if err := tr.CheckStatus(); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			checkRepeats(t, tr, rng)
		}
		fixtest.CheckTrades(t, a, b)
		checkBook(t, s, a, b)
		t.Logf("round %d: %d + %d orders, %d + %d reports, %d fills, %d requests sent again", round,
			len(a.Orders), len(b.Orders), len(a.Reports), len(b.Reports), len(a.Fills)+len(b.Fills), late)
	}
	a.Disconnect()
	b.Disconnect()
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	programtest.VerifyJournal(t, s)
}

// checkRepeats sends some answered orders again: each gets its first report
// again, which the trader compares, and nothing new happens.
func checkRepeats(t *testing.T, tr *fixtest.Trader, rng *rand.Rand) {
	t.Helper()
	const repeats = 20
	tr.Mu.Lock()
	before, again := len(tr.Reports), tr.Resent
	tr.Mu.Unlock()
	sent := 0
	for range 10 * repeats {
		id := tr.Prefix + strconv.Itoa(1+rng.IntN(tr.Next))
		tr.Mu.Lock()
		r := tr.Requests[id]
		tr.Mu.Unlock()
		if r.MsgType != "D" {
			continue
		}
		if err := tr.SendAgain(r); err != nil {
			t.Fatal(err)
		}
		if sent++; sent == repeats {
			break
		}
	}
	if err := tr.Await("first reports again", func() bool { return tr.Resent == again+sent }); err != nil {
		t.Fatal(err)
	}
	tr.Mu.Lock()
	defer tr.Mu.Unlock()
	if len(tr.Reports) != before {
		t.Fatalf("%s: %d orders sent again made %d new reports", tr.Name, sent, len(tr.Reports)-before)
	}
}

// checkBook holds the book that REST shows to the sum of what the traders know
// to be live.
func checkBook(t *testing.T, s *server.Server, traders ...*fixtest.Trader) {
	t.Helper()
	for _, tr := range traders {
		tr.Mu.Lock()
		defer tr.Mu.Unlock()
	}
	for _, symbol := range []string{programtest.Symbol, programtest.OtherSymbol} {
		want := map[string]uint64{}
		for _, tr := range traders {
			for _, o := range tr.Orders {
				if o.Live() && o.Symbol == symbol {
					want[o.Side+" "+o.Price] += fixtest.Millionths(o.Leaves)
				}
			}
		}
		// REST's view may be behind the FIX reports.
		await.Equal(t, "the book of "+symbol, fmt.Sprint(want), func() string {
			var depth programtest.Depth
			programtest.GetJSON(t, s.Addresses.API+"/api/v1/market/depth?limit=100&symbol="+symbol, &depth)
			got := map[string]uint64{}
			for side, levels := range map[string][][2]string{"1 ": depth.Bids, "2 ": depth.Asks} {
				for _, l := range levels {
					got[side+l[0]] = fixtest.Millionths(l[1])
				}
			}
			return fmt.Sprint(got)
		})
	}
}
