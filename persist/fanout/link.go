package fanout

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

// link is a connection to NATS that reconnects for ever.
type link struct{ *nats.Conn }

// LinkStats counts events of a connection. Any goroutine may read it.
type LinkStats struct {
	// Reconnects to a server, not counting the first connection.
	Reconnects atomic.Uint64
	// Overflows is how often the receive queue was full and messages were dropped.
	Overflows atomic.Uint64
}

// dial starts to connect and returns without waiting for a server. Without a server,
// publishing fails at once: nothing is buffered.
func dial(o *Options, role string, stats *LinkStats) (*link, error) {
	auth, err := o.Auth.option()
	if err != nil {
		return nil, err
	}
	log := o.Logger.With("role", role)
	options := []nats.Option{
		auth,
		nats.Name(o.Name + " " + role),
		nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectBufSize(-1),
		nats.CustomReconnectDelay(pause),
		nats.IgnoreAuthErrorAbort(), // retries while a server's accounts are being changed
		nats.Timeout(dialTimeout), nats.FlusherTimeout(writeTimeout),
		nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(2),
		nats.SyncQueueLen(LiveQueueMessages),
		nats.ConnectHandler(func(c *nats.Conn) { log.Info("nats connected", "server", c.ConnectedServerName()) }),
		nats.ReconnectHandler(func(c *nats.Conn) {
			stats.Reconnects.Add(1)
			log.Info("nats reconnected", "server", c.ConnectedServerName())
		}),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				log.Warn("nats disconnected", "error", err)
			}
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			if errors.Is(err, nats.ErrSlowConsumer) {
				stats.Overflows.Add(1)
			}
			log.Warn("nats connection error", "error", err)
		}),
	}
	if o.TLS != nil {
		options = append(options, nats.Secure(o.TLS))
	}
	c, err := nats.Connect(strings.Join(o.URLs, ","), options...)
	if err != nil {
		return nil, fmt.Errorf("connecting to nats: %w", err)
	}
	return &link{c}, nil
}

// pieceBytes returns the most bytes of a frame or a snapshot that the server takes in
// one message.
func (l *link) pieceBytes() int {
	return max(MinPieceBytes, min(MaxPieceBytes, int(l.MaxPayload())-overhead))
}

// sleep waits for d and reports whether ctx is still alive.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

func ended(ctx context.Context) bool { return ctx.Err() != nil }
