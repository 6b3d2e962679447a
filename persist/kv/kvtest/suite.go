// Package kvtest tests implementations of kv.Store, and has one in memory (Memory) for the
// tests of other packages.
//
// Run checks the contract that package kv states: commits are atomic, scans are ordered
// and see one state even while commits go on, and a random history equals that of a map.
// Memory can lose commits that were not synced, as after a power failure, and can fail or
// break, so that the owners of stores can be tested without a disk.
package kvtest

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"blockdesk/internal/runtest"
	"blockdesk/persist/kv"
)

// Run tests a store. open returns a new, empty one for each test.
func Run(t *testing.T, open func(t *testing.T) kv.Store) {
	for name, test := range map[string]func(*testing.T, kv.Store){
		"Get": testGet, "Scan": testScan, "Commit": testCommit,
		"ScanWhileCommitting": testScanWhileCommitting, "Concurrent": testConcurrent, "Random": testRandom,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

func commit(t testing.TB, s kv.Store, sync bool, fill kv.Fill) {
	t.Helper()
	if err := s.Commit(fill, sync); err != nil {
		t.Fatal(err)
	}
}

// set commits pairs of keys and values.
func set(t testing.TB, s kv.Store, sync bool, pairs ...string) {
	t.Helper()
	commit(t, s, sync, func(set func(key, value []byte), _ func(lo, hi []byte)) {
		for i := 0; i < len(pairs); i += 2 {
			set([]byte(pairs[i]), []byte(pairs[i+1]))
		}
	})
}

// scan returns the entries of a range as text. "" is an open end.
func scan(t testing.TB, s kv.Store, lo, hi string) string {
	t.Helper()
	var out []string
	if err := s.Scan(bound(lo), bound(hi), func(key, value []byte) bool {
		out = append(out, fmt.Sprintf("%s=%s", key, value))
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return strings.Join(out, " ")
}

func bound(s string) []byte {
	if s == "" {
		return nil
	}
	return []byte(s)
}

func want(t testing.TB, s kv.Store, lo, hi, content string) {
	t.Helper()
	if got := scan(t, s, lo, hi); got != content {
		t.Errorf("[%s, %s) is %q, want %q", lo, hi, got, content)
	}
}

func testGet(t *testing.T, s kv.Store) {
	set(t, s, true, "b", "2", "d", "")
	for key, w := range map[string]struct {
		value string
		ok    bool
	}{"b": {"2", true}, "d": {"", true}, "c": {"", false}} {
		if v, ok, err := s.Get([]byte(key)); err != nil || ok != w.ok || string(v) != w.value {
			t.Errorf("Get(%s): %q %v %v", key, v, ok, err)
		}
	}
	v, _, err := s.Get([]byte("b"))
	if err != nil {
		t.Fatal(err)
	}
	v[0] = 'x'
	want(t, s, "", "", "b=2 d=")
}

func testScan(t *testing.T, s kv.Store) {
	set(t, s, false, "a", "1", "b", "2", "c", "3", "d", "4", "\xff\xff", "5")
	want(t, s, "", "", "a=1 b=2 c=3 d=4 \xff\xff=5")
	want(t, s, "b", "d", "b=2 c=3")
	want(t, s, "bb", "", "c=3 d=4 \xff\xff=5")
	want(t, s, "", "b", "a=1")
	want(t, s, "d", "b", "")
	want(t, s, "b", "b", "")
	calls := 0
	if err := s.Scan(nil, nil, func(_, _ []byte) bool { calls++; return calls < 2 }); err != nil || calls != 2 {
		t.Errorf("a scan that f ends at its second call: %d calls, %v", calls, err)
	}
}

func testCommit(t *testing.T, s kv.Store) {
	set(t, s, true, "a", "1", "b", "2", "c", "3")
	key, value := []byte("bb"), []byte("removed")
	commit(t, s, false, func(set func(key, value []byte), deleteRange func(lo, hi []byte)) {
		set(key, value)
		copy(key, "zz") // what was given is copied
		deleteRange([]byte("b"), []byte("d"))
		set([]byte("c"), []byte("again"))
		set([]byte("a"), []byte("first"))
		set([]byte("a"), []byte("last"))
	})
	want(t, s, "", "", "a=last c=again")
	commit(t, s, false, func(_ func(key, value []byte), deleteRange func(lo, hi []byte)) {
		deleteRange([]byte("a"), []byte("a\x00")) // one key
	})
	want(t, s, "", "", "c=again")
	commit(t, s, true, func(func(key, value []byte), func(lo, hi []byte)) {})
	want(t, s, "", "", "c=again")
}

// testScanWhileCommitting: a scan shows the moment of its call, and its function may
// use the store.
func testScanWhileCommitting(t *testing.T, s kv.Store) {
	set(t, s, false, "a", "1", "b", "2", "c", "3")
	var seen []string
	if err := s.Scan(nil, nil, func(key, value []byte) bool {
		seen = append(seen, string(key)+string(value))
		set(t, s, false, "c", "new", "z"+string(key), "new")
		if v, ok, err := s.Get([]byte("z" + string(key))); err != nil || !ok || string(v) != "new" {
			t.Errorf("Get in a scan: %q %v %v", v, ok, err)
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(seen, " "); got != "a1 b2 c3" {
		t.Errorf("the scan shows %q", got)
	}
	want(t, s, "", "", "a=1 b=2 c=new za=new zb=new zc=new")
}

// testConcurrent: concurrent commits are atomic to every reader.
func testConcurrent(t *testing.T, s kv.Store) {
	const writers, commits = 4, 50
	set(t, s, false, "x", "", "y", "")
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for n := range commits {
				text := []byte(fmt.Sprintf("%d.%d", w, n))
				if err := s.Commit(func(set func(key, value []byte), _ func(lo, hi []byte)) {
					set([]byte("x"), text)
					set([]byte("y"), text)
				}, n%10 == 0); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range commits {
		var pair [][]byte
		if err := s.Scan([]byte("x"), []byte("z"), func(_, value []byte) bool {
			pair = append(pair, bytes.Clone(value))
			return true
		}); err != nil || len(pair) != 2 || !bytes.Equal(pair[0], pair[1]) {
			t.Errorf("half a commit is visible: %q %v", pair, err)
		}
	}
	group.Wait()
}

// testRandom: random commits have the same result as in a map.
func testRandom(t *testing.T, s kv.Store) {
	r := rand.New(rand.NewPCG(runtest.Seed(t), 0))
	model := map[string]string{}
	key := func() string { return string(rune('a' + r.IntN(20))) }
	for range 200 {
		commit(t, s, r.IntN(20) == 0, func(set func(key, value []byte), deleteRange func(lo, hi []byte)) {
			for range r.IntN(5) {
				lo, hi := key(), key()
				if r.IntN(4) > 0 {
					set([]byte(lo), []byte(hi))
					model[lo] = hi
				} else if lo < hi {
					deleteRange([]byte(lo), []byte(hi))
					maps.DeleteFunc(model, func(k, _ string) bool { return k >= lo && k < hi })
				}
			}
		})
	}
	var content []string
	for _, k := range slices.Sorted(maps.Keys(model)) {
		content = append(content, k+"="+model[k])
	}
	want(t, s, "", "", strings.Join(content, " "))
}
