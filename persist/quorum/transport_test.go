package quorum

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"blockdesk/internal/runtest"
)

// TestStreamEnds: a closed stream closes its connections, and takes no new one.
func TestStreamEnds(t *testing.T) {
	peer, err := listen(&Options{ID: "b", Bind: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := listen(&Options{ID: "a", Bind: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	join := func(from, to *stream) (dialled, accepted net.Conn) {
		t.Helper()
		dialled, err := from.Dial(raft.ServerAddress(to.Addr().String()), runtest.HangTimeout)
		if err != nil {
			t.Fatal(err)
		}
		if accepted, err = to.accept(); err != nil {
			t.Fatal(err)
		}
		return dialled, accepted
	}
	out, _ := join(s, peer)
	_, in := join(peer, s)
	given, _ := join(s, peer)
	if err := given.Close(); err != nil || len(s.open) != 2 {
		t.Errorf("%d connections after one was given back: %v", len(s.open), err)
	}
	if err := s.Close(); err != nil || len(s.open) != 0 {
		t.Errorf("%d connections after the end: %v", len(s.open), err)
	}
	for _, conn := range []net.Conn{out, in} {
		if err := conn.SetDeadline(time.Now().Add(runtest.HangTimeout)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a connection is left: %v", err)
		}
	}
	if conn, err := s.Dial(raft.ServerAddress(peer.Addr().String()), runtest.HangTimeout); !errors.Is(err, net.ErrClosed) {
		t.Errorf("dialled after the end: %v, %v", conn, err)
	}
	if err := peer.Close(); err != nil {
		t.Error(err)
	}
}

// named is a value as raft logs it: String has its name.
type named struct{ Option bool }

func (named) String() string { return "Node at 127.0.0.1:1 [Follower]" }

// Raft's words have their values as people read them, in JSON too.
func TestRaftLog(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := newRaftLog(slog.New(slog.NewJSONHandler(&out, nil)))
	log.Info("entering follower state", "follower", named{}, "leader-id", raft.ServerID("b"), "term", 7)
	log.Warn("initial", "servers", hclog.Fmt("%+v", []string{"a", "b"}), "error", errors.New("refused"), "backoff time", 10*time.Millisecond)
	for _, want := range []string{
		`"msg":"raft","says":"entering follower state","follower":"Node at 127.0.0.1:1 [Follower]","leader-id":"b","term":7}`,
		`"msg":"raft","says":"initial","servers":"[a b]","error":"refused","backoff time":"10ms"}`,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("without %s:\n%s", want, &out)
		}
	}
}
