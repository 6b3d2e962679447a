package feed

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"blockdesk/engine/marketdata"
	"blockdesk/internal/await"
	"blockdesk/internal/ratelimit"
	"blockdesk/internal/runtest"
	"blockdesk/market"
)

// goodClient is a well-behaved client on the shard of hostile ones. It must be served and
// miss nothing.
type goodClient struct {
	t     *testing.T
	desk  *testFeed
	c     *client
	book  clientBook
	price market.Price
}

// newHostileFeed runs a feed of one shard, so that the good client shares reader and
// writer with all others.
func newHostileFeed(t *testing.T, change ...feedOption) (*testFeed, *goodClient) {
	t.Helper()
	d := newTestFeed(t, append([]feedOption{func(o *Options) { o.Shards, o.MaxPerIP = 1, 1000 }}, change...)...)
	w := &goodClient{t: t, desk: d, c: d.dial()}
	w.c.send(`{"action":"SUBSCRIBE_MARKET","channels":["l2"],"symbols":["SLUSD/USDC"],"depth":10}`)
	if err := w.book.apply(w.c.wait("l2", "snapshot")); err != nil {
		t.Fatal(err)
	}
	return d, w
}

// served changes the book and waits until the good client gets the update.
func (w *goodClient) served() {
	w.t.Helper()
	w.price++
	w.desk.order(0, market.Buy, w.price, 1)
	if err := w.book.apply(w.c.wait("l2", "update")); err != nil {
		w.t.Fatal(err)
	}
}

// rawClient sends arbitrary bytes to the server, unlike a library.
type rawClient struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
	head http.Header // of the answer to the upgrade
}

