package session

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"blockdesk/persist"
)

// openKV opens the real store on fs.
func openKV(t testing.TB, fs vfs.FS) *persist.KV {
	t.Helper()
	kv, err := persist.OpenKV("fix", fs, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return kv
}

// TestOnPebble: the message store on the real thing, through crashes of the
// machine.
func TestOnPebble(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 3))
	fs := vfs.NewCrashableMem()
	o := storeOptions(func(o *Options) { o.ReserveSeqs, o.KeepMessages = 50, 100_000 })
	used := 0
	for life := range 5 {
		kv := openKV(t, fs)
		s := openStore(t, kv, o)
		if next := s.NextSenderMsgSeqNum(); next <= used {
			t.Fatalf("number %d is used again, after %d", next, used)
		}
		for i := range 100 + r.IntN(100) {
			used = sendOne(t, s, "8")
			if i%20 == 0 && s.needsReserve() {
				if err := s.extend(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got := numbersOf(t, s, used, used); got != fmt.Sprint("8", used) {
			t.Errorf("life %d: the last message is %q", life, got)
		}
		crashed := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: r})
		if err := kv.Close(); err != nil {
			t.Fatal(err)
		}
		fs = crashed
	}
}

// BenchmarkPebbleSend is the one commit of a send, on disk and not synced.
func BenchmarkPebbleSend(b *testing.B) {
	kv, err := persist.OpenKV(b.TempDir(), nil, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	defer kv.Close()
	s := openStore(b, kv, storeOptions(func(o *Options) { o.ReserveSeqs = 1_000_000 }))
	body := storedMessage(1, "8")
	for len(body) < 250 {
		body = append(body, body...)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := s.SaveMessageAndIncrNextSenderMsgSeqNum(s.NextSenderMsgSeqNum(), body); err != nil {
			b.Fatal(err)
		}
	}
}
