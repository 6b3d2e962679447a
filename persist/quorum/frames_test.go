package quorum

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/persist"
	"blockdesk/persist/fanout"
	"blockdesk/persist/journaltest"
)

var _ fanout.Journal = (*Term)(nil)

// frames reads a term's durable frames from a position on and checks their chain.
func frames(t *testing.T, term *Term, from persist.Position) (list [][]byte, end persist.Position) {
	t.Helper()
	end = from
	err := term.Frames(from.Next, func(f *persist.Frame, encoded []byte) bool {
		if err := end.Advance(f, persist.HashFrame(encoded)); err != nil {
			t.Fatal(err)
		}
		list = append(list, bytes.Clone(encoded))
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return list, end
}

// file reads a snapshot in pieces.
func file(t *testing.T, term *Term, at persist.Position) (whole []byte) {
	t.Helper()
	piece := make([]byte, 1000)
	for {
		n, size, err := term.ReadSnapshot(at.Next, int64(len(whole)), piece)
		if err != nil {
			t.Fatal(err)
		}
		whole = append(whole, piece[:n]...)
		if n == 0 && int64(len(whole)) == size {
			return whole
		}
	}
}

// TestFrames: a publisher reads every durable frame of a term and nothing else, the
// same on every leader; a snapshot has what the log has dropped.
func TestFrames(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, func(o *Options) { o.TrailingEntries = 20 })
	ref := journaltest.NewReference(journaltest.Commands(2000, 11))
	id, term := c.lead()
	if at, ok := term.NewestSnapshot(); ok || term.Durable() != persist.Genesis() {
		t.Errorf("a journal that has not begun: snapshot %+v, durable %+v", at, term.Durable())
	}
	wake := make(chan struct{}, 1)
	term.SetWake(wake)
	w, at := newWriter(t, term), 0
	load := func(n int) {
		t.Helper()
		for range n {
			if err := w.append(ref.Commands[at : at+5]); err != nil {
				t.Fatal(err)
			}
			at += 5
			err := term.Store("fix").Commit(func(set func(key, value []byte), _ func(lo, hi []byte)) { set([]byte("k"), nil) }, false)
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	load(40)
	<-wake
	all, end := frames(t, term, persist.Genesis())
	if len(all) != 40 || end != term.Durable() || end.Next != uint64(at+1) {
		t.Errorf("%d frames end at %+v, durable %+v", len(all), end, term.Durable())
	}
	if err := term.Frames(2, nil); !errors.Is(err, persist.ErrNoFrame) {
		t.Errorf("from within a frame: %v", err)
	}
	if err := term.Frames(end.Next, nil); err != nil {
		t.Errorf("from the end: %v", err)
	}
	count := 0
	if err := term.Frames(1, func(*persist.Frame, []byte) bool { count++; return count < 3 }); err != nil || count != 3 {
		t.Errorf("%d visits until no: %v", count, err)
	}
	if err := c.members[id].node.raft.Snapshot().Error(); err != nil {
		t.Fatal(err)
	}
	load(10)
	if err := term.Frames(1, nil); !errors.Is(err, persist.ErrNoFrame) {
		t.Errorf("from before the log: %v", err)
	}
	newest, ok := term.NewestSnapshot()
	if !ok || newest != end {
		t.Fatalf("snapshot of %+v, taken at %+v", newest, end)
	}
	restored, got, err := persist.RestoreSnapshot(file(t, term, newest), journaltest.State())
	if err != nil || got != newest || !ref.Same(restored) {
		t.Fatalf("restored at %+v: %v", got, err)
	}
	if n, size, err := term.ReadSnapshot(newest.Next, 1<<40, make([]byte, 1)); n != 0 || size == 0 || err != nil {
		t.Errorf("past its end: %d of %d bytes: %v", n, size, err)
	}
	if _, _, err := term.ReadSnapshot(newest.Next-1, 0, nil); !errors.Is(err, persist.ErrNoSnapshot) {
		t.Errorf("of another seq: %v", err)
	}
	rest, end := frames(t, term, newest)
	if len(rest) != 10 || end != term.Durable() {
		t.Errorf("%d frames after the snapshot, to %+v", len(rest), end)
	}
	all = append(all, rest...)
	// Another leader has the same.
	c.kill(id, 0)
	_, next := c.lead()
	if same, end := frames(t, next, persist.Genesis()); !slices.EqualFunc(same, all, bytes.Equal) || end != next.Durable() {
		t.Errorf("the next leader has %d frames to %+v", len(same), end)
	}
	// And so has the first, which begins with a snapshot and knows what is before.
	c.start(id)
	await.True(t, "the first to lead again", func() bool { return leadAgain(c, id) })
	_, again := c.lead(others(c, id)...)
	tail := all[len(all)-15:]
	f, err := persist.ParseFrame(tail[0])
	if err != nil {
		t.Fatal(err)
	}
	same, end := frames(t, again, persist.Position{Next: f.First, Hash: f.Previous})
	if !slices.EqualFunc(same, tail, bytes.Equal) || end != again.Durable() {
		t.Errorf("after a restart: %d frames of %d, to %+v of %+v", len(same), len(tail), end, again.Durable())
	}
}

// leadAgain transfers the leadership to id and reports whether id leads.
func leadAgain(c *cluster, id string) bool {
	wanted := c.members[id].node
	if n := c.leading(); n != wanted {
		// An error means that id is not in sync yet or that an election is on: ask
		// again.
		_ = n.raft.LeadershipTransferToServer(raft.ServerID(id), raft.ServerAddress(wanted.o.Bind)).Error()
	}
	return wanted.Status().Role == Leader
}

func others(c *cluster, id string) (list []string) {
	for other := range c.members {
		if other != id {
			list = append(list, other)
		}
	}
	return list
}

// TestDeposedFrames: a leader that is cut off publishes nothing that a majority does
// not have, whatever is in its log.
func TestDeposedFrames(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	ref := journaltest.NewReference(journaltest.Commands(600, 12))
	id, old := c.lead()
	w := newWriter(t, old)
	for at := 0; at < 100; at += 5 {
		if err := w.append(ref.Commands[at : at+5]); err != nil {
			t.Fatal(err)
		}
	}
	if err := old.VerifyLeader(t.Context()); err != nil {
		t.Fatalf("the leader: %v", err)
	}
	_, before := frames(t, old, persist.Genesis())
	c.isolate(id, true)
	lost := make(chan error, 1)
	go func() { lost <- w.append(ref.Commands[100:107]) }()
	ctx, cancel := context.WithTimeout(t.Context(), runtest.HangTimeout)
	defer cancel()
	// It does not know yet that it is cut off; each of these begins after it was.
	for n := 0; old.Err() == nil; n++ {
		if err := old.VerifyLeader(ctx); !errors.Is(err, ErrDeposed) {
			t.Fatalf("call %d: a leader that is cut off is confirmed as the leader: %v", n, err)
		}
	}
	if err := <-lost; !errors.Is(err, ErrDeposed) {
		t.Errorf("the append of a leader that is cut off: %v", err)
	}
	_, next := c.lead(id)
	other := newWriter(t, next)
	for at := 100; at < 200; at += 3 {
		if err := other.append(ref.Commands[at : at+3]); err != nil {
			t.Fatal(err)
		}
	}
	if err := next.VerifyLeader(ctx); err != nil {
		t.Errorf("the next leader: %v", err)
	}
	c.isolate(id, false)
	node := c.members[id].node
	await.True(t, "the first to follow", func() bool { return node.Health().Durable == next.Durable().Next-1 })
	_, after := frames(t, old, persist.Genesis())
	if old.Durable() != before || after != before {
		t.Errorf("deposed at %+v: durable %+v, frames to %+v", before, old.Durable(), after)
	}
	if err := old.VerifyLeader(ctx); !errors.Is(err, ErrDeposed) {
		t.Errorf("a leader of the past: %v", err)
	}
	if h := old.Health(); !errors.Is(h.Failed, ErrDeposed) || h.Durable != before.Next-1 {
		t.Errorf("health of a term that is over: %+v", h)
	}
}

// TestSnapshotCache: a file is served for a while although there is a newer snapshot,
// so that a reader can finish; at most maxCachedSnapshots are in memory, none after the
// end of the term.
func TestSnapshotCache(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, nil)
	ref := journaltest.NewReference(journaltest.Commands(300, 13))
	id, term := c.lead()
	node := c.members[id].node
	clock := time.Unix(0, 0)
	term.snapshots.now = func() time.Time { return clock }
	w := newWriter(t, term)
	var positions []persist.Position
	for at := 0; at < 3*20; at += 20 {
		if err := w.append(ref.Commands[at : at+20]); err != nil {
			t.Fatal(err)
		}
		if err := node.raft.Snapshot().Error(); err != nil {
			t.Fatal(err)
		}
		if len(positions) > 0 {
			if same, _ := term.NewestSnapshot(); same != positions[len(positions)-1] {
				t.Errorf("a new snapshot at once: %+v", same)
			}
			clock = clock.Add(snapshotRenew)
		}
		at, ok := term.NewestSnapshot()
		if !ok || at != term.Durable() {
			t.Fatalf("snapshot of %+v, at %+v", at, term.Durable())
		}
		positions = append(positions, at)
		if _, got, err := persist.RestoreSnapshot(file(t, term, at), journaltest.State()); err != nil || got != at {
			t.Fatalf("restored at %+v: %v", got, err)
		}
	}
	if _, _, err := term.ReadSnapshot(positions[0].Next, 0, nil); !errors.Is(err, persist.ErrNoSnapshot) {
		t.Errorf("one of %d files ago: %v", maxCachedSnapshots+1, err)
	}
	if _, size, err := term.ReadSnapshot(positions[1].Next, 0, nil); err != nil || size == 0 {
		t.Errorf("the one before the newest: %d bytes: %v", size, err)
	}
	term.end(ErrStopped)
	if len(term.snapshots.files) != 0 {
		t.Error("files after the term")
	}
	if _, size, err := term.ReadSnapshot(positions[2].Next, 0, nil); err != nil || size == 0 || len(term.snapshots.files) != 0 {
		t.Errorf("after the term: %d bytes, %d files kept: %v", size, len(term.snapshots.files), err)
	}
}

// TestFrameIndex: the index drops what the log has dropped, and the older half at its
// limit.
func TestFrameIndex(t *testing.T) {
	var x frameIndex
	if at := x.position(); at != persist.Genesis() || !x.reaches(at) {
		t.Errorf("empty: %+v", at)
	}
	for i := range uint64(maxIndexed) {
		x.add(1+2*i, 10+3*i, persist.Position{Next: 3 + 2*i}, 0)
	}
	if index, ok := x.find(1); len(x.list) != maxIndexed || !ok || index != 10 {
		t.Fatalf("%d frames, the first is entry %d", len(x.list), index)
	}
	x.add(1+2*maxIndexed, 10+3*maxIndexed, persist.Position{Next: 3 + 2*maxIndexed}, 0)
	if _, ok := x.find(1); ok || len(x.list) != maxIndexed/2+1 || x.reaches(persist.Genesis()) {
		t.Errorf("%d frames at the limit", len(x.list))
	}
	if index, ok := x.find(1 + 2*maxIndexed); !ok || index != 10+3*maxIndexed {
		t.Errorf("the last is entry %d", index)
	}
	if _, ok := x.find(2 * maxIndexed); ok {
		t.Error("a seq within a frame is found")
	}
	firstEntry := x.list[len(x.list)-3].index
	x.add(3+2*maxIndexed, 13+3*maxIndexed, persist.Position{Next: 5 + 2*maxIndexed}, firstEntry)
	if len(x.list) != 4 || x.list[0].index != firstEntry || x.position().Next != 5+2*maxIndexed {
		t.Errorf("%d frames of a log from entry %d on", len(x.list), firstEntry)
	}
}

// TestFramesBefore: refused entries are skipped.
func TestFramesBefore(t *testing.T) {
	log, err := persist.OpenEntryLog(persist.EntryLogOptions{Dir: t.TempDir(), SpareLogs: -1, MemTableBytes: 1 << 20, Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	commands := journaltest.Commands(100, 14)
	at := persist.Genesis()
	var entries []*raft.Log
	put := func(kind kind, data []byte) {
		entries = append(entries, &raft.Log{Index: uint64(5 + len(entries)), Data: data, Extensions: tag{kind: kind, termStart: 1}.encode()})
	}
	var want []frameAt
	for i := 0; i < 60; i += 6 {
		for _, n := range []int{5, 6} { // the first was not found good
			f := persist.Frame{Epoch: at.Epoch, Previous: at.Hash}
			encoded, err := persist.AppendFrame(nil, &f, commands[i:i+n], nil)
			if err != nil {
				t.Fatal(err)
			}
			if put(frameKind, encoded); n == 6 {
				want = append(want, frameAt{first: f.First, index: entries[len(entries)-1].Index})
				if err := at.Advance(&f, persist.HashFrame(encoded)); err != nil {
					t.Fatal(err)
				}
			}
		}
		put(storeKind, []byte("anything"))
	}
	entries = append(entries, &raft.Log{Index: uint64(5 + len(entries)), Type: raft.LogNoop})
	if err := (logStore{log}).StoreLogs(entries); err != nil {
		t.Fatal(err)
	}
	last := entries[len(entries)-1].Index
	if got, err := framesBefore(log, last, at); err != nil || !slices.Equal(got, want) {
		t.Errorf("found %v, want %v: %v", got, want, err)
	}
	if got, err := framesBefore(log, last, persist.Position{Next: at.Next, Hash: 1}); err != nil || len(got) != 0 {
		t.Errorf("before a position that it does not lead to: %v: %v", got, err)
	}
	if got, err := framesBefore(log, last+10, at); err != nil || len(got) != 0 {
		t.Errorf("a log that ends before the snapshot does: %v: %v", got, err)
	}
	if err := log.DeleteRange(0, 20); err != nil {
		t.Fatal(err)
	}
	if got, err := framesBefore(log, last, at); err != nil || len(got) == 0 || got[0].index <= 20 {
		t.Errorf("of a log that was cut: %v: %v", got, err)
	}
}
