package quorum

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"

	"blockdesk/engine/event"
	"blockdesk/persist"
	"blockdesk/persist/journaltest"
	"blockdesk/persist/projection"
)

// TestGolden freezes the bytes on disk and on the wire.
func TestGolden(t *testing.T) {
	c := newCommit("fix")
	c.set([]byte("key"), []byte("value"))
	c.deleteRange([]byte("a"), []byte("b"))
	data, err := c.seal()
	if err != nil {
		t.Fatal(err)
	}
	entry := raft.Log{Index: 7, Term: 3, Type: raft.LogCommand, Data: []byte("data"), Extensions: tag{kind: frameKind, termStart: 5}.encode(), AppendedAt: time.Unix(1, 2)}
	h := header{index: 1, termStart: 2, at: persist.Position{Next: 3, Hash: 4, Epoch: 5}, digest: 6, state: [32]byte{7}, bytes: 8, floor: 9, events: 10, format: 1}
	for name, c := range map[string]struct{ got, want string }{
		"commit": {hex.EncodeToString(data), goldenCommit},
		"entry":  {hex.EncodeToString(appendLog(nil, &entry)), goldenEntry},
		"header": {hex.EncodeToString(h.encode()), goldenHeader},
	} {
		if c.got != c.want {
			t.Errorf("%s has changed:\n got %s\nwant %s", name, c.got, c.want)
		}
	}
	var back raft.Log
	if err := decodeLog(appendLog(nil, &entry), 7, &back); err != nil || !bytes.Equal(back.Data, entry.Data) ||
		!bytes.Equal(back.Extensions, entry.Extensions) || back.Term != 3 || !back.AppendedAt.Equal(entry.AppendedAt) {
		t.Errorf("%+v: %v", back, err)
	}
	for h.format = firstFormat; h.format <= MaxFormat; h.format++ {
		if got, err := decodeHeader(h.encode()); err != nil || got != h {
			t.Errorf("%+v: %v", got, err)
		}
	}
	if got := hex.EncodeToString(tag{kind: formatKind, termStart: 5}.encode()); got != goldenFormatTag {
		t.Errorf("tag of a format: %s", got)
	}
}

const goldenFormatTag = "01040000000000000500000000000000"

const (
	goldenCommit = "4244514301030000666978010300050000006b657976616c7565020100010000006162d0434d3a"
	goldenEntry  = "01001000030000000000000002ca9a3b000000000102000000000000050000000000000064617461"
	goldenHeader = "42445153010000000100000000000000020000000000000003000000000000000400000000000000050000000000000006000000000000000" +
		"700000000000000000000000000000000000000000000000000000000000000080000000000000009000000000000000a00000000000000000000004646ad09"
)

// TestCommitLimits: every node can write what any node proposes, and none proposes
// more.
func TestCommitLimits(t *testing.T) {
	value := make([]byte, MaxValueBytes)
	for name, c := range map[string]struct {
		fill    func(c *commit)
		refused bool
	}{
		"the longest key":    {func(c *commit) { c.set(make([]byte, MaxKeyBytes), nil) }, false},
		"a longer key":       {func(c *commit) { c.set(make([]byte, MaxKeyBytes+1), nil) }, true},
		"no key":             {func(c *commit) { c.set(nil, nil) }, true},
		"the longest value":  {func(c *commit) { c.set([]byte("k"), value) }, false},
		"a longer value":     {func(c *commit) { c.set([]byte("k"), append(value, 0)) }, true},
		"a range without hi": {func(c *commit) { c.deleteRange([]byte("k"), nil) }, true},
		"too much": {func(c *commit) {
			for range MaxCommitBytes / MaxValueBytes {
				c.set([]byte("k"), value)
			}
		}, true},
		"many small ones": {func(c *commit) {
			for range MaxCommitBytes / (opBytes + 1) {
				c.set([]byte("k"), nil)
			}
		}, false},
		"one small one more": {func(c *commit) {
			for range MaxCommitBytes/(opBytes+1) + 1 {
				c.set([]byte("k"), nil)
			}
		}, true},
	} {
		b := newCommit(strings.Repeat("n", MaxStoreName))
		c.fill(b)
		data, err := b.seal()
		if errors.Is(err, persist.ErrLimit) != c.refused {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			continue
		}
		l, err := openLocal(&Options{Dir: "d", FS: vfs.NewMem(), Logger: quiet()})
		if err != nil {
			t.Fatal(err)
		}
		store, ops, err := parseCommit(data)
		if err == nil {
			err = l.apply(1, store, ops)
		}
		if err := errors.Join(err, l.kv.Close()); err != nil {
			t.Errorf("%s: a node cannot write it: %v", name, err)
		}
	}
}

