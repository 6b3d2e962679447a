package systemd

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"blockdesk/engine"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
)

// A socket that is not read, one that cannot exist, and none delay neither the
// service nor its end.
func TestNotifyHostileSockets(t *testing.T) {
	full := filepath.Join(t.TempDir(), "full")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: full, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	filler, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: full, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { filler.Close() })
	for err == nil { // until its queue is full
		if err = filler.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err == nil {
			_, err = filler.Write([]byte("x"))
		}
	}
	for name, socket := range map[string]string{
		"full": full, "abstract, nobody": "@blockdesk-nobody-listens", "only the sign": "@", "not there": full + "-not",
		"no path": "vsock:2:1234", "too long": "/" + strings.Repeat("x", 4096), "a NUL": "/tmp/a\x00b",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log strings.Builder
			n := &Notifier{socket: socket, log: slog.New(slog.NewTextHandler(&log, nil))}
			ctx, stop := context.WithCancel(t.Context())
			stop()
			ended := make(chan error, 1)
			go func() { ended <- n.Run(ctx) }()
			err := await.Receive(t, "the end of the service", ended)
			if err != nil || strings.Count(log.String(), "systemd not notified") != 2 {
				t.Errorf("%v; the log: %s", err, log.String())
			}
		})
	}
}

// The watchdog is notified only while the engine makes progress: commands that wait while none
// is applied or durable are no life.
func TestStalled(t *testing.T) {
	base := engine.Stats{Seq: 7, Durable: 5, Ingress: 2}
	for name, c := range map[string]struct {
		last, now engine.Stats
		want      bool
	}{
		"nothing moves":       {base, base, true},
		"more come in":        {base, engine.Stats{Seq: 7, Durable: 5, Ingress: 9}, true},
		"applied":             {base, engine.Stats{Seq: 8, Durable: 5, Ingress: 2}, false},
		"durable":             {base, engine.Stats{Seq: 7, Durable: 6, Ingress: 2}, false},
		"a quiet market":      {engine.Stats{Seq: 7, Durable: 7}, engine.Stats{Seq: 7, Durable: 7}, false},
		"they have just come": {engine.Stats{Seq: 7, Durable: 7}, engine.Stats{Seq: 7, Durable: 7, Ingress: 1}, false},
		"read-only":           {base, engine.Stats{Seq: 7, Durable: 5, Ingress: 2, Failed: errors.New("disk")}, false},
	} {
		if got := stalled(&c.last, &c.now); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A stalled engine gets no watchdog notification, and the log says so; nor does
// one whose watchdog is another process's.
func TestWatchdogStarves(t *testing.T) {
	socket, next := notifySocket(t)
	t.Setenv("NOTIFY_SOCKET", socket)
	t.Setenv("WATCHDOG_USEC", "20000")
	t.Setenv("WATCHDOG_PID", "1")
	var log lockedBuffer
	n := New(func() engine.Stats { return engine.Stats{Seq: 7, Ingress: 1} }, slog.New(slog.NewTextHandler(&log, nil)))
	if n.every != 0 {
		t.Errorf("a sign of life every %v for another process", n.every)
	}
	n.every = time.Millisecond
	stop := runtest.Start(t, n.Run)
	await.True(t, "a line in the log", func() bool { return strings.Contains(log.String(), "engine stalled") })
	stop()
	for _, want := range []string{"READY=1", "WATCHDOG=1", "STOPPING=1"} {
		if got := next(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// notifySocket is where systemd would listen. next returns what comes.
func notifySocket(t *testing.T) (path string, next func() string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	come := make(chan string, 1<<16) // read at once: the socket holds few, and a service drops what finds no room
	go func() {
		buf := make([]byte, 256)
		for {
			n, err := conn.Read(buf)
			if err != nil {
				return
			}
			come <- string(buf[:n])
		}
	}()
	return path, func() string {
		t.Helper()
		return await.Receive(t, "a word to systemd", come)
	}
}

// lockedBuffer is what was logged so far.
type lockedBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
