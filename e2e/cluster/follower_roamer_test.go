package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fasthttp/websocket"

	"blockdesk/internal/runtest"
)

// roamers are WebSocket clients that move between the servers of one journal with
// `resume`, and hold what each server says against what all have said.
type roamers struct {
	urls    []string // of WebSockets: the leader's first
	symbols []string

	mu       sync.Mutex
	messages map[string]string // the message of any stream, by epoch and number
	ways     [][]int           // resumed moves, by from and to
	err      error             // the first thing that must not be

	updates, snapshots, moves, resumed, restarts, heartbeats atomic.Uint64
}

func newRoamers(symbols []string, urls ...string) *roamers {
	r := &roamers{urls: urls, symbols: symbols, messages: map[string]string{}}
	for range urls {
		r.ways = append(r.ways, make([]int, len(urls)))
	}
	return r
}

// broken returns the first error of any of them.
func (r *roamers) broken() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

func (r *roamers) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
	}
}

// compare records the message that a server sent at a position of a stream; another one must
// have said the same.
func (r *roamers) compare(at, what string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if before, known := r.messages[at]; known && before != what {
		return fmt.Errorf("at %s one server says %s, another %s", at, before, what)
	}
	r.messages[at] = what
	return nil
}

// roamer is one client. It knows the wire and nothing of the service's code.
type roamer struct {
	all     *roamers
	rng     *rand.Rand
	streams map[string]*roamed // by channel:symbol
	at      int                // the server that it is at, or was last
	epoch   string             // of the resume that is under way
}

// roamed is where a client is in one stream.
type roamed struct {
	epoch      string
	seq        uint64
	bids, asks map[string]string
	lastTrade  uint64
}

// roamerMessage is any message of a server.
type roamerMessage struct {
	Channel    string            `json:"channel"`
	Type       string            `json:"type"`
	Symbol     string            `json:"symbol"`
	Epoch      string            `json:"epoch"`
	Seq        uint64            `json:"seq"`
	PrevSeq    uint64            `json:"prev_seq"`
	EngineSeq  uint64            `json:"engine_seq"`
	TS         string            `json:"ts"`
	Bids       [][2]string       `json:"bids"`
	Asks       [][2]string       `json:"asks"`
	Checksum   uint32            `json:"checksum"`
	Trades     json.RawMessage   `json:"trades"`
	Seqs       map[string]uint64 `json:"seqs"`
	Subscribed []struct {
		Channel string `json:"channel"`
		Symbol  string `json:"symbol"`
		Seq     uint64 `json:"seq"`
		Resumed bool   `json:"resumed"`
	} `json:"subscribed"`
}

// roam moves from server to server until stop is closed.
func (r *roamers) roam(seed uint64, stop <-chan struct{}) {
	c := &roamer{all: r, rng: rand.New(rand.NewPCG(seed, 8)), streams: map[string]*roamed{}}
	for {
		select {
		case <-stop:
			return
		default:
		}
		to := c.rng.IntN(len(r.urls))
		if err := c.visit(to, stop); err != nil {
			r.fail(fmt.Errorf("roamer %d at server %d: %w", seed, to, err))
			return
		}
	}
}

// visit stays at a server for a while. A server that is away is no error.
func (c *roamer) visit(to int, stop <-chan struct{}) error {
	dialer := websocket.Dialer{HandshakeTimeout: runtest.HangTimeout}
	conn, _, err := dialer.Dial(c.all.urls[to]+"/ws/rfq", nil)
	if err != nil {
		time.Sleep(20 * time.Millisecond) // sleep: before the next server, where one is away
		return nil
	}
	defer conn.Close()
	if conn.WriteMessage(websocket.TextMessage, c.request()) != nil {
		return nil
	}
	c.all.moves.Add(1)
	until := time.Now().Add(time.Duration(50+c.rng.IntN(700)) * time.Millisecond)
	const least = 12 // messages, however slow the server is: more than it sends at first
	for n := 0; n < least || time.Now().Before(until); n++ {
		select {
		case <-stop:
			return nil
		default:
		}
		// A server that stands still, or is cut off, says nothing for a while.
		_ = conn.SetReadDeadline(time.Now().Add(runtest.HangTimeout))
		_, data, err := conn.ReadMessage()
		if closed := new(websocket.CloseError); errors.As(err, &closed) && closed.Code == websocket.CloseServiceRestart {
			c.all.restarts.Add(1)
		}
		if err != nil {
			return nil
		}
		if err := c.take(to, data); err != nil {
			return err
		}
	}
	return nil
}

// request subscribes to everything, from where the client is.
func (c *roamer) request() []byte {
	subscribe := map[string]any{"action": "SUBSCRIBE_MARKET", "channels": []string{"l2", "trades"}, "symbols": c.all.symbols, "heartbeat": true}
	resume := map[string]any{}
	c.epoch = ""
	for name, s := range c.streams {
		if c.epoch == "" {
			c.epoch = s.epoch
		}
		if s.epoch == c.epoch {
			resume[name] = s.seq
		}
	}
	if c.epoch != "" {
		resume["epoch"] = c.epoch
		subscribe["resume"] = resume
	}
	text, err := json.Marshal(subscribe)
	if err != nil {
		panic(err) // it is made of texts and numbers
	}
	return text
}

