package feedtest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"blockdesk/e2e/programtest"
	"blockdesk/internal/runtest"
)

// FeedMessage has the members of a WebSocket message that tests read.
type FeedMessage struct {
	Channel   string      `json:"channel"`
	Type      string      `json:"type"`
	Symbol    string      `json:"symbol"`
	Seq       uint64      `json:"seq"`
	EngineSeq uint64      `json:"engine_seq"`
	Bids      [][2]string `json:"bids"`
	Asks      [][2]string `json:"asks"`
	Trades    []FeedTrade `json:"trades"`
	Last      string      `json:"last"`
	Bid       string      `json:"bid"`
	Ask       string      `json:"ask"`
	Volume    string      `json:"volume_24h"`
}

// FeedTrade is one trade of a message.
type FeedTrade struct {
	ID    uint64 `json:"trade_id"`
	Price string `json:"price"`
	Qty   string `json:"qty"`
	Side  string `json:"side"`
}

// FeedUntil reads the feed until a message of a channel satisfies ready.
func FeedUntil(t *testing.T, conn *websocket.Conn, channel string, ready func(*FeedMessage) bool) *FeedMessage {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(runtest.HangTimeout)); err != nil {
		t.Fatal(err)
	}
	for {
		_, data, err := conn.ReadMessage()
		if err != nil {
			t.Fatalf("waiting for %s: %v", channel, err)
		}
		var m FeedMessage
		if err := json.Unmarshal(data, &m); err != nil {
			t.Fatalf("%v: %s", err, data)
		}
		if m.Channel == channel && ready(&m) {
			return &m
		}
	}
}

// Subscribe connects to the feed and subscribes to the market data of the first symbol.
func Subscribe(t *testing.T, url string) *websocket.Conn {
	t.Helper()
	conn, _, err := websocket.DefaultDialer.Dial(url+"/ws/rfq", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	request := `{"action":"SUBSCRIBE_MARKET","channels":["l2","trades","ticker"],"symbols":["` + programtest.Symbol + `"]}`
	if err := conn.WriteMessage(websocket.TextMessage, []byte(request)); err != nil {
		t.Fatal(err)
	}
	return conn
}
