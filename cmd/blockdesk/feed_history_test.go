package main

import (
	"context"
	"math/rand/v2"
	"testing"

	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
)

// Two firms trade as fast as they are answered and the service is killed, again
// and again, with the history's last commits on no disk. After every restart the
// history is the journal's: each trade once and in its candle, also those that
// nobody had been told of. BLOCKDESK_KILL_ROUNDS asks for more rounds.
func TestHistoryAfterKillsIsTheJournals(t *testing.T) {
	t.Parallel()
	rounds := int(fromEnv(t, "BLOCKDESK_KILL_ROUNDS", 3))
	seed := runtest.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 3))
	// Few commands a snapshot, so that restarts begin with one, and all are kept,
	// so that the journal is whole.
	s := startProgram(t, testConfig(t, "journal: {snapshot_every: 2000, keep_snapshots: 100}\n"))
	a, b := newTrader(traderA, seed), newTrader(traderB, seed+1)
	for round := range rounds {
		connectAll(t, s.Addresses.FIX, a, b)
		settleRound(t, a, b)
		enough := reported(200+rng.IntN(3000), a, b)
		trading := startTrading(a, b)
		await.True(t, "reports", func() bool { return enough() || a.broken() != nil || b.broken() != nil })
		if err := a.await("trades", func() bool { return len(a.fills) >= 10*(round+1) }); err != nil {
			t.Fatal(err)
		}
		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
		trading.Wait()
		a.disconnect()
		b.disconnect()
		tapes := journalTapes(t, s)
		if err := s.Restart(context.Background()); err != nil {
			t.Fatal(err)
		}
		checkHistory(t, s, tapes)
		trades := 0
		for _, of := range tapes {
			trades += len(of.trades)
		}
		if trades < 10*(round+1) {
			t.Errorf("round %d: only %d trades", round, trades)
		}
		t.Logf("round %d: %d trades", round, trades)
	}
}
