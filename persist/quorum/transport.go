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
	// transportPool is how many connections stay open to each peer.
	transportPool = 3
	// transportTimeout bounds each call to a peer; that of a snapshot grows with
	// its size.
	transportTimeout = 5 * time.Second
	// pipelined is how many calls to a peer may be under way: raft's advice.
	maxInFlight = 2
)

// stream is raft's way to and from the peers: TCP, or TLS over it.
type stream struct {
	net.Listener
	advertise net.Addr
	client    *tls.Config // nil: plain TCP
	reach     func(to string, timeout time.Duration) (net.Conn, error)

	mu     sync.Mutex
	open   map[*trackedConn]struct{} // the connections both ways
	closed bool
}

// held is a connection that ends with its stream: raft leaves those to the peers.
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

// hold takes a connection in; it closes it where the stream is.
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

// Accept implements net.Listener.
func (s *stream) Accept() (net.Conn, error) {
	conn, err := s.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return s.track(conn, true)
}

// reset ends what peers have dialled: they dial again.
func (s *stream) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for h := range s.open {
		if h.accepted {
			_ = h.Conn.Close() // who reads is told
		}
	}
}

// Close implements net.Listener. It ends every connection.
func (s *stream) Close() error {
	err := s.Listener.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for h := range s.open {
		_ = h.Conn.Close() // its user is told
	}
	clear(s.open)
	return err
}

// address is what the others dial.
type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }

func listen(o *Options) (*stream, error) {
	l, err := net.Listen("tcp", o.Bind)
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", o.ID, err)
	}
	s := &stream{Listener: l, advertise: l.Addr(), reach: o.dial, open: map[*trackedConn]struct{}{}}
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

// Addr is what the others dial.
func (s *stream) Addr() net.Addr { return s.advertise }

// Dial implements raft.StreamLayer. With TLS the peer's certificate must be of
// the host that is dialled.
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

// pipeline does not wait for ever. Raft v1.8.0 stops to read answers after one that
// says no, while it may be waiting to hand on what it has sent: nobody would send
// anything to that peer again, and no shutdown would end.
type pipeline struct {
	raft.AppendPipeline
	timeout time.Duration
}

// AppendEntries implements raft.AppendPipeline. After the patience the pipeline is
// closed, upon which raft sends what is missing call by call, and makes a new one.
func (p *pipeline) AppendEntries(args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	stuck := time.AfterFunc(p.timeout, func() { _ = p.Close() })
	defer stuck.Stop()
	return p.AppendPipeline.AppendEntries(args, resp)
}

// newTransport makes the transport, which wants to run; leads says whether this node
// still leads in a term, stall how long a snapshot that comes in may stand.
func newTransport(s *stream, log hclog.Logger, stall time.Duration, leads func(term uint64) bool) *retryTransport {
	return &retryTransport{stream: s, stall: stall, leads: leads, calls: make(chan raft.RPC), NetworkTransport: raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: s, MaxPool: transportPool, MaxRPCsInFlight: maxInFlight, Timeout: transportTimeout, Logger: log,
	})}
}

const (
	// retryInterval is after how long a peer that is away is tried again, and retryLimit
	// how long that goes on in one call: a peer that was removed is away for good.
	retryInterval = 50 * time.Millisecond
	retryLimit    = time.Minute
)

// patient is a transport that waits for a peer that is away, and not for one that
// has fallen silent in the middle of a snapshot. In the first case raft itself waits
// twice as long after each failed call, up to 10 s: one that is back after a restart
// would have no part in a majority for as long as it was away, and the group would
// stand still if another went meanwhile. In the second it would read for as long as
// the connection stands, and vote for nobody.
type retryTransport struct {
	*raft.NetworkTransport
	stream *stream
	stall  time.Duration
	leads  func(term uint64) bool
	calls  chan raft.RPC
}

// Consumer implements raft.Transport.
func (p *retryTransport) Consumer() <-chan raft.RPC { return p.calls }

// run hands on what comes in, until end is closed.
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

// incoming is a snapshot while it comes in.
type snapshotReader struct {
	from io.Reader
	of   *retryTransport
}

// Read implements io.Reader. Where nothing comes for too long the connections are
// ended, this one among them.
func (i *snapshotReader) Read(b []byte) (int, error) {
	stuck := time.AfterFunc(i.of.stall, i.of.stream.reset)
	defer stuck.Stop()
	return i.from.Read(b)
}

// AppendEntries implements raft.Transport. It may wait: each peer has a goroutine of
// its own for it. What arrives late is of a term, which the peer looks at.
func (p *retryTransport) AppendEntries(id raft.ServerID, to raft.ServerAddress, ask *raft.AppendEntriesRequest, answer *raft.AppendEntriesResponse) error {
	end := time.Now().Add(retryLimit)
	for {
		err := p.NetworkTransport.AppendEntries(id, to, ask, answer)
		if err == nil || isHeartbeat(ask) || time.Now().After(end) || !p.leads(ask.Term) {
			return err
		}
		time.Sleep(retryInterval)
		if !p.leads(ask.Term) {
			return err
		}
	}
}

// isHeartbeat reports whether a call carries nothing: those have a pace of their own.
func isHeartbeat(ask *raft.AppendEntriesRequest) bool {
	return ask.PrevLogEntry == 0 && ask.PrevLogTerm == 0 && ask.LeaderCommitIndex == 0 && len(ask.Entries) == 0
}

// raftLog carries raft's words into slog. What a lost peer costs in lines raft
// says at Warn and Error at each try: those stay as they are, since they name
// the peer.
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
		// Raft's errors are a peer's, or come to us as our own.
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

// readable is a value of raft's as people read it: raft names nodes by structs whose
// fields say nothing, and leaves some texts to be put together.
func readable(v any) any {
	switch v := v.(type) {
	case error:
		return v
	case hclog.Format:
		if len(v) > 0 {
			return fmt.Sprintf(fmt.Sprint(v[0]), v[1:]...)
		}
	case fmt.Stringer:
		return fmt.Sprint(v) // which bears a nil
	}
	return v
}

// ignoreClosed: what was closed already needs no closing.
func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
