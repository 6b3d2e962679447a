package feed

import (
	"testing"

	"go.uber.org/goleak"

	"blockdesk/market"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// fasthttp's clock and its pool's cleaner, which ends in its sleep.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}

func TestSubscribeAckSnapshotUpdate(t *testing.T) {
	d := newTestFeed(t)
	d.order(0, market.Buy, 999_000, 12_000_500_000)
	d.settle()
	c := d.dial()
	c.send(`{"action":"SUBSCRIBE_MARKET","channels":["ticker","l2","trades"],"symbols":["SLUSD/USDC","X/Y"],"id":"1"}`)
	ack := c.next()
	if !ack.Success || string(ack.ID) != `"1"` || len(ack.Subscribed) != 3 || len(ack.Rejected) != 3 || ack.Rejected[0].Code != "UNKNOWN_SYMBOL" {
		t.Fatal(ack.raw)
	}
	for range 3 {
		m := c.next()
		if m.Type != "snapshot" || m.Symbol != "SLUSD/USDC" || m.Epoch != "e1" {
			t.Fatal(m.raw)
		}
		t.Log(m.raw)
	}
	d.order(0, market.Sell, 999_000, 500_000)
	for range 3 {
		m := c.next()
		if m.Type != "update" {
			t.Fatal(m.raw)
		}
		t.Log(m.raw)
	}
}