// take holds one message against where the client is.
func (c *roamer) take(to int, data []byte) error {
	var m roamerMessage
	if err := json.Unmarshal(data, &m); err != nil {
		return err
	}
	switch {
	case m.Channel == "control" && m.Type == "ack":
		return c.acknowledged(to, &m)
	case m.Channel == "heartbeat":
		c.all.heartbeats.Add(1)
		for name, seq := range m.Seqs {
			if s := c.streams[name]; s != nil && s.seq != seq {
				return fmt.Errorf("an undetected gap: %s at %s %d, the heartbeat says %d", name, s.epoch, s.seq, seq)
			}
		}
	case m.Channel == "l2" || m.Channel == "trades":
		if err := c.follow(&m); err != nil {
			return fmt.Errorf("%w: %.300s", err, data)
		}
	}
	return nil
}

// acknowledged notes what goes on without a snapshot.
func (c *roamer) acknowledged(to int, m *roamerMessage) error {
	for _, s := range m.Subscribed {
		name := s.Channel + ":" + s.Symbol
		at := c.streams[name]
		if !s.Resumed {
			delete(c.streams, name)
			continue
		}
		if at == nil || at.epoch != c.epoch || s.Seq < at.seq {
			return fmt.Errorf("%s is resumed up to %d, the client has %+v", name, s.Seq, at)
		}
		c.all.resumed.Add(1)
		c.all.mu.Lock()
		c.all.ways[c.at][to]++
		c.all.mu.Unlock()
	}
	c.at = to
	return nil
}

// follow takes a message of a stream.
func (c *roamer) follow(m *roamerMessage) error {
	name := m.Channel + ":" + m.Symbol
	s := c.streams[name]
	if m.Type == "snapshot" {
		c.all.snapshots.Add(1)
		s = &roamed{bids: map[string]string{}, asks: map[string]string{}}
		c.streams[name] = s
	} else {
		c.all.updates.Add(1)
		switch {
		case s == nil:
			return errors.New("an update before a snapshot")
		case m.Epoch != s.epoch || m.PrevSeq != s.seq || m.Seq != s.seq+1:
			return fmt.Errorf("an undetected gap or a repetition after %s %d", s.epoch, s.seq)
		}
	}
	s.epoch, s.seq = m.Epoch, m.Seq
	at := name + " " + m.Epoch + " " + strconv.FormatUint(m.Seq, 10)
	if m.Channel == "trades" {
		return s.trades(c.all, at, m)
	}
	if err := s.levels(m); err != nil {
		return err
	}
	return c.all.compare(at, fmt.Sprint(m.EngineSeq, " ", m.TS, " ", m.Checksum, " ", crc32.ChecksumIEEE([]byte(s.text()))))
}

// trades holds a message of trades against the last one that is known.
func (s *roamed) trades(all *roamers, at string, m *roamerMessage) error {
	var list []struct {
		ID uint64 `json:"trade_id"`
	}
	if err := json.Unmarshal(m.Trades, &list); err != nil {
		return err
	}
	if m.Type == "snapshot" {
		for i := range list {
			s.lastTrade = max(s.lastTrade, list[i].ID)
		}
		return nil
	}
	for i := range list {
		if list[i].ID <= s.lastTrade {
			return fmt.Errorf("trade %d again, after %d", list[i].ID, s.lastTrade)
		}
		s.lastTrade = list[i].ID
	}
	return all.compare(at, fmt.Sprint(m.EngineSeq, " ", m.TS, " ", string(m.Trades)))
}

// levels brings the book up to a message, whose checksum it must have then.
func (s *roamed) levels(m *roamerMessage) error {
	for _, side := range []struct {
		levels map[string]string
		change [][2]string
	}{{s.bids, m.Bids}, {s.asks, m.Asks}} {
		for _, l := range side.change {
			if l[1] == "0" {
				delete(side.levels, l[0])
			} else {
				side.levels[l[0]] = l[1]
			}
		}
	}
	var text strings.Builder
	for _, levels := range [][][2]string{sorted(s.asks, false), sorted(s.bids, true)} {
		for _, l := range levels[:min(10, len(levels))] {
			for _, number := range l {
				text.WriteString(strings.TrimLeft(strings.ReplaceAll(number, ".", ""), "0"))
			}
		}
	}
	if sum := crc32.ChecksumIEEE([]byte(text.String())); sum != m.Checksum {
		return fmt.Errorf("the book's checksum is %d, the message's %d", sum, m.Checksum)
	}
	return nil
}

// text is all of the book.
func (s *roamed) text() string { return fmt.Sprint(sorted(s.bids, true), sorted(s.asks, false)) }

// sorted returns the levels best first. All prices of a symbol have as many
// decimals.
func sorted(levels map[string]string, bids bool) [][2]string {
	list := make([][2]string, 0, len(levels))
	for p, q := range levels {
		list = append(list, [2]string{p, q})
	}
	slices.SortFunc(list, func(a, b [2]string) int {
		n := len(a[0]) - len(b[0])
		if n == 0 {
			n = strings.Compare(a[0], b[0])
		}
		if bids {
			n = -n
		}
		return n
	})
	return list
}
