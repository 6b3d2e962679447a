package fanout

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/nats-io/nats.go"

	"blockdesk/engine"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/persist"
)

// strict is an Applier on a replica that accepts nothing but the next command after the
// events that the leader had.
type strict struct{ replica *engine.Replica }

func (s *strict) Apply(prior uint64, commands []engine.Command) error {
	if prior != s.replica.Digest {
		return fmt.Errorf("digest %016x, want %016x", s.replica.Digest, prior)
	}
	for i := range commands {
		if commands[i].Seq != s.replica.State.Seq()+1 {
			return fmt.Errorf("seq %d after %d", commands[i].Seq, s.replica.State.Seq())
		}
		s.replica.Apply(&commands[i], nil)
	}
	return nil
}

// overheard is everything that a leader has published live, with a heartbeat at its
// end.
func overheard(t *testing.T, r *rig, l *leader, n int) [][]byte {
	t.Helper()
	c, err := nats.Connect(r.o.URLs[0])
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	sub, err := c.SubscribeSync(r.o.liveSubject())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
	for range n / 20 {
		l.submit(t, 20)
		l.seq(t) // so that there are many frames
	}
	want := l.store.Durable()
	var all [][]byte
	for {
		m, err := sub.NextMsg(runtest.HangTimeout)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m.Data)
		h, body, err := parseMessage(m.Data)
		if err != nil {
			t.Fatal(err)
		}
		if h.kind == kindHeartbeat && parseHeartbeat(&h, body).position == want {
			return all
		}
	}
}

// distort returns the messages as a bad wire delivers them: some lost, doubled, late,
// out of order, with flipped bits, cut short; the last one, a heartbeat, is intact.
func distort(rng *rand.Rand, all [][]byte) [][]byte {
	var out, late [][]byte
	for _, m := range all[:len(all)-1] {
		switch rng.IntN(14) {
		case 0:
		case 1:
			out = append(out, m, m)
		case 2:
			late = append(late, m)
		case 3:
			bad := append([]byte(nil), m...)
			bad[rng.IntN(len(bad))] ^= 1 << rng.IntN(8)
			out = append(out, bad)
		case 4:
			out = append(out, m[:rng.IntN(len(m))])
		case 5:
			out = append(out, m)
			if n := len(out); n > 1 {
				out[n-1], out[n-2] = out[n-2], out[n-1]
			}
		default:
			out = append(out, m)
		}
		if rng.IntN(9) == 0 {
			out, late = append(out, late...), nil
		}
	}
	return append(out, all[len(all)-1])
}

// TestBadWire: whatever a wire does to the live messages, the follower applies the
// leader's history completely and once, and counts every distortion.
func TestBadWire(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	l := r.lead(t, journalOptions(vfs.NewMem()), newFlow(t, 2))
	first, err := NewFollower(r.o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), runtest.HangTimeout)
	defer cancel()
	if _, err := first.Join(ctx); err != nil { // the leader is there
		t.Fatal(err)
	}
	all := overheard(t, r, l, 1200)
	link, err := dial(&r.o, "test", &LinkStats{})
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	digest := uint64(0)
	for seed := range uint64(12) {
		f, err := NewFollower(r.o)
		if err != nil {
			t.Fatal(err)
		}
		s := &strict{engine.NewReplica(smallState)}
		f.at, f.to = persist.Genesis(), s
		for _, m := range distort(rand.New(rand.NewPCG(seed, 1)), all) {
			if _, err := f.handle(ctx, link, m); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		if f.at != l.store.Durable() || f.stats.Gaps.Load() == 0 || f.stats.Damaged.Load() == 0 || f.stats.Duplicates.Load() == 0 {
			t.Fatalf("seed %d: at %+v of %+v, gaps %d, damaged %d, duplicates %d", seed, f.at, l.store.Durable(),
				f.stats.Gaps.Load(), f.stats.Damaged.Load(), f.stats.Duplicates.Load())
		}
		digest = s.replica.Digest
	}
	l.stop(t)
	if digest != l.replica.Digest {
		t.Errorf("digest %016x, the leader's %016x", digest, l.replica.Digest)
	}
}

