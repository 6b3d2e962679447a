package projection_test

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"blockdesk/persist/kv"
	"blockdesk/persist/kv/kvtest"
	"blockdesk/persist/projection"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errLayout = errors.New("another layout")

// layout has a cursor of 8 bytes.
func layout() projection.Layout {
	return projection.Layout{
		Version: 3, Err: errLayout, SyncKey: 'm',
		Load: func(cursor []byte) (uint64, error) {
			if len(cursor) != 8 {
				return 0, errLayout
			}
			return binary.BigEndian.Uint64(cursor), nil
		},
	}
}

func open(t *testing.T, store kv.Store) *projection.Store {
	t.Helper()
	s, err := projection.Open(store, layout())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// commit writes value under "x", with the cursor seq.
func commit(t *testing.T, s *projection.Store, seq uint64, value string, sync bool) {
	t.Helper()
	err := s.Commit(seq, binary.BigEndian.AppendUint64(nil, seq), func(set func(key, value []byte), _ func(lo, hi []byte)) {
		set([]byte("x"), []byte(value))
	}, sync)
	if err != nil {
		t.Fatal(err)
	}
}

func wants(t *testing.T, what string, s *projection.Store, cursor, durable uint64) {
	t.Helper()
	if s.Cursor() != cursor || s.DurableCursor() != durable {
		t.Errorf("%s: cursor %d, durable %d; want %d and %d", what, s.Cursor(), s.DurableCursor(), cursor, durable)
	}
}

// TestCursor: whatever a crash loses, the cursor fits the content that is left, and
// what was synced stays.
func TestCursor(t *testing.T) {
	t.Parallel()
	memory := kvtest.New()
	s := open(t, memory)
	wants(t, "new", s, 0, 0)
	commit(t, s, 5, "five", true)
	wants(t, "synced", s, 5, 5)
	commit(t, s, 7, "seven", false)
	wants(t, "committed", s, 7, 5)
	for lost, want := range map[int]string{0: "seven", kvtest.All: "five"} {
		left := memory.Crash(lost)
		again := open(t, left)
		if text, _, err := again.Get([]byte("x")); err != nil || string(text) != want {
			t.Errorf("%d commits are lost: %q, %v", lost, text, err)
		}
		if cursor := again.Cursor(); cursor != map[string]uint64{"five": 5, "seven": 7}[want] || cursor != again.DurableCursor() {
			t.Errorf("%d commits are lost: cursor %d, durable %d", lost, cursor, again.DurableCursor())
		}
	}
	commit(t, s, 3, "three", false)
	wants(t, "taken back", s, 3, 3)
}

// TestFailedCommit: after a failed commit cursor and content are as before.
func TestFailedCommit(t *testing.T) {
	t.Parallel()
	memory := kvtest.New()
	s := open(t, memory)
	commit(t, s, 5, "five", true)
	commit(t, s, 6, "six", false)
	memory.FailCommits(kvtest.ErrBroken)
	err := s.Commit(7, make([]byte, 8), func(set func(key, value []byte), _ func(lo, hi []byte)) { set([]byte("x"), nil) }, true)
	if !errors.Is(err, kvtest.ErrBroken) || !errors.Is(s.Sync(), kvtest.ErrBroken) {
		t.Errorf("got %v", err)
	}
	wants(t, "failed", s, 6, 5)
	if text, _, err := s.Get([]byte("x")); err != nil || string(text) != "six" {
		t.Errorf("%q, %v", text, err)
	}
}

// syncStore calls onSync after a synced commit.
type syncStore struct {
	*kvtest.Memory
	onSync func()
}

func (s *syncStore) Commit(fill kv.Fill, sync bool) error {
	err := s.Memory.Commit(fill, sync)
	if hook := s.onSync; sync && hook != nil {
		s.onSync = nil
		hook()
	}
	return err
}

// TestSync: what is committed while a sync is under way is not durable by it; a commit
// that syncs more meanwhile stays durable.
func TestSync(t *testing.T) {
	t.Parallel()
	store := &syncStore{Memory: kvtest.New()}
	s := open(t, store)
	commit(t, s, 5, "", false)
	store.onSync = func() { commit(t, s, 9, "", false) }
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	wants(t, "committed beside it", s, 9, 5)
	store.onSync = func() { commit(t, s, 12, "", true) }
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	wants(t, "synced beside it", s, 12, 12)
	before := store.Commits()
	if err := s.Sync(); err != nil || store.Commits() != before {
		t.Errorf("synced for nothing: %v", err)
	}
}

// TestSyncBesideReconcile: a sync under way does not raise the durable cursor above a
// cursor that a commit takes back meanwhile.
func TestSyncBesideReconcile(t *testing.T) {
	t.Parallel()
	store := &syncStore{Memory: kvtest.New()}
	s := open(t, store)
	commit(t, s, 5, "", false)
	done := make(chan struct{})
	store.onSync = func() {
		go func() {
			defer close(done)
			commit(t, s, 3, "", false)
		}()
	}
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	<-done
	wants(t, "taken back", s, 3, 3)
}

// TestLayout: a store of another layout, or whose cursor cannot be read, is refused.
func TestLayout(t *testing.T) {
	t.Parallel()
	for name, entries := range map[string]map[string]string{
		"another version": {"v": "\x02"}, "no version": {"v": ""}, "a long version": {"v": "\x03\x03"},
		"a damaged cursor": {"v": "\x03", "c": "\x01"},
	} {
		store := kvtest.New()
		for key, value := range entries {
			store.Put(key, []byte(value))
		}
		if _, err := projection.Open(store, layout()); !errors.Is(err, errLayout) {
			t.Errorf("%s: %v", name, err)
		}
	}
	broken := kvtest.New()
	broken.Break(kvtest.ErrBroken)
	if _, err := projection.Open(broken, layout()); !errors.Is(err, kvtest.ErrBroken) {
		t.Errorf("a broken store: %v", err)
	}
}

// TestDrain: the context ends later than its parent, by the cause, or by cancel.
func TestDrain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("held up")
		ctx, stop := context.WithCancel(t.Context())
		drained, cancel := projection.Drain(ctx, time.Second, cause)
		defer cancel()
		stop()
		time.Sleep(time.Second - time.Nanosecond) // sleep: the bubble's clock is what is tested
		if synctest.Wait(); drained.Err() != nil {
			t.Error("ends too early")
		}
		time.Sleep(time.Nanosecond) // sleep: as before
		if synctest.Wait(); !errors.Is(context.Cause(drained), cause) {
			t.Errorf("ends by %v", context.Cause(drained))
		}
		drained, cancel = projection.Drain(t.Context(), time.Hour, cause)
		cancel()
		if !errors.Is(context.Cause(drained), context.Canceled) {
			t.Errorf("canceled by %v", context.Cause(drained))
		}
	})
}
