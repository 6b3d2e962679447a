package feed

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"blockdesk/engine"
	"blockdesk/engine/marketdata"
	"blockdesk/market"
)

// bookView returns a view with that many levels a side of random prices and quantities.
func bookView(levels int) *marketdata.View {
	random := rand.New(rand.NewPCG(1, 2))
	v := &marketdata.View{Status: engine.StatusTrading, Epoch: 7, EngineSeq: 123_456, DepthSeq: 4_444, At: time.Unix(1_700_000_000, 0).UnixNano()}
	bid, ask := market.Price(999_000), market.Price(999_010)
	for range levels {
		v.Bids = append(v.Bids, market.Level{Price: bid, Qty: market.Qty(1 + random.Int64N(20_000_000_000))})
		v.Asks = append(v.Asks, market.Level{Price: ask, Qty: market.Qty(1 + random.Int64N(20_000_000_000))})
		bid -= market.Price(1 + random.IntN(20))
		ask += market.Price(1 + random.IntN(20))
	}
	return v
}

// unzip decompresses a message with the standard library.
func unzip(message []byte) ([]byte, error) {
	return io.ReadAll(flate.NewReader(io.MultiReader(bytes.NewReader(message), strings.NewReader(streamTail))))
}

// zip compresses text with the standard library, as a client would.
func zip(t testing.TB, text []byte, level int) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, level)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = w.Write(text)
	_ = w.Flush()
	return out.Bytes()[:out.Len()-len(flushTail)]
}

func TestDeflatedSnapshot(t *testing.T) {
	var e encoder
	var z deflater
	in := instruments()[0]
	for k := l2Depth10; k <= ticker; k++ {
		frame := bytes.Clone(e.snapshot(&in, bookView(100), k))
		m := encodedMessage{frame: frame, large: true}
		if got := m.as(plain, &z); !bytes.Equal(got, frame) {
			t.Errorf("kind %d: plain is not the frame", k)
		}
		got := m.as(deflated, &z)
		if len(frame) < minDeflate {
			if !bytes.Equal(got, frame) {
				t.Errorf("kind %d: %d bytes were compressed", k, len(frame))
			}
			continue
		}
		if got[0] != finText|rsv1 {
			t.Errorf("kind %d: first byte %#x", k, got[0])
		}
		text, err := unzip(framePayload(got))
		if err != nil || !bytes.Equal(text, framePayload(frame)) || !json.Valid(text) {
			t.Errorf("kind %d: %q, %v", k, text, err)
		}
		if depth := k < trades; depth && depths[k] >= 25 && 2*len(got) > len(frame) {
			t.Errorf("depth %d: %d bytes became %d", depths[k], len(frame), len(got))
		}
		if again := m.as(deflated, &z); &again[0] != &got[0] {
			t.Errorf("kind %d: compressed twice", k)
		}
	}
}

// Updates, short messages and incompressible ones are sent uncompressed.
func TestNotDeflated(t *testing.T) {
	var z deflater
	frame := func(payload []byte) []byte {
		return append([]byte{finText, 126, byte(len(payload) >> 8), byte(len(payload))}, payload...)
	}
	noise := make([]byte, 4000)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(noise)
	for _, m := range []encodedMessage{
		{frame: frame(bytes.Repeat([]byte("a"), minDeflate-4))},
		{frame: frame(bytes.Repeat([]byte("a"), minDeflate-5)), large: true},
		{frame: frame(noise), large: true},
		{large: true},
	} {
		if got := m.as(deflated, &z); !bytes.Equal(got, m.frame) {
			t.Errorf("%d bytes became %d", len(m.frame), len(got))
		}
	}
	m := encodedMessage{frame: frame(bytes.Repeat([]byte("a"), minDeflate-4)), large: true}
	if got := m.as(deflated, &z); len(got) >= len(m.frame) {
		t.Error("the smallest that is compressed was not")
	}
}

