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

// link is a connection that comes back by itself, for ever.
type link struct{ *nats.Conn }

// LinkStats count what befell a connection. Safe to read at any time.
type LinkStats struct {
	// Reconnects to a server, after the first.
	Reconnects atomic.Uint64
	// Overflows is how often the queue of what is received was full, and what came
	// was dropped until there was room.
	Overflows atomic.Uint64
}

// dial begins to connect and returns without waiting for a server. While there is
// none, publishing fails at once: nothing is kept to be sent later. It counts in
// stats.
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
		nats.IgnoreAuthErrorAbort(), // a server whose accounts are being changed is asked again
		nats.Timeout(dialTimeout), nats.FlusherTimeout(writeTimeout),
		nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(2),
		nats.SyncQueueLen(LiveQueueMessages),
		nats.ConnectHandler(func(c *nats.Conn) { log.Info("nats connected", "server", c.ConnectedServerName()) }),
		nats.ReconnectHandler(func(c *nats.Conn) {
			stats.Reconnects.Add(1)
			log.Info("nats connected again", "server", c.ConnectedServerName())
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
			log.Warn("nats", "error", err)
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

// pieceBytes is the most of a frame or a snapshot that the server takes in one
// message.
func (l *link) pieceBytes() int {
	return max(MinPieceBytes, min(MaxPieceBytes, int(l.MaxPayload())-overhead))
}

// sleep waits for d and reports whether ctx is still there.
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

// ended reports whether ctx has.
func ended(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return true
	default:
		return false
	}
}
