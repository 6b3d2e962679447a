package service

import (
	"context"
	"fmt"
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

// natsFolder is the embedded server's part of the data folder.
const natsFolder = "nats"

// publication gives what is durable to followers, and runs the NATS server in
// this process where there is one.
type publication struct {
	options   fanout.Options
	server    *fanout.Server // nil: it is the user's own
	publisher atomic.Pointer[fanout.Publisher]
}

// openFanout prepares what the followers hang on, if anything.
func (s *Service) openFanout() error {
	if s.cfg.Fanout != config.FanoutNATS {
		return nil
	}
	p := &publication{}
	var err error
	if p.options, err = s.cfg.FanoutOptions(s.log); err != nil {
		return err
	}
	if s.cfg.NATS.Embedded {
		if p.server, err = s.natsServer(p.options.Auth); err != nil {
			return err
		}
	}
	s.publication = p
	return nil
}

// natsServer prepares the embedded server.
func (s *Service) natsServer(auth fanout.Auth) (*fanout.Server, error) {
	host, port, err := net.SplitHostPort(s.cfg.NATS.Listen)
	if err != nil {
		return nil, fmt.Errorf("nats.listen: %w", err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return nil, fmt.Errorf("nats.listen: port %q is no number", port)
	}
	return fanout.NewServer(fanout.ServerOptions{
		Host: host, Port: n, Dir: filepath.Join(s.cfg.DataDir, natsFolder), MaxStore: 2 * int64(s.cfg.NATS.StreamMiB) << 20,
		User: auth.User, Password: auth.Password, Logger: s.log,
	})
}

// publish serves followers until ctx ends. Without them the service goes on, so
// what is wrong is logged and is no error.
func (s *Service) publish(ctx context.Context) error {
	if s.publication == nil {
		return nil
	}
	if err := s.publication.run(ctx, s.storage.Journal, s.term()); err != nil && ctx.Err() == nil {
		s.log.Error("followers get nothing until a restart", "error", err)
	}
	<-ctx.Done()
	return nil
}

// term is higher than that of every service before this one, on whatever node. On a
// single node it is the epoch that the engine begins, which its journal may not have
// yet.
func (s *Service) term() uint64 {
	if s.storage.Term > 0 {
		return s.storage.Term
	}
	return s.eng.Epoch()
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

// figures are the publisher's metrics.
func (p *publication) figures() prometheus.Collector {
	return metrics.Fanout(func() []fanout.Metric {
		if now := p.publisher.Load(); now != nil {
			return now.Metrics()
		}
		return nil
	})
}
