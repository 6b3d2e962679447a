// Package systemd reports the state of the service to systemd (sd_notify): ready,
// stopping, and, while the engine makes progress, alive.
//
// If commands have waited for half of the watchdog's time without being applied or
// durable, the notification is left out, and systemd restarts the service. A service
// without commands counts as alive. Without NOTIFY_SOCKET nothing happens. A failed
// notification is logged and never ends the service; timeout bounds each.
package systemd

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"time"

	"blockdesk/engine"
	"blockdesk/internal/repeat"
)

// timeout bounds a datagram to systemd: the write blocks while the socket is full.
const timeout = time.Second

// Notifier reports to systemd that the service is ready, alive or stopping.
type Notifier struct {
	socket string        // empty: the process does not run under systemd
	every  time.Duration // between two watchdog notifications; 0: none
	stats  func() engine.Stats
	log    *slog.Logger
}

// New reads the environment that systemd sets: NOTIFY_SOCKET, and WATCHDOG_USEC, the longest
// time between two watchdog notifications, if WATCHDOG_PID is this process or is not set.
// stats is called before each notification.
func New(stats func() engine.Stats, log *slog.Logger) *Notifier {
	n := &Notifier{socket: os.Getenv("NOTIFY_SOCKET"), stats: stats, log: log}
	within, err := strconv.ParseUint(os.Getenv("WATCHDOG_USEC"), 10, 63)
	if pid := os.Getenv("WATCHDOG_PID"); err == nil && (pid == "" || pid == strconv.Itoa(os.Getpid())) {
		n.every = time.Duration(within) * time.Microsecond / 2
	}
	return n
}

// Run notifies systemd that the service is ready, then that it is alive as long as the
// engine makes progress, and at the end of ctx that it stops. It returns nil: a failed
// notification is logged, and the service continues.
func (n *Notifier) Run(ctx context.Context) error {
	if n.socket == "" {
		return nil
	}
	n.send("READY=1")
	defer n.send("STOPPING=1")
	if n.every <= 0 {
		<-ctx.Done()
		return nil
	}
	var last engine.Stats
	repeat.Every(ctx, n.every, func(context.Context) {
		now := n.stats()
		if stalled(&last, &now) {
			n.log.Error("engine stalled: no watchdog notification", "seq", now.Seq, "durable_seq", now.Durable, "waiting", now.Ingress)
		} else {
			n.send("WATCHDOG=1")
		}
		last = now
	})
	return nil
}

// stalled reports whether commands have waited since last and none was applied or became
// durable. An engine whose journal has failed does not count: readers are served, and an
// operator decides on a restart.
func stalled(last, now *engine.Stats) bool {
	return now.Failed == nil && last.Ingress > 0 && now.Ingress > 0 && now.Seq == last.Seq && now.Durable == last.Durable
}

func (n *Notifier) send(state string) {
	address := n.socket
	if address[0] == '@' { // of the abstract namespace
		address = "\x00" + address[1:]
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: address, Net: "unixgram"})
	if err == nil {
		if err = conn.SetWriteDeadline(time.Now().Add(timeout)); err == nil {
			_, err = conn.Write([]byte(state))
		}
		_ = conn.Close() // the datagram is sent
	}
	if err != nil {
		n.log.Warn("systemd not notified", "state", state, "error", fmt.Errorf("NOTIFY_SOCKET: %w", err))
	}
}