// connectRaw connects and reads the welcome. extensions is its offer.
func (d *testFeed) connectRaw(t *testing.T, extensions string) *rawClient {
	t.Helper()
	conn, err := net.Dial("tcp4", d.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if extensions != "" {
		extensions = "Sec-WebSocket-Extensions: " + extensions + "\r\n"
	}
	i := &rawClient{t: t, conn: conn, in: bufio.NewReaderSize(conn, 512)}
	i.write([]byte("GET /ws/rfq HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" + extensions +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"))
	_ = conn.SetReadDeadline(time.Now().Add(runtest.HangTimeout))
	answer, err := http.ReadResponse(i.in, nil)
	if err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%+v, %v", answer, err)
	}
	_ = answer.Body.Close()
	i.head = answer.Header
	if _, text, err := i.frame(); err != nil || !bytes.Contains(text, []byte("welcome")) {
		t.Fatalf("no welcome first: %q, %v", text, err)
	}
	return i
}

// write sends bytes. It ignores errors, because reading reports a closed connection.
func (i *rawClient) write(all ...[]byte) {
	_ = i.conn.SetWriteDeadline(time.Now().Add(runtest.HangTimeout))
	_, _ = i.conn.Write(bytes.Join(all, nil))
}

// frame reads the server's next frame.
func (i *rawClient) frame() (head byte, payload []byte, err error) {
	_ = i.conn.SetReadDeadline(time.Now().Add(runtest.HangTimeout))
	var start [2]byte
	if _, err := io.ReadFull(i.in, start[:]); err != nil {
		return 0, nil, err
	}
	length := uint64(start[1])
	switch start[1] {
	case 126:
		var more [2]byte
		_, err = io.ReadFull(i.in, more[:])
		length = uint64(binary.BigEndian.Uint16(more[:]))
	case 127:
		var more [8]byte
		_, err = io.ReadFull(i.in, more[:])
		length = binary.BigEndian.Uint64(more[:])
	}
	if err != nil || length > 1<<20 {
		return 0, nil, fmt.Errorf("a frame of %d bytes: %w", length, err)
	}
	payload = make([]byte, length)
	_, err = io.ReadFull(i.in, payload)
	return start[0], payload, err
}

// answer reads frames until one has that text.
func (i *rawClient) answer(text string) (head byte, payload []byte) {
	i.t.Helper()
	for {
		head, payload, err := i.frame()
		if err != nil {
			i.t.Fatalf("no %q: %v", text, err)
		}
		if bytes.Contains(payload, []byte(text)) {
			return head, payload
		}
	}
}

// closed reads to the end, which must be a close frame and the end of the
// server's half, and returns the code.
func (i *rawClient) closed() (uint16, error) {
	defer i.conn.Close()
	for {
		head, payload, err := i.frame()
		if err != nil {
			return 0, fmt.Errorf("no close frame: %w", err)
		}
		if head != finClose {
			continue
		}
		if len(payload) < 2 {
			return 0, fmt.Errorf("a close frame of %d bytes", len(payload))
		}
		if n, err := i.in.Read(make([]byte, 1)); err == nil {
			return 0, fmt.Errorf("%d bytes behind the close frame", n)
		}
		return binary.BigEndian.Uint16(payload), nil
	}
}

// inUse returns the memory in use after a garbage collection.
func inUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // the first may leave what a pool held
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// bomb returns n zeros compressed about 1,000:1.
func bomb(t testing.TB, n int) string { return string(zip(t, make([]byte, n), 9)) }

// fragmented returns a message in frames of size bytes.
func fragmented(head byte, payload string, size int) []byte {
	if len(payload) <= size {
		return sent(head, payload)
	}
	all := sent(head&^0x80, payload[:size])
	for payload = payload[size:]; len(payload) > size; payload = payload[size:] {
		all = append(all, sent(0x00, payload[:size])...)
	}
	return append(all, sent(0x80, payload)...)
}

// hostile is an input and its expected end: a close code or, for zero, the text of an
// answer.
type hostile struct {
	name   string
	data   []byte
	code   uint16
	answer string
}

func closeWith(code uint16, reason string) []byte {
	return sent(0x88, string(binary.BigEndian.AppendUint16(nil, code))+reason)
}

func hostilePlain() []hostile {
	long := strings.Repeat("x", MaxFrame)
	declared := func(length uint64) []byte {
		return append(binary.BigEndian.AppendUint64([]byte{0x81, 0xff}, length), "\x00\x00\x00\x00{}"...)
	}
	ping := `{"action":"PING","id":"after"}`
	garbled := sent(0x81, ping)
	garbled[2] ^= 0x80 // the first byte of the mask
	all := []hostile{
		{name: "declared 2^63", data: declared(1 << 63), code: CloseProtocol},
		{name: "declared 2^64-1", data: declared(1<<64 - 1), code: CloseProtocol},
		{name: "declared 2^63-1", data: declared(1<<63 - 1), code: CloseFrameTooBig},
		{name: "16 KiB + 1", data: sent(0x81, long+"x"), code: CloseFrameTooBig},
		{name: "16 KiB + 1 in fragments of 100", data: fragmented(0x81, long+"x", 100), code: CloseFrameTooBig},
		{name: "16 KiB in fragments of 16", data: fragmented(0x81, long, 16), answer: `"code":"BAD_REQUEST"`},
		{name: "more fragments than a message may have", data: fragmented(0x81, long[:maxFragments+1], 1), code: CloseTooManyMessage},
		{name: "empty fragments without end", data: append(sent(0x01, ""), bytes.Repeat(sent(0x00, ""), 100_000)...), code: CloseTooManyMessage},
		{name: "unmasked", data: []byte("\x81\x02{}"), code: CloseProtocol},
		{name: "unmasked close", data: []byte("\x88\x02\x03\xe8"), code: CloseProtocol},
		{name: "masked wrong", data: garbled, code: CloseBadData},
		{name: "compressed without agreement", data: sent(0xc1, ping), code: CloseProtocol},
		{name: "length in more bytes than it needs", data: []byte("\x81\xfe\x00\x02\x00\x00\x00\x00{}"), code: CloseProtocol},
		{name: "control in fragments", data: sent(0x09, "x"), code: CloseProtocol},
		{name: "control of 126 bytes", data: sent(0x8a, long[:126]), code: CloseProtocol},
		{name: "close of one byte", data: sent(0x88, "x"), code: CloseProtocol},
		{name: "close with a reason that is not UTF-8", data: closeWith(CloseNormal, "\xc3"), code: CloseBadData},
		{name: "continuation of nothing", data: sent(0x80, ping), code: CloseProtocol},
		{name: "message in a message", data: frames(sent(0x01, ping), sent(0x81, ping)), code: CloseProtocol},
		{name: "text that is not UTF-8", data: sent(0x81, `{"action":"`+"\xf0\x28\x8c\x28"+`"}`), code: CloseBadData},
		{name: "a surrogate in text", data: sent(0x81, "\xed\xa0\x80"), code: CloseBadData},
		{name: "text that ends in half a rune", data: sent(0x81, "\xe2\x82"), code: CloseBadData},
		{name: "a rune in two fragments", data: frames(sent(0x01, "\xe2\x82"), sent(0x80, "\xac")), answer: `"code":"BAD_REQUEST"`},
		{name: "binary that is not UTF-8", data: sent(0x82, "\xff\xfe"), answer: `"code":"BAD_REQUEST"`},
		{name: "a ping in a message", data: frames(sent(0x01, ping[:9]), sent(0x89, "beep"), sent(0x80, ping[9:])), answer: `"id":"after"`},
		{name: "HTTP", data: []byte("GET /ws/rfq HTTP/1.1\r\nHost: x\r\n\r\n"), code: CloseProtocol},
		{name: "a TLS hello", data: []byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), code: CloseProtocol},
	}
	for _, bit := range []byte{0x20, 0x10, 0x70} {
		all = append(all, hostile{name: fmt.Sprintf("reserved bits %#x", bit), data: sent(0x81|bit, ping), code: CloseProtocol})
	}
	for _, opcode := range []byte{3, 4, 5, 6, 7, 0xb, 0xc, 0xd, 0xe, 0xf} {
		all = append(all, hostile{name: fmt.Sprintf("opcode %#x", opcode), data: sent(0x80|opcode, ""), code: CloseProtocol})
	}
	for _, code := range []uint16{0, 999, 1004, 1005, 1006, 1015, 1016, 2000, 2999, 5000, 65535} {
		all = append(all, hostile{name: fmt.Sprintf("close code %d", code), data: closeWith(code, ""), code: CloseProtocol})
	}
	for _, code := range []uint16{1000, 1001, 1011, 3000, 4999} {
		all = append(all, hostile{name: fmt.Sprintf("close code %d", code), data: closeWith(code, "bye"), code: code})
	}
	return all
}

func hostileDeflated(t testing.TB) []hostile {
	ping := string(zip(t, []byte(`{"action":"PING","id":"after"}`), 9))
	noise := make([]byte, MaxFrame)
	_, _ = rand.NewChaCha8([32]byte{3}).Read(noise)
	small := bomb(t, 10<<20)
	return []hostile{
		{name: "a request", data: sent(0xc1, ping), answer: `"id":"after"`},
		{name: "a request in fragments", data: fragmented(0xc1, ping, 7), answer: `"id":"after"`},
		{name: "a request that is not compressed", data: sent(0x81, `{"action":"PING","id":"after"}`), answer: `"id":"after"`},
		{name: "16 KiB", data: sent(0xc1, bomb(t, MaxFrame)), answer: `"code":"BAD_REQUEST"`},
		{name: "16 KiB + 1", data: sent(0xc1, bomb(t, MaxFrame+1)), code: CloseFrameTooBig},
		{name: "10 MiB in 10 KiB", data: sent(0xc1, small), code: CloseFrameTooBig},
		{name: "10 MiB in fragments", data: fragmented(0xc1, small, 500), code: CloseFrameTooBig},
		{name: "10 MiB in binary", data: sent(0xc2, small), code: CloseFrameTooBig},
		{name: "1 GiB in 1 MiB", data: sent(0xc1, strings.Repeat(small, 100)), code: CloseFrameTooBig},
		// Only one layer is decompressed; its content is text.
		{name: "10 MiB in a bomb in a bomb", data: sent(0xc1, string(zip(t, []byte(small), 9))), code: CloseBadData},
		{name: "blocks without end", data: sent(0xc1, string(blocks())), answer: `"code":"BAD_REQUEST"`},
		{name: "noise", data: sent(0xc1, string(noise[:1000])), code: CloseBadData},
		{name: "16 KiB + 1 of noise", data: sent(0xc1, string(noise)+"x"), code: CloseFrameTooBig},
		{name: "text that says it is compressed", data: sent(0xc1, `{"action":"PING"}`), code: CloseBadData},
		{name: "nothing that says it is compressed", data: sent(0xc1, ""), code: CloseBadData},
		{name: "cut short", data: sent(0xc1, ping[:len(ping)/2]), code: CloseBadData},
		{name: "text that is not UTF-8", data: sent(0xc1, string(zip(t, []byte("\xff"), 9))), code: CloseBadData},
		{name: "compressed only from the second frame on", data: frames(sent(0x01, ping[:3]), sent(0xc0, ping[3:])), code: CloseProtocol},
		{name: "compressed in both frames", data: frames(sent(0x41, ping[:3]), sent(0xc0, ping[3:])), code: CloseProtocol},
		{name: "compressed ping", data: sent(0xc9, ping), code: CloseProtocol},
		{name: "RSV2", data: sent(0xa1, ping), code: CloseProtocol},
	}
}

// Every hostile input gets the right code, its memory is freed, and the good client is
// served meanwhile.
func TestHostileFrames(t *testing.T) {
	d, w := newHostileFeed(t)
	try := func(h *hostile, offer string) {
		t.Helper()
		i := d.connectRaw(t, offer)
		half := len(h.data) / 2
		i.write(h.data[:half])
		w.served()
		i.write(h.data[half:])
		if h.code == 0 {
			i.answer(h.answer)
		} else if code, err := i.closed(); code != h.code {
			t.Errorf("%s: close code %d, want %d, %v", h.name, code, h.code, err)
		}
		_ = i.conn.Close()
		w.served()
	}
	const offer = "permessage-deflate"
	all, compressed := hostilePlain(), hostileDeflated(t)
	round := func() {
		for i := range all {
			try(&all[i], "")
		}
		for i := range compressed {
			try(&compressed[i], offer)
		}
		await.True(t, "all to be gone", func() bool { return d.feed.Stats().Connections == 1 })
	}
	round() // what shards and readers work in has its size after it
	before := inUse()
	round()
	await.Value(t, "the memory of the second round to be given back",
		func() int64 { return inUse() - before }, func(grown int64) bool { return grown <= 1<<20 })
}

// The same for all of them at once, each in pieces of another size.
func TestHostileClients(t *testing.T) {
	d, w := newHostileFeed(t)
	all := append(hostilePlain(), hostileDeflated(t)...)
	ends := make(chan error, len(all))
	for k := range all {
		h, i := &all[k], d.connectRaw(t, "permessage-deflate")
		piece := 1 + len(h.data)/(2+k%5)
		go func() {
			for data := h.data; len(data) > 0; data = data[min(piece, len(data)):] {
				i.write(data[:min(piece, len(data))])
			}
			// Clients that did nothing wrong close in the end.
			i.write(closeWith(CloseNormal, ""))
			_, err := i.closed()
			ends <- err
		}()
	}
	for ended := 0; ended < len(all); {
		select {
		case err := <-ends:
			if err != nil {
				t.Error(err)
			}
			ended++
		default:
			w.served()
		}
	}
	await.True(t, "all to be gone", func() bool { return d.feed.Stats().Connections == 1 })
}

// A frame split at any byte is the same frame.
func TestSplitFrames(t *testing.T) {
	d, w := newHostileFeed(t, func(o *Options) { o.MessagesPerSecond = 10_000 })
	ping := `{"action":"PING","id":"split"}`
	for _, test := range []struct {
		name, offer string
		data        []byte
	}{
		{"plain", "", frames(sent(0x01, ping[:5]), sent(0x89, "beep"), sent(0x00, ""), sent(0x80, ping[5:]))},
		{"compressed", "permessage-deflate", fragmented(0xc1, string(zip(t, []byte(ping), 9)), 20)},
		{"long", "", sent(0x81, `{"pad":"`+strings.Repeat("x", 200)+`",`+ping[1:])},
	} {
		i := d.connectRaw(t, test.offer)
		for cut := range len(test.data) {
			i.write(test.data[:cut])
			// Once the good client has its answer, the reader has read the first part.
			w.c.send(`{"action":"PING"}`)
			w.c.wait("control", "pong")
			i.write(test.data[cut:])
			i.answer(`"id":"split"`)
		}
		for _, b := range test.data {
			i.write([]byte{b})
		}
		i.answer(`"id":"split"`)
		_ = i.conn.Close()
	}
	w.served()
}

// A flood ends with 4029. It holds no memory and does not delay the good client, even
// without a rate limit.
func TestFloods(t *testing.T) {
	subscribe := sent(0x81, `{"action":"SUBSCRIBE_MARKET","channels":["l2","trades","ticker"],"symbols":["SLUSD/USDC","92C/SLUSD","AAA/BBB"]}`)
	resync := sent(0x81, `{"action":"RESYNC","channels":["l2"],"symbols":["SLUSD/USDC"]}`)
	floods := []struct {
		name string
		data []byte
	}{
		{"pings", bytes.Repeat(sent(0x89, strings.Repeat("x", 125)), 10_000)},
		{"pongs", bytes.Repeat(sent(0x8a, ""), 10_000)},
		{"subscriptions", bytes.Repeat(subscribe, 10_000)},
		{"snapshots", append(bytes.Clone(subscribe), bytes.Repeat(resync, 10_000)...)},
		{"broken requests", bytes.Repeat(sent(0x81, "{"), 10_000)},
		{"16 KiB, compressed", bytes.Repeat(sent(0xc1, bomb(t, MaxFrame)), 10_000)},
		{"blocks without end", bytes.Repeat(sent(0xc1, string(blocks())), 100)},
	}
	for _, rate := range []int{20, 10_000} {
		d, w := newHostileFeed(t, func(o *Options) { o.MessagesPerSecond = rate })
		for level := range market.Price(100) {
			d.order(0, market.Sell, 1_000_000+level, 1)
			if err := w.book.apply(w.c.wait("l2", "update")); err != nil {
				t.Fatal(err)
			}
		}
		for _, flood := range floods {
			before := inUse()
			i := d.connectRaw(t, "permessage-deflate")
			written, ended := make(chan struct{}), make(chan error, 1)
			go func() {
				defer close(written)
				i.write(flood.data)
			}()
			go func() {
				code, err := i.closed()
				if code != CloseTooManyMessage {
					err = fmt.Errorf("close code %d: %w", code, err)
				}
				ended <- err
			}()
			for range 10 {
				w.served()
			}
			if grown := inUse() - before; grown > 4<<20 {
				t.Errorf("%s at %d/s: %d bytes are held", flood.name, rate, grown)
			}
			if rate > 20 {
				_ = i.conn.Close()
			}
			<-written
			if err := <-ended; rate == 20 && err != nil {
				t.Errorf("%s: %v", flood.name, err)
			}
			await.True(t, "it to be gone", func() bool { return d.feed.Stats().Connections == 1 })
		}
	}
}

// acceptedAtOnce returns how many of a connection's simultaneous messages a reader
// accepts before it closes the connection.
func acceptedAtOnce(t *testing.T, message []byte, messages int) (received int) {
	t.Helper()
	f, err := New(Options{Shards: 1, MessagesPerSecond: 20}, instruments(), marketdata.New(), 1)
	if err != nil {
		t.Fatal(err)
	}
	r := &reader{feed: f, now: time.Unix(1, 0)}
	c := &conn{inbox: &f.shards[0].inbox, drainLeft: maxDrain}
	c.in.deflate = true
	for range messages {
		r.receive(c, bytes.Clone(message))
	}
	var got taken
	f.shards[0].inbox.take(&got)
	for _, m := range got.messages {
		switch m.kind {
		case connRequest, connPing:
			received++
		case connClose:
			if m.code != CloseTooManyMessage {
				t.Errorf("close code %d: %s", m.code, m.text)
			}
		}
	}
	return received
}

// A long compressed message counts as several messages, a short one as one.
func TestCompressedCost(t *testing.T) {
	d, w := newHostileFeed(t)
	ping := sent(0xc1, string(zip(t, []byte(`{"action":"PING","id":"20"}`), 9)))
	short := d.connectRaw(t, "permessage-deflate")
	short.write(bytes.Repeat(ping, 20))
	for range 20 {
		short.answer(`"id":"20"`)
	}
	noise := make([]byte, 2*deflateUnit)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range noise {
		noise[i] = byte(' ' + random.IntN(64))
	}
	text := string(zip(t, noise, 9))
	if len(text) < deflateUnit || len(text) >= 2*deflateUnit {
		t.Fatalf("%d bytes do not count for two", len(text))
	}
	long := d.connectRaw(t, "permessage-deflate")
	// Ten are allowed at once and two more a second, so a slow reader accepts more.
	long.write(bytes.Repeat(sent(0xc1, text), 100))
	for range 10 {
		long.answer(`"code":"BAD_REQUEST"`)
	}
	if code, err := long.closed(); code != CloseTooManyMessage {
		t.Errorf("close code %d, %v", code, err)
	}
	if n := acceptedAtOnce(t, sent(0xc1, text), 100); n != 10 {
		t.Errorf("%d of them are heard at once, want 10", n)
	}
	// The longest is allowed, however low the rate.
	for _, rate := range []time.Duration{1, 20, 10_000} {
		m := incoming{deflated: true, data: make([]byte, MaxFrame)}
		if b := (ratelimit.Bucket{}); !b.Spend(time.Unix(1, 0).UnixNano(), int64(m.cost(time.Second/rate)), int64(time.Second)) {
			t.Errorf("no message at %d a second", rate)
		}
	}
	w.served()
}

// sendPartial makes clients send a message without its last bytes, which it returns.
func sendPartial(t *testing.T, d *testFeed, clients, left int) (all []*rawClient, rest []byte) {
	t.Helper()
	frame := sent(0x81, strings.Repeat("x", MaxFrame))
	for range clients {
		i := d.connectRaw(t, "")
		i.write(frame[:len(frame)-left])
		all = append(all, i)
	}
	return all, frame[len(frame)-left:]
}

// Incomplete messages hold little memory. It is measured at the reader, which holds them, so
// that nothing else uses memory meanwhile.
func TestSlowFramesAreSmall(t *testing.T) {
	const clients = 100
	f, err := New(Options{Shards: 1}, instruments(), marketdata.New(), 1)
	if err != nil {
		t.Fatal(err)
	}
	r := &reader{feed: f, now: time.Unix(1, 0)}
	frame := sent(0x81, strings.Repeat("x", MaxFrame))
	frame = frame[:len(frame)-1000]
	before, all := inUse(), make([]*conn, clients)
	for i := range all {
		all[i] = &conn{phase: phaseOpen, inbox: &f.shards[0].inbox}
		for part := range slices.Chunk(frame, 1400) {
			r.receive(all[i], part)
		}
	}
	if each := (inUse() - before) / clients; each > 3*MaxFrame {
		t.Errorf("%d bytes are held of a client within a message", each)
	}
	for i, c := range all {
		if c.in.partial == nil || c.messageSince.Load() == 0 {
			t.Fatalf("client %d is not within a message", i)
		}
	}
}

// Incomplete messages time out, and the good client is served meanwhile.
func TestSlowFrames(t *testing.T) {
	const clients = 100
	d, w := newHostileFeed(t, func(o *Options) { o.MessageWithin, o.Heartbeat = 200*time.Millisecond, 20*time.Millisecond })
	all, rest := sendPartial(t, d, clients, 1000)
	ends := make(chan error, clients)
	for _, i := range all {
		go func() {
			code, err := i.closed()
			if code != ClosePolicy {
				err = fmt.Errorf("close code %d: %w", code, err)
			}
			ends <- err
		}()
	}
	for ended := 0; ended < clients; {
		select {
		case err := <-ends:
			if err != nil {
				t.Fatal(err)
			}
			ended++
		default:
			for _, i := range all {
				if len(rest) > 1 { // the last byte never comes
					i.write(rest[:1])
				}
			}
			rest = rest[min(1, len(rest)-1):]
			w.served()
		}
	}
}

// A message may take MessageWithin.
func TestMessageWithin(t *testing.T) {
	f, err := New(Options{Shards: 1}, instruments(), marketdata.New(), 1)
	if err != nil {
		t.Fatal(err)
	}
	s, c := f.shards[0], &conn{phase: phaseOpen, inbox: &f.shards[0].inbox}
	s.add(c, topicRef{in: f.set.Get(0), kind: trades})
	r := &reader{feed: f, now: time.Unix(1, 0)}
	for range 2 { // a message that is whole in time counts for nothing afterwards
		frame := sent(0x81, `{"action":"PING"}`)
		r.receive(c, frame[:3])
		s.now = r.now.Add(f.o.MessageWithin - 1)
		if s.heartbeat(c); c.phase != phaseOpen {
			t.Fatal("closed before its time")
		}
		r.now = s.now
		r.receive(c, frame[3:])
	}
	r.receive(c, []byte{0x81})
	s.now = r.now.Add(f.o.MessageWithin)
	if s.heartbeat(c); c.phase != phaseClosing {
		t.Errorf("phase %d after %v", c.phase, f.o.MessageWithin)
	}
}

// Peers that disappear, within a message or between two, are forgotten.
func TestHalfOpen(t *testing.T) {
	d, w := newHostileFeed(t)
	for _, data := range [][]byte{nil, {0x81}, sent(0x81, "{}")[:6], sent(0x01, "{}"), sent(0x89, "x")[:4]} {
		for _, end := range []func(*net.TCPConn) error{
			func(c *net.TCPConn) error { return c.CloseWrite() },
			func(c *net.TCPConn) error { return errors.Join(c.SetLinger(0), c.Close()) },
			func(c *net.TCPConn) error { return c.Close() },
		} {
			i := d.connectRaw(t, "")
			i.write(data)
			w.served()
			if err := end(i.conn.(*net.TCPConn)); err != nil {
				t.Fatal(err)
			}
			await.True(t, "it to be gone", func() bool { return d.feed.Stats().Connections == 1 })
		}
	}
	w.served()
}
