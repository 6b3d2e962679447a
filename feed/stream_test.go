package feed

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/market"
)

const streamPath = "/api/v1/market/stream"

// sseClient reads server-sent events by the WHATWG's HTML standard, section 9.2.6,
// without the feed's code. Like Firefox and npm's eventsource, it ignores the id of an
// event without data.
type sseClient struct {
	t     testing.TB
	conn  net.Conn
	head  http.Header
	lines *bufio.Reader
	id    string // the last that was set: what a browser comes back with
	retry string
	// onID, if set, is called for each id.
	onID func(id string)
}

// sse is one event.
type sse struct{ name, data string }

// openStream opens a stream. id is sent as a browser does; empty = none.
func (d *testFeed) openStream(query, id string) *sseClient {
	d.t.Helper()
	s, status := d.tryStream(&net.Dialer{}, query, id)
	if status != http.StatusOK {
		d.t.Fatalf("GET %s: status %d", query, status)
	}
	return s
}

func (d *testFeed) tryStream(dialer *net.Dialer, query, id string) (*sseClient, int) {
	d.t.Helper()
	conn, err := dialer.Dial("tcp4", d.addr)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = conn.Close() })
	if id != "" {
		id = "Last-Event-ID: " + id + "\r\n"
	}
	_, _ = fmt.Fprintf(conn, "GET %s%s HTTP/1.1\r\nHost: x\r\n%s\r\n", streamPath, query, id)
	_ = conn.SetReadDeadline(time.Now().Add(runtest.HangTimeout))
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		d.t.Fatal(err)
	}
	return &sseClient{t: d.t, conn: conn, head: response.Header, lines: bufio.NewReader(response.Body), id: id}, response.StatusCode
}

// tryNext returns the next event.
func (s *sseClient) tryNext() (*sse, error) {
	e := &sse{}
	var id *string
	for {
		_ = s.conn.SetReadDeadline(time.Now().Add(runtest.HangTimeout))
		line, err := s.lines.ReadString('\n')
		if err != nil {
			return nil, err
		}
		if line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"); line == "" {
			if e.data != "" {
				if id != nil {
					if s.id = *id; s.onID != nil {
						s.onID(s.id)
					}
				}
				e.data = strings.TrimSuffix(e.data, "\n")
				return e, nil
			}
			e, id = &sse{}, nil
			continue
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "event":
			e.name = value
		case "data":
			e.data += value + "\n"
		case "id":
			id = &value
		case "retry":
			s.retry = value
		case "": // a comment
		default:
			return nil, fmt.Errorf("no field of an event: %q", line)
		}
	}
}

// next returns the next message.
func (s *sseClient) next() *msg {
	s.t.Helper()
	m, err := s.tryMessage()
	if err != nil {
		s.t.Fatal(err)
	}
	return m
}

// tryMessage returns the next message. It skips mark events after checking them.
func (s *sseClient) tryMessage() (*msg, error) {
	e, err := s.tryNext()
	for ; err == nil && e.name == "mark"; e, err = s.tryNext() {
		var m struct {
			Channel, Epoch string
			EngineSeq      uint64 `json:"engine_seq"`
		}
		if err := json.Unmarshal([]byte(e.data), &m); err != nil {
			return nil, err
		}
		if m.Channel != "mark" || fmt.Sprintf("%s-%d", m.Epoch, m.EngineSeq) != s.id {
			return nil, fmt.Errorf("id %q is of %s", s.id, e.data)
		}
	}
	if err != nil {
		return nil, err
	}
	m := &msg{raw: e.data}
	if err := json.Unmarshal([]byte(e.data), m); err != nil {
		return nil, err
	}
	if m.Channel != e.name {
		return nil, fmt.Errorf("event %q is %s", e.name, e.data)
	}
	return m, nil
}

// wait returns the next message of that channel and type ("" = any).
func (s *sseClient) wait(channel, form string) *msg {
	s.t.Helper()
	// Heartbeats never end.
	for deadline := time.Now().Add(runtest.HangTimeout); time.Now().Before(deadline); {
		if m := s.next(); m.Channel == channel && (form == "" || m.Type == form) {
			return m
		}
	}
	s.t.Fatalf("no %s %s in %v; %s", channel, form, runtest.HangTimeout, runtest.RerunCommand(s.t))
	return nil
}

// marked reads until the next id.
func (s *sseClient) marked() string {
	s.t.Helper()
	for s.id = ""; s.id == ""; {
		if _, err := s.tryNext(); err != nil {
			s.t.Fatal(err)
		}
	}
	return s.id
}

