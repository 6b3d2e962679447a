package feed

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
)

const upgrade = "GET /ws/rfq HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
	"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"

// Input in the packet of the upgrade request is in the server's buffer: whole messages
// and the beginning of one.
func TestRequestsBehindTheUpgrade(t *testing.T) {
	d := newTestFeed(t)
	conn, err := tight.Dial("tcp4", d.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	pad := strings.Repeat(" ", 1500)
	all := []byte(upgrade)
	all = append(all, sent(0x81, `{"action":"PING","id":"one"}`)...)
	all = append(all, sent(0x81, `{"action":"PING",`+pad+`"id":"two"}`)...)
	last := sent(0x81, `{"action":"PING","id":"three"}`)
	if _, err := conn.Write(append(all, last[:9]...)); err != nil {
		t.Fatal(err)
	}
	r := &raw{t, conn}
	got := r.until(`"id":"two"`)
	if !bytes.Contains(got, []byte("welcome")) || !bytes.Contains(got, []byte(`"id":"one"`)) {
		t.Fatalf("%q", got)
	}
	if _, err := conn.Write(last[9:]); err != nil {
		t.Fatal(err)
	}
	r.until(`"id":"three"`)
}

// A client that keeps sending instead of closing is dropped before its time is over.
func TestTalkingAfterTheEnd(t *testing.T) {
	d := newTestFeed(t, func(o *Options) { o.CloseWithin = time.Hour })
	r := d.dialRaw(t)
	_, _ = r.conn.Write(sent(0x88, ""))
	r.until(string([]byte{finClose, 2, CloseNormal >> 8, CloseNormal & 0xff}))
	if n := d.feed.Stats().Connections; n != 1 {
		t.Fatalf("%d connections: it has not ended its half", n)
	}
	flood := make([]byte, 64<<10)
	_ = r.conn.SetWriteDeadline(time.Now().Add(runtest.HangTimeout))
	written := 0
	for written <= maxDrain {
		n, err := r.conn.Write(flood)
		written += n
		if err != nil {
			t.Fatalf("after %d bytes: %v", written, err)
		}
	}
	await.True(t, "it to be dropped", func() bool { return d.feed.Stats().Connections == 0 })
}

// The reader serves every connection: one that sends endless empty fragments does not
// block another.
func TestReaderTakesTurns(t *testing.T) {
	d := newTestFeed(t, func(o *Options) { o.Shards, o.MessagesPerSecond = 1, 10_000 })
	flooder, other := d.dialRaw(t), d.dial()
	message := sent(0x01, "")
	for range maxFragments - 2 {
		message = append(message, sent(0x00, "")...)
	}
	message = append(message, sent(0x80, "")...)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			if _, err := flooder.conn.Write(message); err != nil {
				return
			}
		}
	}()
	for i := range 100 {
		other.send(fmt.Sprintf(`{"action":"PING","id":%d}`, i))
		if m := other.next(); m.Type != "pong" {
			t.Fatal(m.raw)
		}
	}
	_ = flooder.conn.Close()
	<-ended
}
