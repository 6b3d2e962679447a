package quorum

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

const (
	// transportPool is the number of open connections to each peer.
	transportPool = 3
	// transportTimeout bounds each call to a peer; the bound of a snapshot grows with
	// its size.
	transportTimeout = 5 * time.Second
	// maxInFlight is how many calls to a peer may be under way, as raft advises.
	maxInFlight = 2
)

// stream connects raft with its peers: TCP, or TLS over it.
type stream struct {
	net.Listener
	advertise net.Addr
	client    *tls.Config // nil: plain TCP
	reach     func(to string, timeout time.Duration) (net.Conn, error)

	incoming chan net.Conn // to Accept
	raft     chan struct{} // closed when raft accepts
	done     chan struct{} // closed by Close

	mu     sync.Mutex
	open   map[*trackedConn]struct{} // incoming and outgoing connections
	closed bool
}

// trackedConn is a connection that closes with its stream, because raft leaves it to the
// peers to close incoming ones.
type trackedConn struct {
	net.Conn
	of       *stream
	accepted bool
}

// Close implements net.Conn.
func (h *trackedConn) Close() error {
	h.of.mu.Lock()
	delete(h.of.open, h)
	h.of.mu.Unlock()
	return h.Conn.Close()
}

// track adds a connection, or closes it if the stream is closed.
func (s *stream) track(conn net.Conn, accepted bool) (net.Conn, error) {
	h := &trackedConn{Conn: conn, of: s, accepted: accepted}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.Join(net.ErrClosed, conn.Close())
	}
	s.open[h] = struct{}{}
	return h, nil
}

// Accept implements net.Listener for raft: it returns the connections that run has found
// to be of raft.
func (s *stream) Accept() (net.Conn, error) {
	select {
	case conn := <-s.incoming:
		return conn, nil
	case <-s.done:
		return nil, net.ErrClosed
	}
}

// accept returns the next connection of any kind.
func (s *stream) accept() (net.Conn, error) {
	conn, err := s.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return s.track(conn, true)
}

// reset closes the incoming connections; the peers dial again.
func (s *stream) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for h := range s.open {
		if h.accepted {
			_ = h.Conn.Close() // wakes the reader
		}
	}
}

// Close implements net.Listener. It ends every connection.
func (s *stream) Close() error {
	err := s.Listener.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		close(s.done)
	}
	for h := range s.open {
		_ = h.Conn.Close() // wakes its user
	}
	clear(s.open)
	return err
}

func (s *stream) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// address is the advertised address.
type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }

func listen(o *Options) (*stream, error) {
	l, err := net.Listen("tcp", o.Bind)
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", o.ID, err)
	}
	s := &stream{
		Listener: l, advertise: l.Addr(), reach: o.dial, open: map[*trackedConn]struct{}{},
		incoming: make(chan net.Conn), raft: make(chan struct{}), done: make(chan struct{}),
	}
	if s.reach == nil {
		s.reach = dial
	}
	if o.Advertise != "" {
		s.advertise = address(o.Advertise)
	}
	if o.TLS != nil {
		server := o.TLS.Clone()
		server.ClientAuth, server.MinVersion = tls.RequireAndVerifyClientCert, tls.VersionTLS13
		s.Listener = tls.NewListener(l, server)
		s.client = o.TLS.Clone()
		s.client.MinVersion = tls.VersionTLS13
	}
	return s, nil
}

// Addr implements net.Listener: the address that the peers dial.
func (s *stream) Addr() net.Addr { return s.advertise }

// Dial implements raft.StreamLayer. With TLS the peer's certificate must be for the
// host that is dialed.
func (s *stream) Dial(to raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	conn, err := s.dial(to, timeout)
	if err != nil {
		return nil, err
	}
	return s.track(conn, false)
}

func (s *stream) dial(to raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	conn, err := s.reach(string(to), timeout)
	if err != nil || s.client == nil {
		return conn, err
	}
	host, _, err := net.SplitHostPort(string(to))
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	c := s.client.Clone()
	c.ServerName = host
	secured := tls.Client(conn, c)
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("peer %s: %w", to, err), conn.Close())
	}
	return secured, nil
}

func dial(to string, timeout time.Duration) (net.Conn, error) {
	return net.DialTimeout("tcp", to, timeout)
}

// pipeline bounds how long AppendEntries blocks. Raft v1.8.0 stops reading responses
// after a refusal, even while AppendEntries waits to hand over the request that it has
// just sent. Then nothing would be sent to that peer again, and a shutdown would not end.
type pipeline struct {
	raft.AppendPipeline
	timeout time.Duration
}

// AppendEntries implements raft.AppendPipeline. After the timeout it closes the
// pipeline; raft then sends what is missing call by call and opens a new one.
func (p *pipeline) AppendEntries(args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	stuck := time.AfterFunc(p.timeout, func() { _ = p.Close() })
	defer stuck.Stop()
	return p.AppendPipeline.AppendEntries(args, resp)
}