func TestStoreNames(t *testing.T) {
	for name, ok := range map[string]bool{"fix": true, "": false, "Fix": false, "a1": false, strings.Repeat("a", MaxStoreName): true, strings.Repeat("a", MaxStoreName+1): false} {
		if validStoreName(name) != ok {
			t.Errorf("%q", name)
		}
	}
}

// TestTail: events are dropped a command at a time, and the floor says up to which.
func TestTail(t *testing.T) {
	tail := tail{limit: 4}
	for seq := uint64(1); seq <= 10; seq++ {
		events := make([]event.Event, 1+seq%3)
		for i := range events {
			events[i].Seq = seq
		}
		tail.add(events)
		if len(tail.events) > 2*tail.limit {
			t.Fatalf("%d events are kept", len(tail.events))
		}
		var seqs []uint64
		if err := tail.replay(tail.floor, func(e []event.Event) {
			if len(e) != int(1+e[0].Seq%3) {
				t.Errorf("seq %d: %d events", e[0].Seq, len(e))
			}
			seqs = append(seqs, e[0].Seq)
		}); err != nil {
			t.Fatal(err)
		}
		if len(seqs) != int(seq-tail.floor) || seqs[len(seqs)-1] != seq {
			t.Fatalf("above seq %d: %v", tail.floor, seqs)
		}
	}
	if err := tail.replay(tail.floor-1, nil); tail.floor == 0 || !errors.Is(err, projection.ErrPruned) {
		t.Errorf("below the floor %d: %v", tail.floor, err)
	}
}

func FuzzParseCommit(f *testing.F) {
	c := newCommit("fix")
	c.set([]byte("key"), []byte("value"))
	c.deleteRange([]byte("a"), []byte("b"))
	data, err := c.seal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		store, ops, err := parseCommit(data)
		if err != nil {
			return
		}
		back := newCommit(store)
		for len(ops) > 0 {
			op, a, b, rest, ok := nextOp(ops)
			if !ok {
				t.Fatal("an operation that was checked")
			}
			back.put(op, a, b)
			ops = rest
		}
		if again, err := back.seal(); err != nil || len(again) != len(data) {
			t.Fatalf("%d bytes encode as %d: %v", len(data), len(again), err)
		}
	})
}

func FuzzReadImage(f *testing.F) {
	w := newStandby(journaltest.State(), MinTailEvents)
	commands := journaltest.Commands(20, 1)
	for i := range commands {
		w.replica.Apply(&commands[i], w.tail.add)
	}
	l, err := openLocal(&Options{Dir: "d", FS: vfs.NewMem(), Logger: quiet()})
	if err != nil {
		f.Fatal(err)
	}
	c := newCommit("fix")
	c.set([]byte("key"), []byte("value"))
	_, ops, err := parseCommit(func() []byte { data, _ := c.seal(); return data }())
	if err == nil {
		err = l.apply(3, "fix", ops)
	}
	if err != nil {
		f.Fatal(err)
	}
	s := &fsmSnapshot{head: header{index: 3, at: persist.Position{Next: w.replica.State.Seq() + 1}}, stores: l.kv.View(), status: &snapshotStatus{}}
	part := w.snapshotPart()
	var out bytes.Buffer
	if err := s.write(&out, &part); err != nil {
		f.Fatal(err)
	}
	s.Release()
	if err := l.kv.Close(); err != nil {
		f.Fatal(err)
	}
	f.Add(out.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := openLocal(&Options{Dir: "d", FS: vfs.NewMem(), Logger: quiet()})
		if err != nil {
			t.Fatal(err)
		}
		h, r, events, err := readSnapshot(bytes.NewReader(data), l, journaltest.State())
		if err == nil && (r.State.Seq()+1 != h.at.Next || len(events) != int(h.events) || l.index != h.index) {
			t.Errorf("accepted %+v with seq %d", h, r.State.Seq())
		}
		if err := l.kv.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
