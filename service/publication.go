package service

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"blockdesk/persist/fanout"
	"blockdesk/service/config"
	"blockdesk/service/metrics"
)

// natsFolder, in the data folder, is the embedded server's.
const natsFolder = "nats"

// publication publishes durable frames to followers, and runs the embedded NATS server.
type publication struct {
	options   fanout.Options
	server    *fanout.Server // nil: NATS runs elsewhere
	publisher atomic.Pointer[fanout.Publisher]
}

// openPublication prepares the publication; nil if there are no followers.
func openPublication(c *config.Config, log *slog.Logger) (*publication, error) {
	if c.Fanout != config.FanoutNATS {
		return nil, nil
	}
	p := &publication{}
	var err error
	if p.options, err = c.FanoutOptions(log); err != nil {
		return nil, err
	}
	if c.NATS.Embedded {
		p.server, err = newNATSServer(c, p.options.Auth, log)
	}
	return p, err
}

// newNATSServer prepares the embedded server.
func newNATSServer(c *config.Config, auth fanout.Auth, log *slog.Logger) (*fanout.Server, error) {
	host, port, err := net.SplitHostPort(c.NATS.Listen)
	if err != nil {
		return nil, fmt.Errorf("nats.listen: %w", err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return nil, fmt.Errorf("nats.listen: port %q is not a number", port)
	}
	return fanout.NewServer(fanout.ServerOptions{
		Host: host, Port: n, Dir: filepath.Join(c.DataDir, natsFolder), MaxStore: 2 * int64(c.NATS.StreamMiB) << 20,
		User: auth.User, Password: auth.Password, Logger: log,
	})
}

// serve publishes until ctx ends. An error is logged only: the service continues
// without followers.
func (p *publication) serve(ctx context.Context, from fanout.Journal, term uint64, log *slog.Logger) error {
	if err := p.run(ctx, from, term); err != nil && ctx.Err() == nil {
		log.Error("publishing to followers failed: followers get no frames until a restart", "error", err)
	}
	<-ctx.Done()
	return nil
}

func (p *publication) run(ctx context.Context, from fanout.Journal, term uint64) error {
	group, ctx := errgroup.WithContext(ctx)
	options := p.options
	if p.server != nil {
		group.Go(func() error { return p.server.Run(ctx) })
		url, err := p.server.URL(ctx)
		if err != nil {
			return err
		}
		options.URLs = []string{url}
	}
	publisher, err := fanout.NewPublisher(options, from, term)
	if err != nil {
		return err
	}
	p.publisher.Store(publisher)
	group.Go(func() error { return publisher.RunWithRetry(ctx) })
	return group.Wait()
}

// collector has the publisher's metrics.
func (p *publication) collector() prometheus.Collector {
	return metrics.Fanout(func() []fanout.Metric {
		if now := p.publisher.Load(); now != nil {
			return now.Metrics()
		}
		return nil
	})
}
