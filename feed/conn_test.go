package feed

import (
	"bytes"
	"testing"
	"time"

	"pgregory.net/rapid"

	"blockdesk/engine/marketdata"
)

// Whatever is pushed, partly written and collapsed, the socket gets whole messages in
// order, answers are never dropped, and the counters are right.
func TestPendingKeepsItsCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &conn{}
		subs := []*subscription{{conn: c}, {conn: c}}
		type message struct {
			data []byte
			sub  *subscription
		}
		var model []message // not wholly written
		written := 0        // bytes of model[0]
		label := byte(0)
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				label++
				m := message{data: bytes.Repeat([]byte{label}, rapid.IntRange(1, 9).Draw(t, "size"))}
				if which := rapid.IntRange(0, 2).Draw(t, "sub"); which < 2 {
					m.sub = subs[which]
				}
				c.push(m.data, m.sub)
				model = append(model, m)
			},
			"write": func(t *rapid.T) {
				n := rapid.IntRange(0, c.pendingBytes).Draw(t, "bytes")
				done := 0
				for left := n; left > 0; {
					step := min(left, len(model[0].data)-written)
					left -= step
					if written += step; written == len(model[0].data) {
						model, written = model[1:], 0
						done++
					}
				}
				if got := c.consume(n); got != done {
					t.Fatalf("%d messages done, not %d", got, done)
				}
			},
			"collapse": func(*rapid.T) {
				c.collapse()
				var remaining []message
				for i, m := range model {
					if m.sub == nil || i == 0 && written > 0 {
						remaining = append(remaining, m)
					} else if !m.sub.stale {
						t.Fatal("a subscription that lost a message is not stale")
					}
				}
				model = remaining
			},
			"": func(t *rapid.T) {
				all, live := -written, 0
				for i, m := range model {
					all += len(m.data)
					if m.sub != nil {
						live += len(m.data)
					}
					if !bytes.Equal(c.pending[i].data, m.data) || c.pending[i].sub != m.sub {
						t.Fatalf("message %d: %v", i, c.pending[i].data)
					}
				}
				if len(c.pending) != len(model) || c.pendingBytes != all || c.updateBytes != live || c.offset != written {
					t.Fatalf("%d messages, %d bytes, %d live, offset %d; want %d, %d, %d, %d",
						len(c.pending), c.pendingBytes, c.updateBytes, c.offset, len(model), all, live, written)
				}
			},
		})
	})
}

// A pending heartbeat is dropped when the updates before it collapse, because it names
// sequence numbers that the client does not get.
func TestCollapseDropsHeartbeats(t *testing.T) {
	in := &instruments()[0]
	for _, speaks := range []encoding{plain, deflated, eventStream} {
		var enc encoder
		c := &conn{encoding: speaks}
		if speaks == eventStream {
			c.stream = &stream{}
		}
		sub := &subscription{conn: c}
		c.push([]byte("update"), sub)
		enc.openHeartbeat(0)
		enc.heartbeatSeq(in, trades, 7, false)
		c.push(c.encodeOwn(enc.closeHeartbeat()), nil)
		c.push(c.encodeOwn(enc.pong(nil, 0)), nil)
		if speaks != eventStream {
			c.push(c.encodeOwn(enc.pongFrame([]byte(heartbeatHead))), nil) // the client's own words
		}
		answers := len(c.pending) - 2
		c.collapse()
		rest := 0
		for _, f := range c.pending {
			rest += len(f.data)
		}
		if len(c.pending) != answers || c.pendingBytes != rest || !sub.stale {
			t.Errorf("encoding %d: %d messages of %d bytes stay, counted %d; stale %v", speaks, len(c.pending), rest, c.pendingBytes, sub.stale)
		}
	}
}

// A client that reads its answers byte by byte is closed in the end.
func TestAnswersLeftLying(t *testing.T) {
	f, err := New(Options{}, instruments(), marketdata.New(), 1)
	if err != nil {
		t.Fatal(err)
	}
	slow := f.o.SlowAfter
	if within := f.o.CloseWithin; within >= slow {
		t.Fatalf("a client has %v to close and is slow after %v: the longer one is meant to be this", within, slow)
	}
	for size, want := range map[int]phase{maxBacklog: phaseOpen, maxBacklog + 1: phaseClosing} {
		s, c := f.shards[0], &conn{phase: phaseOpen}
		s.add(c, topicRef{in: f.set.Get(0), kind: trades})
		c.push(make([]byte, size), nil)
		s.now = time.Unix(1, 0)
		s.heartbeat(c)
		s.now = s.now.Add(backlogWithin - 1)
		s.heartbeat(c)
		if c.phase != phaseOpen {
			t.Fatalf("%d bytes: closed before %v", size, backlogWithin)
		}
		s.now = s.now.Add(1)
		s.heartbeat(c)
		if c.phase != want {
			t.Errorf("%d bytes for %v: phase %d, want %d", size, backlogWithin, c.phase, want)
		}
		if left := c.closeBy.Sub(s.now); want == phaseClosing && left != slow {
			t.Errorf("a slow client has %v to read why it is closed, want %v", left, slow)
		}
		c.consume(c.pendingBytes - 1)
		s.heartbeat(c)
		if want == phaseOpen && !c.backlogSince.IsZero() {
			t.Errorf("%d bytes left, and they count as lying", c.pendingBytes)
		}
	}
}

// A slow client gets the longer of SlowAfter and CloseWithin to close.
func TestSlowClientHasTheLongerTime(t *testing.T) {
	f, err := New(Options{SlowAfter: time.Second, CloseWithin: time.Minute}, instruments(), marketdata.New(), 1)
	if err != nil {
		t.Fatal(err)
	}
	s, c := f.shards[0], &conn{phase: phaseOpen}
	s.now = time.Unix(1, 0)
	s.closeSlow(c)
	if left := c.closeBy.Sub(s.now); left != time.Minute {
		t.Errorf("%v to read why it is closed", left)
	}
}

// A connection that was slow once frees the memory.
func TestPendingLetsItsMemoryGo(t *testing.T) {
	c := &conn{}
	for _, most := range []int{keepPending, keepPending + 1} {
		for range most {
			c.push([]byte("x"), nil)
		}
		c.consume(most)
		if held := cap(c.pending); held > 2*keepPending || most > keepPending && held > 0 {
			t.Errorf("after %d messages: room for %d", most, held)
		}
	}
}

// Heartbeats and reconnections stay spread over the wheel, however connections come and
// go.
func TestWheelStaysEven(t *testing.T) {
	const size, changes = 10 * wheelSlots, 50 * wheelSlots
	s := &shard{}
	all := make([]*conn, size)
	for i := range all {
		all[i] = &conn{}
		s.addToWheel(all[i])
	}
	for i := range changes { // one goes, one comes
		s.removeFromWheel(all[i*7%size])
		s.addToWheel(all[i*7%size])
	}
	for i, slot := range s.wheel {
		if len(slot) != size/wheelSlots {
			t.Errorf("slot %d has %d connections of %d", i, len(slot), size)
		}
	}
	s.each(func(c *conn) {
		if s.wheel[c.slot][c.slotIndex] != c {
			t.Error("a connection is not where it says")
		}
	})
}