// The stream sends the WebSocket's messages, byte for byte, and its headers forbid
// caching and buffering.
func TestStreamMessages(t *testing.T) {
	d := newTestFeed(t, func(o *Options) { o.Heartbeat = 100 * time.Millisecond })
	d.order(0, market.Buy, 999_000, 12_000_500_000)
	d.settle()
	s, c := d.openStream("?symbols=SLUSD/USDC&depth=10", ""), d.dial()
	c.send(`{"action":"SUBSCRIBE_MARKET","channels":["ticker","l2","trades"],"symbols":["SLUSD/USDC"],"depth":10}`)
	for name, want := range map[string]string{
		"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-store", "X-Accel-Buffering": "no",
		"X-Content-Type-Options": "nosniff", "Access-Control-Allow-Origin": "*", "Content-Length": "",
	} {
		if got := s.head.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if s.head.Get("X-Request-Id") == "" {
		t.Error("no X-Request-Id")
	}
	if m := s.next(); m.Type != "welcome" || s.retry != "1000" {
		t.Errorf("retry %q, then %s", s.retry, m.raw)
	}
	if m, want := s.next(), c.next(); m.raw != want.raw || len(m.Subscribed) != 3 {
		t.Errorf("got  %s\nwant %s", m.raw, want.raw)
	}
	heartbeats := 0
	same := func() {
		t.Helper()
		for range 3 {
			m, want := s.next(), c.next()
			for ; m.Channel == "heartbeat"; m = s.next() {
				heartbeats++
			}
			if m.raw != want.raw {
				t.Errorf("got  %s\nwant %s", m.raw, want.raw)
			}
		}
	}
	same()
	d.order(0, market.Sell, 999_000, 500_000)
	same()
	for ; heartbeats == 0; heartbeats++ {
		if m := s.wait("heartbeat", ""); len(m.Seqs) != 3 || m.Seqs["l2:SLUSD/USDC"] != 3 {
			t.Error(m.raw)
		}
	}
	if h := d.feed.Health(); h.Streams != 1 || h.Connections != 2 || h.Shards != 2 || h.Subscriptions != 6 {
		t.Errorf("%+v", h)
	}
}

// A stream counts as a connection of its address. HEAD opens none.
func TestStreamLimits(t *testing.T) {
	d := newTestFeed(t, func(o *Options) { o.MaxPerIP = 2 })
	response, err := http.Head("http://" + d.addr + streamPath)
	if err != nil || response.StatusCode != 200 || !strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		t.Fatalf("HEAD: %v %+v", err, response)
	}
	_ = response.Body.Close()
	d.dial()
	s := d.openStream("", "")
	s.wait("l2", "snapshot")
	if _, status := d.tryStream(&net.Dialer{}, "", ""); status != http.StatusTooManyRequests {
		t.Errorf("one too many: status %d", status)
	}
	_ = s.conn.Close()
	await.True(t, "it to be gone", func() bool { h := d.feed.Health(); return h.Connections == 1 && h.Streams == 0 })
	d.openStream("", "").wait("l2", "snapshot")
}

// Input after the request is discarded up to a limit. Its end ends the stream.
func TestStreamInput(t *testing.T) {
	d := newTestFeed(t)
	s := d.openStream("", "")
	if _, err := s.conn.Write(make([]byte, maxStreamInput)); err != nil {
		t.Fatal(err)
	}
	d.order(0, market.Buy, 1, 1)
	s.wait("l2", "update")
	_, _ = s.conn.Write([]byte("x"))
	await.True(t, "it to be cut off", func() bool { return d.feed.Stats().Connections == 0 })

	s = d.openStream("", "")
	s.wait("l2", "snapshot")
	if err := s.conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	await.True(t, "it to be gone", func() bool { return d.feed.Stats().Connections == 0 })
}

// A client that stops reading gets an error and is closed, without delaying others.
func TestStreamSlow(t *testing.T) {
	d := newTestFeed(t, func(o *Options) {
		o.SlowAfter, o.SendBuffer, o.Shards = 100*time.Millisecond, 4<<10, 1
	})
	slow, status := d.tryStream(&tight, "?depth=100", "")
	if status != http.StatusOK {
		t.Fatal(status)
	}
	healthy := d.openStream("?symbols=SLUSD/USDC&channels=l2&depth=100", "")
	b := &clientBook{}
	if err := b.apply(healthy.wait("l2", "snapshot")); err != nil {
		t.Fatal(err)
	}
	for i := 0; d.feed.Stats().SlowConsumers == 0; i++ {
		d.order(0, market.Buy, market.Price(1+i), 1)
		if err := b.apply(healthy.wait("l2", "update")); err != nil {
			t.Fatal(err)
		}
	}
	var last *msg
	for {
		m, err := slow.tryMessage()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.Errorf("ended by %v", err)
			}
			break
		}
		last = m
	}
	if last == nil || last.Code != "SLOW_CONSUMER" || !last.Retryable {
		t.Errorf("the last message: %+v", last)
	}
	_ = slow.conn.Close()
	await.True(t, "it to be gone", func() bool { return d.feed.Stats().Connections == 1 })
}

// At the end a stream gets the pending messages, a restart message and a reconnection
// time.
func TestStreamRestart(t *testing.T) {
	d := newTestFeed(t)
	s := d.openStream("?channels=l2&symbol=SLUSD/USDC", "")
	s.wait("l2", "snapshot")
	d.order(0, market.Buy, 100, 1)
	go d.stop()
	s.wait("l2", "update")
	if m := s.wait("status", "restart"); m.Epoch != "e1" || len(s.retry) != 4 || s.retry < "2000" {
		t.Errorf("retry %s, %s", s.retry, m.raw)
	}
	if _, err := s.tryNext(); !errors.Is(err, io.EOF) {
		t.Errorf("then %v", err)
	}
}

// A stream of a feed that is not running is refused like a WebSocket.
func TestStreamNotRunning(t *testing.T) {
	d := newTestFeed(t)
	d.feed.running.Store(false)
	if s, status := d.tryStream(&net.Dialer{}, "", ""); status != http.StatusServiceUnavailable || s.head.Get("Retry-After") == "" {
		t.Errorf("status %d, %v", status, s.head)
	}
}
