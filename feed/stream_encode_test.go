package feed

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"blockdesk/engine/marketdata"
	"blockdesk/market"
)

// Every message of the encoder is one event, named by its channel, with its JSON
// as the only line of data.
func TestEvents(t *testing.T) {
	in := &instruments()[0]
	e := &encoder{}
	o := Options{}.withDefaults()
	many := &marketdata.View{Epoch: 7, EngineSeq: 9, DepthSeq: 3, TradesSeq: 2, TickerSeq: 5}
	for i := range market.Price(marketdata.MaxDepth) {
		many.Bids = append(many.Bids, market.Level{Price: 1_000_000 - i, Qty: 1 << 30})
	}
	var frames []byte
	var want []string
	for channel, frame := range map[string]func() []byte{
		"status":    func() []byte { return e.welcome(&o, "s", 7) },
		"control":   func() []byte { return e.errorMessage(nil, faultSlow) },
		"l2":        func() []byte { return e.snapshot(in, many, l2Depth100) }, // a frame of the middle length
		"trades":    func() []byte { return e.snapshot(in, many, trades) },
		"ticker":    func() []byte { return e.snapshot(in, many, ticker) },
		"heartbeat": func() []byte { e.openHeartbeat(0); return e.closeHeartbeat() },
		"tickets": func() []byte {
			return e.ticketsUpdate(in, position{}, []deskRecord{{id: 1, text: []byte(`"` + strings.Repeat("x", 1<<16) + `"`)}}, nil)
		},
	} {
		f := frame()
		text := string(appendEvent([]byte("x"), f))
		if head := "xevent: " + channel + "\ndata: {"; !strings.HasPrefix(text, head) || !strings.HasSuffix(text, "}\n\n") ||
			strings.Count(text, "\n") != 3 || !json.Valid([]byte(text[len(head)-1:])) {
			t.Errorf("%s: %.300s", channel, text)
		}
		frames, want = append(frames, f...), append(want, text[1:])
	}
	if got := string(appendEvents(nil, frames)); got != strings.Join(want, "") {
		t.Error("several frames are not the events of each")
	}
	if restart := string(appendEvent(nil, e.restart(7))); restart != "event: status\ndata: "+`{"channel":"status","type":"restart","epoch":"e7"}`+"\n\n" {
		t.Error(restart)
	}
	if got := string(appendRetry([]byte("x"), 2200*time.Millisecond)); got != "xretry: 2200\n" {
		t.Errorf("%q", got)
	}
}

// An id is read back as it was written, and nothing else is an id.
func TestMarks(t *testing.T) {
	for _, m := range []enginePos{{1, 0}, {7, 1042}, {1<<64 - 1, 1<<64 - 1}} {
		text := appendMark(nil, m)
		id, ok := strings.CutPrefix(strings.SplitAfter(string(text), "\n")[0], "id: ")
		id = strings.TrimSuffix(id, "\n")
		if !ok || !isMark(text) || parseEventID([]byte(id)) != m {
			t.Errorf("%+v is %q, which is %+v", m, text, parseEventID([]byte(id)))
		}
	}
	for _, id := range []string{
		"", "e", "e7", "7-1", "e-1", "e7-", "e7-x", "ex-1", "e7-1-1", "e07-1", "e7-01", "e+7-1", "e7-+1", " e7-1", "e7-1 ", "E7-1",
		"e18446744073709551616-1", "e1-18446744073709551616", "e0-1",
	} {
		if m := parseEventID([]byte(id)); m != (enginePos{}) {
			t.Errorf("%q is %+v", id, m)
		}
	}
	const want = "id: e7-1042\nevent: mark\ndata: {\"channel\":\"mark\",\"epoch\":\"e7\",\"engine_seq\":1042}\n\n"
	if text := string(appendMark(nil, enginePos{7, 1042})); text != want {
		t.Errorf("%q", text)
	}
	if isMark(appendEvent(nil, new(encoder).restart(1))) {
		t.Error("an event is taken for an id")
	}
}

func FuzzParseMark(f *testing.F) {
	f.Add([]byte("e7-1042"))
	f.Add([]byte("e0-0"))
	f.Fuzz(func(t *testing.T, id []byte) {
		m := parseEventID(id)
		if m == (enginePos{}) {
			return
		}
		if text := string(appendMark(nil, m)); !strings.HasPrefix(text, "id: "+string(id)+"\n") {
			t.Errorf("%q is read as %q", id, text)
		}
	})
}

// A mark event behind a dropped update is dropped too and sent again later. A partly
// written one stays, because everything before it was sent.
func TestCollapseMarks(t *testing.T) {
	c := &conn{encoding: eventStream, stream: &stream{lastMark: enginePos{1, 5}}}
	sub := &subscription{conn: c}
	answer, id := []byte("event: control\ndata: {}\n\n"), appendMark(nil, enginePos{1, 5})
	c.push(id, nil)
	c.push([]byte("update"), sub)
	c.push(answer, nil)
	c.push(id, nil)
	c.offset, c.pendingBytes = 3, c.pendingBytes-3
	c.collapse()
	if len(c.pending) != 2 || !isMark(c.pending[0].data) || &c.pending[1].data[0] != &answer[0] ||
		c.pendingBytes != len(id)-3+len(answer) || c.updateBytes != 0 || !sub.stale || c.stream.lastMark != (enginePos{}) {
		t.Errorf("%+v of %d bytes; sent %+v", c.pending, c.pendingBytes, c.stream.lastMark)
	}
}

// The history returns a topic's seq at each position, as a plain list does, or reports
// that it does not know.
func TestHistorySeqAt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := &history{}
		at := position{epoch: 3, seq: rapid.Uint64Range(0, 50).Draw(t, "seq"), engineSeq: rapid.Uint64Range(1, 50).Draw(t, "engine seq")}
		size := rapid.SampledFrom([]int{1, 2000, maxResumeBytes / 2}).Draw(t, "size")
		all, frame := []position{at}, make([]byte, size)
		first, held := at.engineSeq, 0 // since the last gap
		for range rapid.SampledFrom([]int{0, 1, 5, MaxResume, MaxResume + 40}).Draw(t, "updates") {
			if rapid.IntRange(0, 200).Draw(t, "gap") == 0 {
				// Without subscribers the history misses an update.
				at.seq++
				at.engineSeq++
				all, first, held = append(all, at), at.engineSeq, 0
			}
			next := at
			next.seq++
			next.engineSeq += rapid.SampledFrom([]uint64{0, 1, 1, 2, 30}).Draw(t, "step") // 0: the other half of a command
			held++
			h.add(at, next, frame)
			at = next
			all = append(all, at)
		}
		for range 20 {
			m := enginePos{3, rapid.Uint64Range(first-1, at.engineSeq+2).Draw(t, "mark")}
			want := all[0].seq
			for _, p := range all {
				if p.engineSeq <= m.engineSeq {
					want = p.seq
				}
			}
			got, ok := h.seqAt(m)
			switch {
			case ok && (m.engineSeq < first || got != want):
				t.Fatalf("at %d: seq %d, want %d, and nothing before %d", m.engineSeq, got, want, first)
			case !ok && m.engineSeq >= first && size == 1 && held > 0 && held <= MaxResume:
				t.Fatalf("at %d: not known, want %d", m.engineSeq, want)
			}
		}
		if _, ok := h.seqAt(enginePos{4, at.engineSeq}); ok {
			t.Fatal("knows another epoch")
		}
	})
}
