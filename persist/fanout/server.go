package fanout

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// startTimeout bounds the start of a Server, stopTimeout its last requests.
const (
	startTimeout = 10 * time.Second
	stopTimeout  = time.Second
)

// ServerOptions are the options of a server in this process.
type ServerOptions struct {
	// Host and Port are the address to listen on. Port 0 takes a free one; Host is
	// 127.0.0.1 by default.
	Host string
	Port int
	// Dir is a folder for the stream alone.
	Dir string
	// MaxStore bounds all streams on disk, 1 to MaxStreamBytes. Default 2 GiB.
	MaxStore int64
	// User and Password, if set, are required of every client.
	User, Password string
	// TLS, if set, is required of every client.
	TLS *tls.Config
	// Logger is slog's default by default.
	Logger *slog.Logger
}

// Server is a NATS server with JetStream in this process, for a small setup.
type Server struct {
	o     ServerOptions
	s     *server.Server
	ready chan struct{} // closed when it listens or has failed to
	err   error         // set before ready is closed
}

// NewServer returns a server that does not listen yet. Errors: an option out of its
// range.
func NewServer(o ServerOptions) (*Server, error) {
	o.Host = cmp.Or(o.Host, "127.0.0.1")
	o.MaxStore = cmp.Or(o.MaxStore, 2<<30)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	port := cmp.Or(o.Port, server.RANDOM_PORT)
	switch {
	case o.Dir == "":
		return nil, errors.New("nats server: the folder is missing")
	case o.Port < 0 || o.Port > 65535:
		return nil, fmt.Errorf("nats server: port %d: must be 0 to 65535", o.Port)
	case o.MaxStore < 0 || o.MaxStore > MaxStreamBytes:
		return nil, fmt.Errorf("nats server: max store %d: must be 1 to %d", o.MaxStore, int64(MaxStreamBytes))
	case o.Password != "" && o.User == "":
		return nil, errors.New("nats server: a password is set without a user: set both")
	}
	s, err := server.NewServer(&server.Options{
		ServerName: "blockdesk", Host: o.Host, Port: port, NoSigs: true, NoLog: true,
		JetStream: true, StoreDir: o.Dir, JetStreamMaxStore: o.MaxStore, JetStreamMaxMemory: 1 << 20,
		MaxPayload: 1 << 20, Username: o.User, Password: o.Password,
		TLS: o.TLS != nil, TLSConfig: o.TLS, TLSTimeout: dialTimeout.Seconds(),
		WriteDeadline: writeTimeout,
	})
	if err != nil {
		return nil, fmt.Errorf("nats server: %w", err)
	}
	s.SetLoggerV2(serverLog{o.Logger.With("role", "nats-server")}, false, false, false)
	return &Server{o: o, s: s, ready: make(chan struct{})}, nil
}

// URL waits until the server listens and returns its URL. Errors: why it does not
// listen; ctx's.
func (s *Server) URL(ctx context.Context) (string, error) {
	select {
	case <-s.ready:
		return s.s.ClientURL(), s.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// Run serves until ctx ends. Once.
func (s *Server) Run(ctx context.Context) error {
	s.s.Start()
	if !s.s.ReadyForConnections(startTimeout) {
		s.err = fmt.Errorf("nats server: it does not listen on %s:%d: is the port in use?", s.o.Host, s.o.Port)
	}
	close(s.ready)
	if s.err == nil {
		<-ctx.Done()
		s.finishRequests()
	}
	s.s.Shutdown()
	s.s.WaitForShutdown()
	return s.err
}

// finishRequests waits until JetStream has answered the requests it has taken, because
// a worker of nats-server 2.15.2 that first runs after Shutdown panics on a request.
func (s *Server) finishRequests() {
	for end := time.Now().Add(stopTimeout); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if info, err := s.s.Jsz(nil); err != nil || info.API.Inflight == 0 {
			return
		}
	}
}

// serverLog writes the server's log to slog. Notices are many and of no use here.
type serverLog struct{ log *slog.Logger }

func (l serverLog) Noticef(format string, v ...any) { l.write(slog.LevelDebug, format, v) }
func (l serverLog) Warnf(format string, v ...any)   { l.write(slog.LevelWarn, format, v) }
func (l serverLog) Fatalf(format string, v ...any)  { l.write(slog.LevelError, format, v) }
func (l serverLog) Errorf(format string, v ...any)  { l.write(slog.LevelError, format, v) }
func (l serverLog) Debugf(string, ...any)           {}
func (l serverLog) Tracef(string, ...any)           {}

func (l serverLog) write(level slog.Level, format string, v []any) {
	if l.log.Enabled(context.Background(), level) {
		l.log.Log(context.Background(), level, "nats server", "message", fmt.Sprintf(format, v...))
	}
}