// TestDiverged: a leader with another history, longer or shorter than what was applied,
// ends Run; the follower starts over with it, and the stream becomes its own.
func TestDiverged(t *testing.T) {
	t.Parallel()
	for name, n := range map[string]int{"longer": 900, "shorter": 100} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			one := r.lead(t, journalOptions(vfs.NewMem()), newFlow(t, 3))
			a := follow(t, r.o)
			one.submit(t, 500)
			a.reaches(t, one.seq(t))
			await.True(t, "a full stream", func() bool { return one.publisher.Stats().StreamSeq.Load() == one.seq(t) })
			one.stop(t)
			r.o.Clock = func() time.Time { return time.Now().Add(time.Hour) }
			two := r.lead(t, journalOptions(vfs.NewMem()), newFlow(t, 4))
			two.submit(t, n)
			seq := two.seq(t)
			// It lost the first live frames where it hears of a gap only; then it may
			// find first that the stream does not have what would come next.
			if err := a.runs[0].wait(t); !errors.Is(err, ErrDiverged) && !(n > 500 && errors.Is(err, ErrBehind)) {
				t.Fatalf("the follower ends with %v", err)
			}
			for _, run := range a.runs[1:] {
				if err := run.stop(t); err != nil {
					t.Error(err)
				}
			}
			// Until then a follower that starts over would apply the old stream, and
			// stop again at the next heartbeat.
			await.True(t, "the stream filled anew", func() bool { return two.publisher.Stats().StreamSeq.Load() == seq })
			b := rejoin(t, a.follower)
			b.reaches(t, seq)
			two.stop(t)
			b.sameAs(t, two)
		})
	}
}

// TestTerms: a follower ignores a leader of an earlier term, which leaves no half frame
// behind.
func TestTerms(t *testing.T) {
	f, err := NewFollower(Options{URLs: []string{"nats://127.0.0.1:1"}, Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	f.at = persist.Genesis()
	half := appendMessage(nil, &head{kind: kindFramePiece, term: 5, seq: 1, total: 100}, make([]byte, 50))
	old := appendHeartbeat(nil, 4, &heartbeat{position: persist.Position{Next: 7, Hash: 1, Epoch: 1}})
	newer := appendHeartbeat(nil, 6, &heartbeat{position: persist.Genesis()})
	request := appendMessage(nil, &head{kind: kindSnapshotRequest, term: 9})
	for i, m := range [][]byte{half, old, newer, request} {
		if _, err := f.handle(t.Context(), nil, m); err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
	}
	if f.term != 6 || f.stats.Stale.Load() != 1 || f.stats.Damaged.Load() != 1 || len(f.parts.buf) != 0 || f.Lag().Term != 6 {
		t.Errorf("term %d, stale %d, damaged %d, half a frame of %d bytes", f.term, f.stats.Stale.Load(), f.stats.Damaged.Load(), len(f.parts.buf))
	}
}

// TestBehind: a follower that neither the live frames nor the stream reach returns
// ErrBehind and starts over; so does one whose gap stays open longer than
// RefillTimeout.
func TestBehind(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o, flow := journalOptions(vfs.NewMem()), newFlow(t, 6)
	l := r.lead(t, o, flow)
	f, err := NewFollower(r.o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), runtest.HangTimeout)
	defer cancel()
	if _, err := f.Join(ctx); err != nil {
		t.Fatal(err)
	}
	l.submit(t, 500)
	l.seq(t)
	l.stop(t) // takes a snapshot
	deleteStream(t, r)
	f.o.RefillTimeout = 10 * time.Millisecond
	f.to, f.at = &strict{engine.NewReplica(smallState)}, persist.Genesis()
	link, err := dial(&r.o, "test", &LinkStats{})
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	await.True(t, "a connection", link.IsConnected)
	late := appendHeartbeat(nil, 1, &heartbeat{position: persist.Position{Next: 99, Hash: 1, Epoch: 1}, durable: 98})
	if _, err := f.handle(ctx, link, late); !errors.Is(err, ErrBehind) {
		t.Errorf("without a stream: %v", err)
	}
	l = r.lead(t, o, flow) // fills the stream from the snapshot on
	f.o.RefillTimeout = runtest.HangTimeout
	if err := f.Run(ctx, f.to); !errors.Is(err, ErrBehind) {
		t.Errorf("from before the stream: %v", err)
	}
	again := rejoin(t, f)
	l.submit(t, 100)
	again.reaches(t, l.seq(t))
	l.stop(t)
	again.sameAs(t, l)
}
