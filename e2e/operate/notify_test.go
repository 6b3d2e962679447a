package operate

import (
	"net"
	"path/filepath"
	"strconv"
	"testing"

	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
)

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

// A service under systemd says that it is ready, that it lives, and that it stops.
func TestServiceNotifies(t *testing.T) {
	socket, next := notifySocket(t)
	t.Setenv("NOTIFY_SOCKET", socket)
	t.Setenv("WATCHDOG_USEC", strconv.Itoa(200_000))
	t.Setenv("WATCHDOG_PID", "") // the service's number is not known yet
	d := programtest.StartDemo(t)
	for _, want := range []string{"READY=1", "WATCHDOG=1", "WATCHDOG=1"} {
		if got := next(); got != want {
			t.Fatalf("%s, want %s", got, want)
		}
	}
	if programtest.Status(t, d.At.Admin+"/healthz") != 200 {
		t.Error("ready, and does not answer")
	}
	if err := d.Stop(); err != nil {
		t.Fatal(err)
	}
	got := next()
	for got == "WATCHDOG=1" {
		got = next()
	}
	if got != "STOPPING=1" {
		t.Errorf("%s at the end", got)
	}
}
