package quorum

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// TestPatientTransport: entries for a peer that is away arrive when it is back, in
// the same call; heartbeats, and what a leader of the past still has to say, fail.
func TestPatientTransport(t *testing.T) {
	var leads atomic.Bool
	leads.Store(true)
	open := func(bind string) *patient {
		return openPatient(t, bind, func(term uint64) bool { return term == 7 && leads.Load() })
	}
	leader := open(freeAddress(t))
	away := freeAddress(t)
	call := func(ask *raft.AppendEntriesRequest) <-chan error {
		done := make(chan error, 1)
		go func() {
			done <- leader.AppendEntries("peer", raft.ServerAddress(away), ask, &raft.AppendEntriesResponse{})
		}()
		return done
	}
	if err := <-call(&raft.AppendEntriesRequest{Term: 7}); err == nil {
		t.Error("a heartbeat to nobody is answered")
	}
	entries := &raft.AppendEntriesRequest{Term: 7, PrevLogEntry: 1, PrevLogTerm: 7}
	done := call(entries)
	select {
	case err := <-done:
		t.Fatalf("entries for a peer that is away: %v", err)
	case <-time.After(3 * awayRetry):
	}
	peer := open(away)
	go func() {
		rpc := <-peer.Consumer()
		rpc.Respond(&raft.AppendEntriesResponse{Term: 7, Success: true}, nil)
	}()
	if err := <-done; err != nil {
		t.Errorf("the peer is back: %v", err)
	}
	away = net.JoinHostPort("127.0.0.1", "1") // nobody is there
	done = call(entries)
	leads.Store(false)
	if err := <-done; err == nil {
		t.Error("entries of a leader of the past are answered")
	}
}

func openPatient(t *testing.T, bind string, leads func(uint64) bool) *patient {
	t.Helper()
	s, err := listen(&Options{ID: "n", Bind: bind})
	if err != nil {
		t.Fatal(err)
	}
	const stall = 100 * time.Millisecond
	p := newTransport(s, newRaftLog(quiet()), stall, leads)
	end := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { p.run(end) })
	t.Cleanup(func() {
		close(end)
		running.Wait()
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// TestSilentSnapshot: a snapshot whose sender falls silent is given up, so that the
// node can vote.
func TestSilentSnapshot(t *testing.T) {
	nobody := func(uint64) bool { return false }
	leader, peer := openPatient(t, freeAddress(t), nobody), openPatient(t, freeAddress(t), nobody)
	content, silence := io.Pipe() // some bytes, and no more
	sent := make(chan error, 1)
	go func() {
		ask := &raft.InstallSnapshotRequest{Term: 7, Size: 1000}
		sent <- leader.InstallSnapshot("peer", raft.ServerAddress(peer.stream.Addr().String()), ask, &raft.InstallSnapshotResponse{}, content)
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
		t.Error("the sender is told that it was taken")
	}
}