// newTransport returns a transport, whose run must be called. leads reports whether this
// node still leads in a term; stall bounds how long an incoming snapshot may block.
func newTransport(s *stream, log hclog.Logger, stall time.Duration, leads func(term uint64) bool) *retryTransport {
	return &retryTransport{stream: s, stall: stall, leads: leads, calls: make(chan raft.RPC), NetworkTransport: raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: s, MaxPool: transportPool, MaxRPCsInFlight: maxInFlight, Timeout: transportTimeout, Logger: log,
	})}
}

const (
	// An unreachable peer is tried again after retryInterval, for up to retryLimit in
	// one call, because a peer that was removed stays unreachable.
	retryInterval = 50 * time.Millisecond
	retryLimit    = time.Minute
)

// retryTransport retries an unreachable peer soon, and gives up a peer that falls
// silent in the middle of a snapshot. Raft itself doubles its pause after each failed
// call, up to 10 s: a peer that is back after a restart would not count for a majority
// for as long as it was away, and the group would stop if another peer failed in that
// time. Also, raft reads a snapshot as long as its connection is open and does not vote.
type retryTransport struct {
	*raft.NetworkTransport
	stream *stream
	stall  time.Duration
	leads  func(term uint64) bool
	calls  chan raft.RPC
}

// Consumer implements raft.Transport.
func (p *retryTransport) Consumer() <-chan raft.RPC { return p.calls }

// run passes on incoming calls until end is closed.
func (p *retryTransport) run(end <-chan struct{}) {
	for {
		select {
		case <-end:
			return
		case call := <-p.NetworkTransport.Consumer():
			if call.Reader != nil {
				call.Reader = &snapshotReader{from: call.Reader, of: p}
			}
			select {
			case p.calls <- call:
			case <-end:
				return
			}
		}
	}
}

// snapshotReader reads an incoming snapshot.
type snapshotReader struct {
	from io.Reader
	of   *retryTransport
}

// Read implements io.Reader. If nothing arrives for too long it closes all incoming
// connections.
func (i *snapshotReader) Read(b []byte) (int, error) {
	stuck := time.AfterFunc(i.of.stall, i.of.stream.reset)
	defer stuck.Stop()
	return i.from.Read(b)
}

// AppendEntries implements raft.Transport. It may block, because raft has a goroutine for
// each peer. A late call does no harm, because it carries its term and the peer checks it.
func (p *retryTransport) AppendEntries(id raft.ServerID, to raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	end := time.Now().Add(retryLimit)
	for {
		err := p.NetworkTransport.AppendEntries(id, to, args, resp)
		if err == nil || isHeartbeat(args) || time.Now().After(end) || !p.leads(args.Term) {
			return err
		}
		time.Sleep(retryInterval)
		if !p.leads(args.Term) {
			return err
		}
	}
}

// isHeartbeat reports whether a call is a heartbeat. Heartbeats need no retry, because
// raft sends them at its own interval.
func isHeartbeat(args *raft.AppendEntriesRequest) bool {
	return args.PrevLogEntry == 0 && args.PrevLogTerm == 0 && args.LeaderCommitIndex == 0 && len(args.Entries) == 0
}

// raftLog writes raft's log to slog.
type raftLog struct{ to *slog.Logger }

func newRaftLog(to *slog.Logger) hclog.Logger {
	l := hclog.NewInterceptLogger(&hclog.LoggerOptions{Output: io.Discard, Level: hclog.Debug})
	l.RegisterSink(raftLog{to})
	return l
}

// Accept implements hclog.SinkAdapter.
func (l raftLog) Accept(_ string, level hclog.Level, msg string, args ...any) {
	to := slog.LevelDebug
	switch level {
	case hclog.Info:
		to = slog.LevelInfo
	case hclog.Warn:
		to = slog.LevelWarn
	case hclog.Error:
		// Raft's errors are about a peer, or reach us as our own.
		to = slog.LevelWarn
	}
	ctx := context.Background()
	if !l.to.Enabled(ctx, to) {
		return
	}
	attrs := make([]slog.Attr, 0, 1+len(args)/2)
	attrs = append(attrs, slog.String("says", msg))
	for i := 0; i+1 < len(args); i += 2 {
		attrs = append(attrs, slog.Any(fmt.Sprint(args[i]), readable(args[i+1])))
	}
	l.to.LogAttrs(ctx, to, "raft", attrs...)
}

// readable returns a log value as text: raft logs nodes as structs and formats some
// values late.
func readable(v any) any {
	switch v := v.(type) {
	case error:
		return v
	case hclog.Format:
		if len(v) > 0 {
			return fmt.Sprintf(fmt.Sprint(v[0]), v[1:]...)
		}
	case fmt.Stringer:
		return fmt.Sprint(v) // Sprint handles a nil pointer
	}
	return v
}

// ignoreClosed drops the error of closing twice.
func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
