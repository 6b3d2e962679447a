package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fasthttp/websocket"

	"blockdesk/e2e/feedtest"
	"blockdesk/e2e/programtest"
)

// feedClient follows two books and their trades over WebSocket, from node to node,
// by the messages alone. A message that does not follow from the one before it, without a
// snapshot between, is an unannounced gap.
type feedClient struct {
	nodes []string // URLs
	at    int

	mu       sync.Mutex
	books    map[string]*feedBook
	wrong    error
	messages int
	resumed  int // books that went on where they had been
	restarts int // closes with 1012
	lines    int // connections

	handshakes tolerance
	epochs     map[string]bool
}

// feedBook is one symbol as its messages show it.
type feedBook struct {
	epoch      string
	seq        uint64
	tradeEpoch string // and of the channel of trades
	trades     uint64
	last       uint64 // trade_id
	bids, asks map[string]string
}

// feedLine is what is read of a message.
type feedLine struct {
	feedtest.FeedMessage
	Epoch    string  `json:"epoch"`
	PrevSeq  uint64  `json:"prev_seq"`
	Checksum *uint32 `json:"checksum"`
	Success  *bool   `json:"success"`
	Resumed  []struct {
		Channel, Symbol string
		Resumed         bool
	} `json:"subscribed"`
}

func newFeedClient(nodes []string) *feedClient {
	c := &feedClient{nodes: nodes, books: map[string]*feedBook{}, epochs: map[string]bool{}, handshakes: tolerance{least: clusterLogon}}
	for _, symbol := range []string{programtest.Symbol, programtest.OtherSymbol} {
		c.books[symbol] = &feedBook{bids: map[string]string{}, asks: map[string]string{}}
	}
	return c
}

// run follows until ctx ends.
func (c *feedClient) run(ctx context.Context) {
	for ctx.Err() == nil && c.err() == nil {
		c.follow(ctx)
		c.at = (c.at + 1) % len(c.nodes)
		programtest.Pause(ctx, clusterRetry)
	}
}

func (c *feedClient) err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wrong
}

// follow reads one connection until it ends.
func (c *feedClient) follow(ctx context.Context) {
	began := time.Now()
	dialer := websocket.Dialer{HandshakeTimeout: c.handshakes.wait()}
	conn, resp, err := dialer.DialContext(ctx, c.nodes[c.at]+"/ws/rfq", nil)
	if resp != nil && resp.Body != nil {
		resp.Body.Close()
	}
	if err != nil {
		if time.Since(began) >= c.handshakes.wait() {
			c.handshakes.longer()
		}
		return
	}
	c.handshakes.shorter()
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if conn.WriteMessage(websocket.TextMessage, c.subscription()) != nil {
		return
	}
	c.mu.Lock()
	c.lines++
	c.mu.Unlock()
	for {
		// A heartbeat comes every second, where the node runs.
		if conn.SetReadDeadline(time.Now().Add(20*time.Second)) != nil {
			return
		}
		_, data, err := conn.ReadMessage()
		if closed := new(websocket.CloseError); errors.As(err, &closed) && closed.Code == websocket.CloseServiceRestart {
			c.mu.Lock()
			c.restarts++
			c.mu.Unlock()
		}
		if err != nil {
			return
		}
		c.mu.Lock()
		if err := c.take(data); err != nil && c.wrong == nil {
			c.wrong = err
		}
		over := c.wrong != nil
		c.mu.Unlock()
		if over {
			return
		}
	}
}

// subscription asks for everything, from where the books are.
func (c *feedClient) subscription() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	subscribe := map[string]any{
		"action": "SUBSCRIBE_MARKET", "channels": []string{"l2", "trades"}, "symbols": slices.Sorted(maps.Keys(c.books)),
		"id": "1", "depth": 50, "heartbeat": true,
	}
	resume := map[string]any{}
	for symbol, b := range c.books {
		if b.epoch != "" {
			resume["epoch"], resume["l2:"+symbol] = b.epoch, b.seq
		}
		if b.epoch != "" && b.tradeEpoch == b.epoch {
			resume["trades:"+symbol] = b.trades
		}
	}
	if len(resume) > 0 {
		subscribe["resume"] = resume
	}
	text, _ := json.Marshal(subscribe) // strings and numbers
	return text
}

