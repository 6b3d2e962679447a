package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"blockdesk/bench/server"
	"blockdesk/e2e/programtest"
	"blockdesk/httpgw/wire"
	"blockdesk/internal/await"
)

// A node that is asked to read its participants anew lives on, whether it leads or
// not; and clients that say half of what they want, and wait, do not keep it from
// giving the lead away.
func TestGroupNodesAreNotHeld(t *testing.T) {
	t.Parallel()
	exe := programtest.Binary(t)
	g, err := server.StartGroup(context.Background(), exe, t.TempDir(), programtest.Config(t, "log: {level: warn}\n"), 2, roomyTimeoutMS*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, s := range g {
			if err := s.Stop(); err != nil && !errors.Is(err, os.ErrProcessDone) {
				t.Error(errors.Join(err, s.Kill()))
			}
		}
	})
	for _, s := range g {
		if err := syscall.Kill(s.PID(), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	// A client that is waited for holds each stop up for DefaultShutdownTimeout. A busy
	// machine may do that once.
	const tries = 5
	for range tries {
		leader := slowClients(t, g)
		began := time.Now()
		if err := leader.Stop(); err != nil {
			t.Fatal(err)
		}
		took := time.Since(began)
		if took < wire.DefaultShutdownTimeout {
			return
		}
		t.Logf("a leader with slow clients has stopped after %v", took)
		if err := leader.Restart(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	t.Errorf("slow clients hold the leader up, %d times of %[1]d", tries)
}

// slowClients connects clients to all nodes that say half of what they want, and returns
// the leader.
func slowClients(t *testing.T, g server.Group) *server.Server {
	t.Helper()
	var leader *server.Server
	await.True(t, "a leader", func() bool {
		for _, s := range g {
			if programtest.Ready(s) {
				leader = s
			}
		}
		return leader != nil
	})
	for _, s := range g {
		for _, half := range []struct{ url, sent string }{
			{s.Addresses.Base, "POST /api/v1/rfq/quote HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{"},
			{s.Addresses.Admin, "GET /metrics HTTP/1.1\r\nHost: a\r\n"},
		} {
			conn, err := net.Dial("tcp", strings.TrimPrefix(half.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			if _, err := fmt.Fprint(conn, half.sent); err != nil {
				t.Fatal(err)
			}
		}
		await.True(t, "an answer", func() bool { // by then it has accepted them
			return strings.HasPrefix(programtest.Answered(s.Addresses.Admin+"/healthz"), "200 ")
		})
	}
	return leader
}
