package feed

import (
	"context"
	"errors"
	"testing"

	"blockdesk/e2e/feedtest"
	"blockdesk/e2e/fixtest"
	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
)

// Another one, npm's ws, rebuilds both books while two firms trade as fast as
// they are answered, and over a crash of the server in between.
func TestIndependentWebSocketClient(t *testing.T) {
	t.Parallel()
	s := programtest.Start(t, programtest.Config(t, ""))
	client := feedtest.Follow(t, s, "follow.mjs", programtest.Symbol+","+programtest.OtherSymbol, "--disturb", "500")
	a, b := fixtest.NewTrader(programtest.FirmA, 1), fixtest.NewTrader(programtest.FirmB, 2)
	for run := range 2 {
		fixtest.ConnectAll(t, s.Addresses.FIX, a, b)
		fixtest.TradeUntil(t, "updates that the client has taken", func() bool {
			c := client.Counts(t)
			return c.Epochs == run+1 && c.Updates >= 50*(run+1) && c.Trades >= 5*(run+1)
		}, a, b)
		a.Disconnect()
		b.Disconnect()
		if err := errors.Join(a.Err(), b.Err(), client.Err(), s.Kill()); err != nil {
			t.Fatal(err)
		}
		if err := s.Restart(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	fixtest.ConnectAll(t, s.Addresses.FIX, a, b)
	fixtest.TradeUntil(t, "updates of the third run", func() bool {
		c := client.Counts(t)
		return c.Epochs == 3 && c.Updates >= 100 && c.Trades >= 10
	}, a, b)
	a.Disconnect()
	b.Disconnect()
	// A run that has seen nothing proves nothing: it must have traded, come back
	// by resume and by a new epoch, and met REST.
	await.Value(t, "a client that has seen enough", func() *feedtest.Followed { return client.Counts(t) }, func(c *feedtest.Followed) bool {
		return c.Updates >= 100 && c.Trades >= 10 && c.Heartbeats >= 2 && c.Epochs == 3 && c.Connections >= 3 && c.Resumed >= 4 &&
			c.DepthCompared >= 4
	})
	client.Finish(t)
}
