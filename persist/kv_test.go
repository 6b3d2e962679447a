package persist

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"blockdesk/persist/kv"
	"blockdesk/persist/kv/kvtest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func mustOpenKV(t testing.TB, fs vfs.FS) *KV {
	t.Helper()
	k, err := OpenKV("/kv", fs, quiet())
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func set(k *KV, sync bool, pairs ...string) error {
	return k.Commit(func(set func(key, value []byte), _ func(lo, hi []byte)) {
		for i := 0; i < len(pairs); i += 2 {
			set([]byte(pairs[i]), []byte(pairs[i+1]))
		}
	}, sync)
}

func scan(t testing.TB, k *KV, lo, hi string) string {
	t.Helper()
	var out []string
	bound := func(s string) []byte {
		if s == "" {
			return nil
		}
		return []byte(s)
	}
	err := k.Scan(bound(lo), bound(hi), func(key, value []byte) bool {
		out = append(out, fmt.Sprintf("%s=%s", key, value))
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(out, " ")
}

func TestKV(t *testing.T) {
	kvtest.Run(t, func(t *testing.T) kv.Store {
		k := mustOpenKV(t, vfs.NewMem())
		t.Cleanup(func() {
			if err := k.Close(); err != nil {
				t.Error(err)
			}
		})
		return k
	})
}

// TestKVAgain: what was committed is there after a restart.
func TestKVAgain(t *testing.T) {
	fs := vfs.NewMem()
	k := mustOpenKV(t, fs)
	if err := set(k, false, "a", "1", "d", ""); err != nil {
		t.Fatal(err)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	k = mustOpenKV(t, fs)
	if got, want := scan(t, k, "", ""), "a=1 d="; got != want {
		t.Errorf("after a restart: %s, want %s", got, want)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestKVLimits(t *testing.T) {
	k := mustOpenKV(t, vfs.NewMem())
	key, value := strings.Repeat("k", MaxKeyBytes), strings.Repeat("v", MaxValueBytes)
	if err := set(k, true, key, value); err != nil {
		t.Errorf("at the limits: %v", err)
	}
	for name, pairs := range map[string][]string{
		"empty key":  {"", "v"},
		"long key":   {key + "k", "v"},
		"long value": {"k", value + "v"},
		"long commit": {
			"1", value, "2", value, "3", value, "4", value, "5", value, "6", value, "7", value, "8", value,
		},
	} {
		if err := set(k, true, append([]string{"first", "1"}, pairs...)...); !errors.Is(err, ErrLimit) {
			t.Errorf("%s: %v", name, err)
		}
		if _, ok, err := k.Get([]byte("first")); ok || err != nil {
			t.Errorf("%s: something of a refused commit was written: %v", name, err)
		}
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestKVCrash: synced commits survive, others are lost only from the end, and a crash
// while the store is created leaves an empty one.
func TestKVCrash(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 1))
		mem := vfs.NewCrashableMem()
		k := mustOpenKV(t, mem)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		if seed%2 == 0 {
			go func() { done <- k.Run(ctx) }()
		} else {
			done <- nil
		}
		n, synced := rng.IntN(300), 0
		for i := 1; i <= n; i++ {
			sync := rng.IntN(50) == 0
			// Both keys or neither.
			if err := set(k, sync, fmt.Sprintf("a%04d", i), "x", fmt.Sprintf("b%04d", i), "x"); err != nil {
				t.Fatal(err)
			}
			if sync {
				synced = i
			}
		}
		crashed := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
		cancel()
		if err := errors.Join(<-done, k.Close()); err != nil {
			t.Fatal(err)
		}
		k = mustOpenKV(t, crashed)
		a, b := strings.Fields(scan(t, k, "a", "b")), strings.Fields(scan(t, k, "b", ""))
		if len(a) != len(b) || len(a) < synced || len(a) > n {
			t.Errorf("seed %d: %d and %d of %d commits, %d synced", seed, len(a), len(b), n, synced)
		}
		for i := range a {
			if a[i] != fmt.Sprintf("a%04d=x", i+1) {
				t.Fatalf("seed %d: commit %d is %s", seed, i+1, a[i])
			}
		}
		if err := k.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestKVMaking: a store whose creation was interrupted is created again.
func TestKVMaking(t *testing.T) {
	fs := vfs.NewMem()
	if err := fs.MkdirAll("/kv/data", 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, fs, "/kv/"+kvIncomplete, nil)
	writeFile(t, fs, "/kv/data/MANIFEST-000001", []byte("torn"))
	k := mustOpenKV(t, fs)
	if err := set(k, true, "a", "1"); err != nil {
		t.Fatal(err)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	k = mustOpenKV(t, fs)
	if got := scan(t, k, "", ""); got != "a=1" {
		t.Errorf("after a restart: %s", got)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	// Without its data the map is not taken for a new one.
	if err := fs.RemoveAll("/kv/data"); err != nil {
		t.Fatal(err)
	}
	writeFile(t, fs, "/kv/other", nil)
	if _, err := OpenKV("/kv", fs, quiet()); err == nil {
		t.Error("opened without its data")
	}
}

func TestKVFailedDisk(t *testing.T) {
	faults := &failing{files: "*.log", ops: failSync, err: errIO}
	k := mustOpenKV(t, faults.wrap(vfs.NewMem()))
	if err := set(k, true, "a", "1"); err != nil {
		t.Fatal(err)
	}
	faults.on.Store(true)
	if err := set(k, true, "b", "2"); !errors.Is(err, ErrFailed) {
		t.Errorf("a commit whose sync fails: %v", err)
	}
	faults.on.Store(false)
	if err := set(k, true, "c", "3"); !errors.Is(err, ErrFailed) || !errors.Is(k.Failed(), ErrFailed) {
		t.Errorf("after the disk is well again: %v", err)
	}
	if v, ok, err := k.Get([]byte("a")); err != nil || !ok || !bytes.Equal(v, []byte("1")) {
		t.Errorf("reading goes on: %q %v %v", v, ok, err)
	}
	if err := k.Close(); !errors.Is(err, ErrFailed) {
		t.Errorf("close: %v", err)
	}
}