// take applies one message. The caller holds mu.
func (c *feedClient) take(data []byte) error {
	var m feedLine
	if err := json.Unmarshal(data, &m); err != nil {
		return fmt.Errorf("%w: %.300s", err, data)
	}
	c.messages++
	if m.Channel == "control" && m.Success != nil {
		for _, s := range m.Resumed {
			if s.Resumed {
				c.resumed++
			}
		}
		if !*m.Success {
			return fmt.Errorf("the subscription is refused: %.300s", data)
		}
	}
	b := c.books[m.Symbol]
	if b == nil {
		return nil
	}
	c.epochs[m.Epoch] = true
	switch m.Channel {
	case "l2":
		return b.levels(&m, data)
	case "trades":
		return b.tape(&m, data)
	}
	return nil
}

func (b *feedBook) levels(m *feedLine, data []byte) error {
	switch {
	case m.Type == "snapshot":
		clear(b.bids)
		clear(b.asks)
	case m.Epoch != b.epoch || m.PrevSeq != b.seq || m.Seq != b.seq+1:
		return fmt.Errorf("an unannounced gap: at %s %d, then %.300s", b.epoch, b.seq, data)
	}
	b.epoch, b.seq = m.Epoch, m.Seq
	for i, side := range []map[string]string{b.bids, b.asks} {
		for _, l := range [][][2]string{m.Bids, m.Asks}[i] {
			if l[1] != "0" {
				side[l[0]] = l[1]
			} else if _, there := side[l[0]]; !there {
				return fmt.Errorf("level %s is deleted and was not there: %.300s", l[0], data)
			} else {
				delete(side, l[0])
			}
		}
	}
	if sum := b.checksum(); m.Checksum == nil || sum != *m.Checksum {
		return fmt.Errorf("checksum %d: %.300s", sum, data)
	}
	return nil
}

func (b *feedBook) tape(m *feedLine, data []byte) error {
	if m.Type != "snapshot" && (m.Epoch != b.tradeEpoch || m.PrevSeq != b.trades || m.Seq != b.trades+1) {
		return fmt.Errorf("an unannounced gap: at %s %d, then %.300s", b.tradeEpoch, b.trades, data)
	}
	b.tradeEpoch, b.trades = m.Epoch, m.Seq
	for _, t := range m.Trades {
		if m.Type != "snapshot" && t.ID <= b.last {
			return fmt.Errorf("trade %d after trade %d: %.300s", t.ID, b.last, data)
		}
		b.last = max(b.last, t.ID)
	}
	return nil
}

// checksum is Kraken's: asks then bids, the ten best of each.
func (b *feedBook) checksum() uint32 {
	var text strings.Builder
	for i, side := range []map[string]string{b.asks, b.bids} {
		prices := slices.Collect(maps.Keys(side))
		slices.SortFunc(prices, func(x, y string) int {
			if d := len(x) - len(y); d != 0 {
				return d
			}
			return strings.Compare(x, y)
		})
		if i == 1 {
			slices.Reverse(prices)
		}
		for _, p := range prices[:min(10, len(prices))] {
			for _, number := range []string{p, side[p]} {
				text.WriteString(strings.TrimLeft(strings.ReplaceAll(number, ".", ""), "0"))
			}
		}
	}
	return crc32.ChecksumIEEE([]byte(text.String()))
}

// same holds a book to what REST says of it, where both are of the same number; ok
// is false where they are not.
func (c *feedClient) same(symbol string, depth *programtest.Depth) (ok bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.books[symbol]
	if b.epoch != depth.Epoch || b.seq != depth.Seq {
		return false, nil
	}
	for name, side := range map[string]struct {
		ours  map[string]string
		there [][2]string
	}{"bids": {b.bids, depth.Bids}, "asks": {b.asks, depth.Asks}} {
		if len(side.ours) != min(len(side.there), 50) {
			return true, fmt.Errorf("%s: %d %s, REST has %d at seq %d", symbol, len(side.ours), name, len(side.there), b.seq)
		}
		for _, l := range side.there[:len(side.ours)] {
			if side.ours[l[0]] != l[1] {
				return true, fmt.Errorf("%s: %s %s is %q, REST has %q at seq %d", symbol, name, l[0], side.ours[l[0]], l[1], b.seq)
			}
		}
	}
	return true, nil
}
