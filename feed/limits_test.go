package feed

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"blockdesk/engine/marketdata"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/market"
)

func TestConnectionLimits(t *testing.T) {
	d := newTestFeed(t, func(o *Options) { o.MaxPerIP = 3 })
	var all []*client
	for range 3 {
		all = append(all, d.dial())
	}
	refused := func(d *testFeed, status int, code string) {
		t.Helper()
		_, response, err := websocket.DefaultDialer.Dial("ws://"+d.addr+"/ws/rfq", nil)
		if !errors.Is(err, websocket.ErrBadHandshake) || response.StatusCode != status {
			t.Fatalf("one too many: %v, %+v", err, response)
		}
		body := make([]byte, 1000)
		n, _ := response.Body.Read(body)
		if !bytes.Contains(body[:n], []byte(code)) || response.Header.Get("Retry-After") == "" {
			t.Errorf("answer %s", body[:n])
		}
		for name, want := range map[string]string{
			"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Access-Control-Allow-Origin": "*",
		} {
			if got := response.Header.Get(name); got != want {
				t.Errorf("%s: %q", name, got)
			}
		}
	}
	refused(d, 429, `"code":"RATE_LIMITED"`)
	_ = all[0].ws.Close()
	await.True(t, "one to be gone", func() bool { return d.feed.Stats().Connections == 2 })
	d.dial()

	d = newTestFeed(t, func(o *Options) { o.MaxConnections = 2 })
	d.dial()
	d.dial()
	refused(d, 503, `"code":"OVERLOADED"`)
	if n := d.feed.Stats().Refused; n != 1 {
		t.Errorf("%d refused", n)
	}
}

