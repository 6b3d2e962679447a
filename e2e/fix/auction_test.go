package fix

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"blockdesk/bench/server"
	"blockdesk/e2e/feedtest"
	"blockdesk/e2e/fixtest"
	"blockdesk/e2e/programtest"
	"blockdesk/fixgw/fixclient"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
)

// auctionTicker has what REST and the WebSocket publish of a market's status.
type auctionTicker struct {
	Channel string `json:"channel"`
	Status  string `json:"status"`
	Auction *struct {
		Price  string `json:"indicative_price"`
		Volume string `json:"indicative_volume"`
		Left   string `json:"imbalance"`
		Side   string `json:"imbalance_side"`
	} `json:"auction"`
}

func (a *auctionTicker) String() string {
	if a.Auction == nil {
		return a.Status
	}
	return fmt.Sprintf("%s: %s at %s, %s left to %s", a.Status, a.Auction.Volume, a.Auction.Price, a.Auction.Left, a.Auction.Side)
}

// TestAuctionOnAllSurfaces: an operator halts a market, begins a call and ends it. REST, the
// WebSocket and FIX show the same at each step, and the orders trade at one price.
func TestAuctionOnAllSurfaces(t *testing.T) {
	t.Parallel()
	s := programtest.Start(t, programtest.Config(t, ""))
	t.Run("auction", func(t *testing.T) { holdAuction(t, s) }) // its sessions log out before the service stops
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	audit := programtest.CLI(t, s, "journal", "audit")
	for _, part := range []string{"set instrument", "status=halted", "status=auction call=1h0m0s", "status=trading", "instrument=" + programtest.Symbol} {
		if !strings.Contains(audit, part) {
			t.Errorf("the audit lacks %q:\n%s", part, audit)
		}
	}
}

func holdAuction(t *testing.T, s *server.Server) {
	ws := feedtest.Subscribe(t, s.Addresses.WS)
	a, b := fixtest.LogOn(t, s.Addresses.FIX, programtest.FirmA), fixtest.LogOn(t, s.Addresses.FIX, programtest.FirmB)
	watch := fixtest.LogOnAs(t, fixclient.Options{
		Addr: s.Addresses.FIX, SenderCompID: programtest.FirmA2, TargetCompID: "BLOCKDESK", Username: programtest.FirmA, Password: programtest.Password,
	})
	send := func(msgType, body string) {
		t.Helper()
		if err := watch.Client.Send(msgType, []byte(strings.ReplaceAll(body, "|", "\x01"))); err != nil {
			t.Fatal(err)
		}
	}
	shows := func(want string) {
		t.Helper()
		await.Equal(t, "REST", want, func() string {
			var ticker auctionTicker
			programtest.GetJSON(t, s.Addresses.API+"/api/v1/market/ticker?symbol="+programtest.Symbol, &ticker)
			return ticker.String()
		})
		awaitTicker(t, ws, want)
	}
	market := func(args ...string) string {
		t.Helper()
		return programtest.CLI(t, s, append([]string{"market"}, args...)...)
	}
	const pair = "--pair=" + programtest.Symbol

	send("e", "324=st|55="+programtest.Symbol+"|263=1|")
	watch.Expect(map[int]string{35: "f", 326: "17"})
	if out := market("halt", pair); !strings.Contains(out, "halted") {
		t.Errorf("market halt prints %s", out)
	}
	shows("halted")
	watch.Expect(map[int]string{35: "f", 326: "2", 325: "Y"})
	a.Order("a0", "1", "1", "1")
	a.Expect(map[int]string{35: "8", 150: "8", 103: "2"})

	if out := market("call", pair, "--for=1h"); !strings.Contains(out, "auction") {
		t.Errorf("market call prints %s", out)
	}
	watch.Expect(map[int]string{35: "f", 326: "21", 332: ""})
	a.Order("a1", "1", "10", "1.02")
	a.Expect(map[int]string{35: "8", 150: "0", 11: "a1"})
	a.Order("a2", "1", "5", "1")
	a.Expect(map[int]string{35: "8", 150: "0", 11: "a2"})
	b.Order("b1", "2", "8", "0.99")
	b.Expect(map[int]string{35: "8", 150: "0", 11: "b1"})
	// 8 can trade from 0.99 to 1.02; the least imbalance is above 1, and bids are left.
	shows("auction: 8.000000 at 1.020000, 2.000000 left to buy")
	for watch.Expect(map[int]string{35: "f", 326: "21"})[331] != "8.000000" { // an earlier price
	}
	send("V", "262=md|263=0|264=1|265=1|267=3|269=0|269=4|269=A|146=1|55="+programtest.Symbol+"|")
	watch.Expect(map[int]string{35: "W", 268: "2", 270: "1.020000", 286: "5", 277: "P", 271: "2.000000"})
	if out := market("list"); !strings.Contains(out, "1.02") {
		t.Errorf("market list lacks the indicative price:\n%s", out)
	}

	market("resume", pair)
	b.Expect(map[int]string{35: "8", 150: "F", 11: "b1", 31: "1.020000", 32: "8.000000", 39: "2"})
	a.Expect(map[int]string{35: "8", 150: "F", 11: "a1", 31: "1.020000", 32: "8.000000", 151: "2.000000"})
	shows("trading")
	for watch.Expect(map[int]string{35: "f"})[326] != "17" { // the end of the call, and the uncrossing
	}
	var tape struct {
		Trades []feedtest.FeedTrade `json:"trades"`
	}
	programtest.GetJSON(t, s.Addresses.API+"/api/v1/market/trades?symbol="+programtest.Symbol, &tape)
	if len(tape.Trades) != 1 || tape.Trades[0].Price != "1.020000" || tape.Trades[0].Qty != "8.000000" {
		t.Errorf("REST has the trades %+v, want 8 at 1.02", tape.Trades)
	}
	var depth struct {
		Bids, Asks [][2]string
	}
	programtest.GetJSON(t, s.Addresses.API+"/api/v1/market/depth?symbol="+programtest.Symbol, &depth)
	if want := [][2]string{{"1.020000", "2.000000"}, {"1.000000", "5.000000"}}; len(depth.Asks) != 0 || fmt.Sprint(depth.Bids) != fmt.Sprint(want) {
		t.Errorf("REST has bids %v and asks %v, want %v and none", depth.Bids, depth.Asks, want)
	}
}

// awaitTicker reads the WebSocket until a ticker shows want.
func awaitTicker(t *testing.T, ws *websocket.Conn, want string) {
	t.Helper()
	if err := ws.SetReadDeadline(time.Now().Add(runtest.HangTimeout)); err != nil {
		t.Fatal(err)
	}
	last := ""
	for last != want {
		_, data, err := ws.ReadMessage()
		if err != nil {
			t.Fatalf("%v; the last ticker is %q, want %q", err, last, want)
		}
		var m auctionTicker
		if err := json.Unmarshal(data, &m); err != nil {
			t.Fatalf("%v: %s", err, data)
		}
		if m.Channel == "ticker" {
			last = m.String()
		}
	}
}
