package quorum

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
)

// TestRetryTransport: entries for a peer that is away arrive when it is back, in the
// same call; heartbeats, and calls of a former leader, fail.
func TestRetryTransport(t *testing.T) {
	var leads atomic.Bool
	leads.Store(true)
	var dialled atomic.Int64
	open := func(bind string) *retryTransport {
		return openRetrying(t, Options{ID: "n", Bind: bind, dial: func(to string, timeout time.Duration) (net.Conn, error) {
			dialled.Add(1)
			return dial(to, timeout)
		}}, runtest.HangTimeout, func(term uint64) bool { return term == 7 && leads.Load() })
	}
	leader := open(freeAddress(t))
	away := freeAddress(t)
	call := func(request *raft.AppendEntriesRequest) <-chan error {
		done := make(chan error, 1)
		go func() {
			done <- leader.AppendEntries("peer", raft.ServerAddress(away), request, &raft.AppendEntriesResponse{})
		}()
		return done
	}
	if err := <-call(&raft.AppendEntriesRequest{Term: 7}); err == nil {
		t.Error("a heartbeat to a closed port is answered")
	}
	entries := &raft.AppendEntriesRequest{Term: 7, PrevLogEntry: 1, PrevLogTerm: 7}
	before := dialled.Load()
	done := call(entries)
	await.True(t, "three tries to reach the peer", func() bool { return dialled.Load() >= before+3 || len(done) > 0 })
	if len(done) > 0 {
		t.Fatalf("entries for a peer that is away: %v", <-done)
	}
	peer := open(away)
	go func() {
		rpc := <-peer.Consumer()
		rpc.Respond(&raft.AppendEntriesResponse{Term: 7, Success: true}, nil)
	}()
	if err := <-done; err != nil {
		t.Errorf("the peer is back: %v", err)
	}
	away = net.JoinHostPort("127.0.0.1", "1") // nothing listens there
	done = call(entries)
	leads.Store(false)
	if err := <-done; err == nil {
		t.Error("entries of a leader of the past are answered")
	}
}

func openRetrying(t *testing.T, o Options, stall time.Duration, leads func(uint64) bool) *retryTransport {
	t.Helper()
	s, err := listen(&o)
	if err != nil {
		t.Fatal(err)
	}
	p := newTransport(s, newRaftLog(quiet()), stall, leads)
	end := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { p.run(end) })
	close(s.raft)
	running.Go(func() { s.run(func(*probeQuestion) (probeAnswer, bool) { return probeAnswer{}, false }) })
	t.Cleanup(func() {
		close(end)
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		running.Wait()
	})
	return p
}

// TestSilentSnapshot: a node gives up a snapshot whose sender falls silent, so that it
// can vote.
func TestSilentSnapshot(t *testing.T) {
	nobody := func(uint64) bool { return false }
	open := func() *retryTransport {
		return openRetrying(t, Options{ID: "n", Bind: freeAddress(t)}, 100*time.Millisecond, nobody)
	}
	leader, peer := open(), open()
	content, silence := io.Pipe() // some bytes, and no more
	sent := make(chan error, 1)
	go func() {
		request := &raft.InstallSnapshotRequest{Term: 7, Size: 1000}
		sent <- leader.InstallSnapshot("peer", raft.ServerAddress(peer.stream.Addr().String()), request, &raft.InstallSnapshotResponse{}, content)
	}()
	go func() { _, _ = silence.Write(make([]byte, 10)) }()
	call := <-peer.Consumer()
	if _, err := io.ReadAll(call.Reader); err == nil {
		t.Error("a snapshot of 10 bytes of 1000 is whole")
	}
	call.Respond(nil, errStopped)
	if err := silence.Close(); err != nil {
		t.Error(err)
	}
	if err := <-sent; err == nil {
		t.Error("the sender got a success")
	}
}