func TestNotAnUpgrade(t *testing.T) {
	d := newTestFeed(t)
	conn, err := net.Dial("tcp4", d.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = fmt.Fprintf(conn, "GET /ws/rfq HTTP/1.1\r\nHost: x\r\n\r\n")
	r := &raw{t, conn}
	if got := r.until("}"); !bytes.HasPrefix(got, []byte("HTTP/1.1 400 ")) || !bytes.Contains(got, []byte(`"ok":false,"code":"INVALID_FIELD"`)) {
		t.Errorf("%s", got)
	}
}

// A handshake whose key is not 16 bytes is refused (RFC 6455, section 4.2.1).
func TestBadKeys(t *testing.T) {
	d := newTestFeed(t)
	for key, status := range map[string]string{
		"dGhlIHNhbXBsZSBub25jZQ==": "101", "short": "400", "dGhlIHNhbXBsZSBub25jZ": "400", "dGhlIHNhbXBsZSBub25jZSEh": "400",
		"dGhlIHNhbXBsZSBub25j!Q==": "400", "dGhlIHNhbXBsZSBub25jZQ==dGhlIHNhbXBsZSBub25jZQ==": "400",
	} {
		conn, err := net.Dial("tcp4", d.addr)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = fmt.Fprintf(conn, "GET /ws/rfq HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
			"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n\r\n", key)
		r := &raw{t, conn}
		if got := r.until("}"); !bytes.HasPrefix(got, []byte("HTTP/1.1 "+status+" ")) {
			t.Errorf("%q: %s", key, got)
		}
		_ = conn.Close()
	}
}

func TestFrameLimit(t *testing.T) {
	d := newTestFeed(t)
	message := func(size int) string {
		text := `{"action":"PING","pad":"`
		return text + strings.Repeat("x", size-len(text)-2) + `"}`
	}
	c := d.dial()
	c.send(message(MaxFrame))
	if m := c.next(); m.Type != "pong" {
		t.Fatal(m.raw)
	}
	c.send(message(MaxFrame + 1))
	if code := c.closed(); code != CloseFrameTooBig {
		t.Errorf("close code %d", code)
	}
}

func TestMessageRate(t *testing.T) {
	d := newTestFeed(t, func(o *Options) { o.MessagesPerSecond = 20 })
	within, beyond := d.dial(), d.dialRaw(t)
	for range 20 {
		within.send(`{"action":"PING"}`)
	}
	for range 20 {
		if m := within.next(); m.Type != "pong" {
			t.Fatal(m.raw)
		}
	}
	// A slow reader spreads them over time, and more than 20 are allowed.
	tooMany := string([]byte{CloseTooManyMessage >> 8, CloseTooManyMessage & 0xff})
	_, _ = beyond.conn.Write(bytes.Repeat(masked(0x81, `{"action":"PING"}`), 2000))
	beyond.until(tooMany)
	// Control frames count too.
	flood := d.dialRaw(t)
	_, _ = flood.conn.Write(bytes.Repeat(masked(0x89, "x"), 2000))
	flood.until(tooMany)
	for _, message := range [][]byte{masked(0x81, `{"action":"PING"}`), masked(0x89, "x")} {
		if n := acceptedAtOnce(t, message, 21); n != 20 {
			t.Errorf("%d of 21 messages are heard at once, want 20", n)
		}
	}
}

func TestNoSubscription(t *testing.T) {
	d := newTestFeed(t, func(o *Options) { o.SubscribeWithin = 100 * time.Millisecond; o.Heartbeat = 50 * time.Millisecond })
	if code := d.dial().closed(); code != CloseNoSubscription {
		t.Errorf("close code %d", code)
	}
	// On a slow machine a client may be late with its first request.
	const request = `{"action":"SUBSCRIBE_MARKET","channels":["l2"],"symbols":["SLUSD/USDC"],"heartbeat":true}`
	var busy *client
	await.NoError(t, "a client that subscribes in time", func() error {
		busy = d.dial()
		_ = busy.ws.WriteMessage(websocket.TextMessage, []byte(request))
		_, err := busy.tryNext()
		return err
	})
	for range 4 {
		busy.wait("heartbeat", "")
	}
	busy.send(`{"action":"UNSUBSCRIBE_MARKET","channels":["l2"],"symbols":["SLUSD/USDC"]}`)
	if code := busy.closed(); code != CloseNoSubscription {
		t.Errorf("close code %d", code)
	}
}

// A connection may have no subscription for SubscribeWithin, at any time.
func TestSubscribeWithin(t *testing.T) {
	f, err := New(Options{Shards: 1}, instruments(), marketdata.New(), 1)
	if err != nil {
		t.Fatal(err)
	}
	within := f.o.SubscribeWithin
	s, c := f.shards[0], &conn{phase: phaseOpen, unsubscribedSince: time.Unix(1, 0)}
	heartbeat := func(at time.Time, want phase) {
		t.Helper()
		s.now = at
		if s.heartbeat(c); c.phase != want {
			t.Fatalf("phase %d, want %d", c.phase, want)
		}
	}
	heartbeat(c.unsubscribedSince.Add(within-1), phaseOpen)
	sub := s.add(c, topicRef{in: f.set.Get(0), kind: trades})
	heartbeat(s.now.Add(10*within), phaseOpen)
	s.remove(sub)
	heartbeat(s.now.Add(within-1), phaseOpen)
	heartbeat(s.now.Add(1), phaseClosing)
}

func TestSubscriptionLimit(t *testing.T) {
	d := newTestFeed(t, func(o *Options) { o.MaxSubscriptions = 3 })
	c := d.dial()
	c.send(`{"action":"SUBSCRIBE_MARKET","channels":["l2","trades"],"symbols":["SLUSD/USDC","92C/SLUSD"]}`)
	if m := c.next(); len(m.Subscribed) != 3 || len(m.Rejected) != 1 || m.Rejected[0].Code != "TOO_MANY_SUBSCRIPTIONS" {
		t.Fatal(m.raw)
	}
}

// raw sends arbitrary bytes to the server, unlike a library.
type raw struct {
	t    *testing.T
	conn net.Conn
}

func (d *testFeed) dialRaw(t *testing.T) *raw {
	t.Helper()
	conn, err := tight.Dial("tcp4", d.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_, _ = fmt.Fprintf(conn, "GET /ws/rfq HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	r := &raw{t, conn}
	r.until("welcome")
	return r
}

// until reads until that text and returns all input.
func (r *raw) until(text string) []byte {
	r.t.Helper()
	var all []byte
	buf := make([]byte, 4096)
	_ = r.conn.SetReadDeadline(time.Now().Add(runtest.HangTimeout))
	for !bytes.Contains(all, []byte(text)) {
		n, err := r.conn.Read(buf)
		all = append(all, buf[:n]...)
		if err != nil {
			r.t.Fatalf("no %q in %q: %v", text, all, err)
		}
	}
	return all
}

// masked returns a frame with a zero mask.
func masked(head byte, payload string) []byte {
	frame := []byte{head, 0x80 | byte(len(payload)), 0, 0, 0, 0}
	return append(frame, payload...)
}

func TestFramesAsTheyCome(t *testing.T) {
	d := newTestFeed(t)
	r := d.dialRaw(t)
	// Byte by byte.
	for _, b := range masked(0x81, `{"action":"PING","id":"split"}`) {
		if _, err := r.conn.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	r.until(`"id":"split"`)
	// In fragments, with a ping in between, all in one write.
	var all []byte
	all = append(all, masked(0x01, `{"action":"PI`)...)
	all = append(all, masked(0x89, `beep`)...)
	all = append(all, masked(0x00, `NG","id":"frag`)...)
	all = append(all, masked(0x80, `ments"}`)...)
	_, _ = r.conn.Write(all)
	if got := r.until(`"id":"fragments"`); !bytes.Contains(got, append([]byte{0x8a, 4}, "beep"...)) {
		t.Errorf("no pong in %q", got)
	}
}

func TestBadFrames(t *testing.T) {
	d := newTestFeed(t)
	closing := func(code uint16) string { return string([]byte{byte(code >> 8), byte(code)}) }
	tests := []struct {
		name  string
		frame []byte
		want  string
	}{
		{"no mask", []byte{0x81, 2, '{', '}'}, closing(CloseProtocol) + "frame without a mask"},
		{"reserved bit", masked(0xc1, "{}"), closing(CloseProtocol) + "reserved bit set"},
		{"opcode", masked(0x83, ""), closing(CloseProtocol) + "unknown opcode"},
		{"long control", append([]byte{0x89, 0xfe, 0, 126, 0, 0, 0, 0}, make([]byte, 126)...), closing(CloseProtocol) + "control frame over 125 bytes"},
		{"continuation of nothing", masked(0x80, "{}"), closing(CloseProtocol) + "continuation frame without a message"},
		{"length of 2^62", []byte{0x81, 0xff, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, closing(CloseFrameTooBig)},
		{"text that is not UTF-8", masked(0x81, "\xff"), closing(CloseBadData)},
		{"close with a code that is none", masked(0x88, closing(1005)), closing(CloseProtocol)},
		{"normal close", masked(0x88, closing(CloseNormal)), closing(CloseNormal)},
		{"close without a code", masked(0x88, ""), closing(CloseNormal)},
	}
	for _, test := range tests {
		r := d.dialRaw(t)
		_, _ = r.conn.Write(test.frame)
		got := r.until(test.want)
		if i := bytes.Index(got, []byte(test.want)); i < 2 || got[i-2] != finClose {
			t.Errorf("%s: %q", test.name, got)
		}
		// The server ends its half; the socket is then ours to close.
		if n, err := r.conn.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Errorf("%s: %d bytes after the close frame, %v", test.name, n, err)
		}
		_ = r.conn.Close()
	}
	await.True(t, "all to be gone", func() bool { return d.feed.Stats().Connections == 0 })
}

const subscribeDeep = `{"action":"SUBSCRIBE_MARKET","channels":["l2","ticker"],"symbols":["SLUSD/USDC"],"depth":100}`

// stalled subscribes a client that reads only its first snapshot, and another that reads
// on. serve changes the book and waits until the other has the update.
func stalled(t *testing.T, d *testFeed) (r *raw, serve func()) {
	t.Helper()
	r = d.dialRaw(t)
	_, _ = r.conn.Write(masked(0x81, subscribeDeep))
	r.until(`"type":"snapshot"`)
	healthy := d.dial()
	healthy.send(subscribeDeep)
	b, price := &clientBook{}, market.Price(0)
	if err := b.apply(healthy.wait("l2", "snapshot")); err != nil {
		t.Fatal(err)
	}
	return r, func() {
		t.Helper()
		price++
		d.order(0, market.Buy, price, 1)
		if err := b.apply(healthy.wait("l2", "update")); err != nil {
			t.Fatal(err)
		}
	}
}

// A client that stops reading gets an error and is closed. If it reads the message and
// does not close, it is aborted.
func TestSlowConsumer(t *testing.T) {
	d := newTestFeed(t, func(o *Options) { o.SlowAfter, o.SendBuffer, o.Shards = 100*time.Millisecond, 4<<10, 1 })
	r, serve := stalled(t, d)
	for d.feed.Stats().SlowConsumers == 0 {
		serve()
	}
	got := r.until(string([]byte{CloseSlowConsumer >> 8, CloseSlowConsumer & 0xff}) + "SLOW_CONSUMER")
	if !bytes.Contains(got, []byte(`"code":"SLOW_CONSUMER"`)) {
		t.Error("no error message before the close")
	}
	_ = r.conn.Close()
	await.True(t, "it to be gone", func() bool { return d.feed.Stats().Connections == 1 })
	if s := d.feed.Stats(); s.Collapsed+s.Conflated == 0 {
		t.Errorf("nothing was conflated: %+v", s)
	}
}

// A slow client that never reads again is aborted after CloseWithin.
func TestSlowConsumerIsCutOff(t *testing.T) {
	d := newTestFeed(t, func(o *Options) {
		o.SlowAfter, o.CloseWithin, o.SendBuffer, o.Shards = 50*time.Millisecond, 50*time.Millisecond, 4<<10, 1
	})
	_, serve := stalled(t, d)
	for d.feed.Stats().SlowConsumers == 0 {
		serve()
	}
	await.True(t, "it to be cut off", func() bool { return d.feed.Stats().Connections == 1 })
}

// While a client has stopped reading, the other clients of its shard get every update.
func TestStalledHoldsUpNobody(t *testing.T) {
	d := newTestFeed(t, func(o *Options) { o.SendBuffer, o.Shards = 4<<10, 1 })
	_, serve := stalled(t, d)
	for s := d.feed.Stats(); s.Collapsed+s.Conflated == 0; s = d.feed.Stats() {
		serve() // until the socket is full
	}
	for range 200 {
		serve()
	}
	if s := d.feed.Stats(); s.Connections != 2 || s.SlowConsumers != 0 {
		t.Errorf("%+v", s)
	}
}