// No match refers further back than the smallest window.
func TestDeflateWindow(t *testing.T) {
	noise := make([]byte, 2*deflateWindow)
	_, _ = rand.NewChaCha8([32]byte{2}).Read(noise)
	size := func(apart int) int {
		var z deflater
		z.compress(append(append(bytes.Clone(noise[:64]), noise[64:apart]...), noise[:64]...))
		return z.out.Len() - apart
	}
	if n := size(deflateWindow / 2); n > 32 {
		t.Errorf("a repetition inside the window took %d bytes", n)
	}
	if n := size(deflateWindow + 1); n < 64 {
		t.Errorf("a repetition beyond the window took %d bytes", n)
	}
}

func TestDeflateReads(t *testing.T) {
	var z deflater
	var u inflater
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SliceOfN(rapid.Byte(), 1, 40).Draw(t, "word")
		text := bytes.Repeat(word, rapid.IntRange(0, 400).Draw(t, "times"))
		text = append(text, rapid.SliceOf(rapid.Byte()).Draw(t, "rest")...)
		z.compress(text)
		theirs, err := unzip(z.out.Bytes())
		if err != nil || !bytes.Equal(theirs, text) {
			t.Fatalf("the standard library reads %d bytes of %d: %v", len(theirs), len(text), err)
		}
		ours, err := u.inflate(nil, z.out.Bytes(), len(text))
		if err != nil || !bytes.Equal(ours, text) {
			t.Fatalf("we read %d bytes of %d: %v", len(ours), len(text), err)
		}
	})
}

// A compressed message keeps only its bytes.
func TestDeflateMemory(t *testing.T) {
	var e encoder
	var z deflater
	in := instruments()[0]
	frame := bytes.Clone(e.snapshot(&in, bookView(100), l2Depth100))
	z.frame(frame)
	if n := testing.AllocsPerRun(100, func() { z.frame(frame) }); n > 1 {
		t.Errorf("%v allocations", n)
	}
	if got := z.frame(frame); cap(got) > len(got)+len(got)/4 {
		t.Errorf("%d bytes are kept in %d", len(got), cap(got))
	}
}

// A client that negotiated compression gets snapshots compressed and updates
// uncompressed, and the handshake confirms the parameters.
func TestCompressedConnection(t *testing.T) {
	d, w := newHostileFeed(t)
	for level := range market.Price(60) {
		d.order(0, market.Sell, 1_000_000+level, 1)
		if err := w.book.apply(w.c.wait("l2", "update")); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct{ offer, answer string }{
		{"", ""},
		{"permessage-deflate; mode=1", ""},
		{"permessage-deflate; client_max_window_bits", deflateAnswer},
		{"permessage-deflate; server_max_window_bits=10; client_max_window_bits=10", deflateAnswer + "; server_max_window_bits=10"},
	} {
		i := d.connectRaw(t, test.offer)
		if got := i.head.Get(extensionsHeader); got != test.answer {
			t.Errorf("%q is answered by %q", test.offer, got)
		}
		i.write(sent(0x81, `{"action":"SUBSCRIBE_MARKET","channels":["l2"],"symbols":["SLUSD/USDC"]}`))
		i.answer(`"type":"ack"`)
		head, text, err := i.frame()
		if compressed := head&rsv1 != 0; compressed != (test.answer != "") {
			t.Errorf("%q: the snapshot begins with %#x", test.offer, head)
		} else if compressed {
			text, err = unzip(text)
		}
		if err != nil || !bytes.Contains(text, []byte(`"type":"snapshot"`)) || !json.Valid(text) {
			t.Errorf("%q: %.80q, %v", test.offer, text, err)
		}
		w.served()
		if head, _ := i.answer(`"type":"update"`); head != finText {
			t.Errorf("%q: the update begins with %#x", test.offer, head)
		}
		_ = i.conn.Close()
	}
}

func BenchmarkDeflateSnapshot(b *testing.B) {
	var e encoder
	var z deflater
	in := instruments()[0]
	frame := bytes.Clone(e.snapshot(&in, bookView(100), l2Depth100))
	z.frame(frame)
	b.ReportAllocs()
	b.SetBytes(int64(len(frame)))
	for b.Loop() {
		z.frame(frame)
	}
	b.ReportMetric(float64(len(frame))/float64(len(z.frame(frame))), "ratio")
}
