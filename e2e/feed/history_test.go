package feed

import (
	"context"
	"math/rand/v2"
	"testing"

	"blockdesk/e2e/feedtest"
	"blockdesk/e2e/fixtest"
	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
)

// Two firms trade as fast as they get answers, and the service is killed repeatedly with
// the history's last commits unsynced. After every restart the history equals the
// journal: each trade once and in its candle, also unpublished ones.
// BLOCKDESK_KILL_ROUNDS sets the number of rounds.
func TestHistoryAfterKillsIsTheJournals(t *testing.T) {
	t.Parallel()
	rounds := int(programtest.FromEnv(t, "BLOCKDESK_KILL_ROUNDS", 3))
	seed := runtest.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 3))
	// Few commands a snapshot, so that restarts begin with one, and all are kept,
	// so that the journal is whole.
	s := programtest.Start(t, programtest.Config(t, "journal: {snapshot_every: 2000, keep_snapshots: 100}\n"))
	a, b := fixtest.NewTrader(programtest.FirmA, seed), fixtest.NewTrader(programtest.FirmB, seed+1)
	for round := range rounds {
		fixtest.ConnectAll(t, s.Addresses.FIX, a, b)
		fixtest.ResolveRound(t, a, b)
		enough := fixtest.Reported(200+rng.IntN(3000), a, b)
		trading := fixtest.StartTrading(a, b)
		await.True(t, "reports", func() bool { return enough() || a.Err() != nil || b.Err() != nil })
		if err := a.Await("trades", func() bool { return len(a.Fills) >= 10*(round+1) }); err != nil {
			t.Fatal(err)
		}
		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
		trading.Wait()
		a.Disconnect()
		b.Disconnect()
		tapes := feedtest.JournalTapes(t, s)
		if err := s.Restart(context.Background()); err != nil {
			t.Fatal(err)
		}
		feedtest.CheckHistory(t, s, tapes)
		trades := 0
		for _, of := range tapes {
			trades += len(of.Trades)
		}
		if trades < 10*(round+1) {
			t.Errorf("round %d: only %d trades", round, trades)
		}
		t.Logf("round %d: %d trades", round, trades)
	}
}
