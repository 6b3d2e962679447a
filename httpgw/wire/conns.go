package wire

import (
	"errors"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"blockdesk/internal/ratelimit"
)

// Default listening addresses. The published documents contain them, and the site
// replaces them there by the public URLs.
const (
	DefaultBase = "127.0.0.1:8080"
	DefaultAPI  = "127.0.0.1:8000"
	DefaultWS   = "127.0.0.1:8081"
)

// Default limits of a connection on every address (our choice).
const (
	// DefaultMaxHeaderBytes is smaller than the body's limit on purpose: every
	// connection allocates the whole buffer, and fasthttp scans a slow header from
	// its start at every packet, so the cost grows with the square of its size.
	DefaultMaxHeaderBytes = 16 << 10
	DefaultMaxBodyBytes   = 64 << 10

	DefaultReadTimeout     = 10 * time.Second
	DefaultWriteTimeout    = 10 * time.Second
	DefaultIdleTimeout     = 60 * time.Second
	DefaultShutdownTimeout = 4 * time.Second
)

// Conns counts the connections of all addresses and refuses those above the limits
// with a JSON error. fasthttp's own counters answer in plain text and support IPv4
// only.
//
// A connection counts from Accept until it is closed or handed to the WebSocket.
type Conns struct {
	max, perIP int
	proxies    *Proxies
	ids        *RequestIDs
	refused    prometheus.Counter
	// lines are the headers of a refusal up to the name X-Request-Id.
	lines []byte

	mu    sync.Mutex
	open  map[net.Conn]ratelimit.Client // at most max
	byKey map[ratelimit.Client]int      // at most max; without trusted proxies
}

// privateLines are the headers of an address that pages of other sites may not read.
var privateLines = joinLines("Cache-Control: "+string(CacheControl[NeverCached]), "X-Content-Type-Options: nosniff", "X-Request-Id")

// NewConns returns a counter that admits at most limit connections, and at most perIP
// of one client. refused counts the refusals. If public is true, pages of any site may
// read the refusal.
func NewConns(limit, perIP int, p *Proxies, ids *RequestIDs, refused prometheus.Counter, public bool) *Conns {
	c := &Conns{
		max: limit, perIP: perIP, proxies: p, ids: ids, refused: refused, lines: privateLines,
		open: make(map[net.Conn]ratelimit.Client), byKey: make(map[ratelimit.Client]int),
	}
	if public {
		c.lines = commonLines[NeverCached]
	}
	return c
}

// add counts a connection, or returns why it is refused.
func (c *Conns) add(conn net.Conn) *Problem {
	peer := peerOf(conn.RemoteAddr())
	var key ratelimit.Client
	if !c.proxies.trusts(peer) {
		key = ratelimit.ClientOf(peer)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.open) >= c.max {
		return &Problem{
			Status: 503, Code: CodeOverloaded, Reason: "connections", RetryS: 1,
			Text: "Too many connections. Try again in a moment.",
		}
	}
	if key != (ratelimit.Client{}) {
		if c.byKey[key] >= c.perIP {
			return &Problem{
				Status: 429, Code: CodeRateLimited, Reason: "connections", RetryS: 1,
				Text: "Too many connections from this address. Reuse an open connection.",
			}
		}
		c.byKey[key]++
	}
	c.open[conn] = key
	return nil
}

// State is fasthttp's ConnState hook.
func (c *Conns) State(conn net.Conn, s fasthttp.ConnState) {
	if s == fasthttp.StateClosed || s == fasthttp.StateHijacked {
		c.Remove(conn)
	}
}

// Remove stops counting a connection. It may be called more than once.
func (c *Conns) Remove(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key, ok := c.open[conn]
	if !ok {
		return
	}
	delete(c.open, conn)
	if key == (ratelimit.Client{}) {
		return
	}
	if c.byKey[key]--; c.byKey[key] == 0 {
		delete(c.byKey, key)
	}
}

// Count returns the number of open connections.
func (c *Conns) Count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open)
}

// CloseAll closes every open connection, and so aborts all requests in progress.
func (c *Conns) CloseAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.open {
		// The goroutine that serves the connection reports the error.
		_ = conn.Close()
	}
}

// refuse answers a connection before anything is read from it, and closes it. The answer
// fits into the empty socket buffer, so refuse does not block.
func (c *Conns) refuse(conn net.Conn, p *Problem) {
	c.refused.Inc()
	id := c.ids.Next()
	body := p.Append(nil, &id)
	out := append([]byte("HTTP/1.1 "), strconv.Itoa(p.Status)...)
	out = append(out, ' ')
	out = append(out, fasthttp.StatusMessage(p.Status)...)
	out = fasthttp.AppendHTTPDate(append(out, "\r\nDate: "...), time.Now())
	out = append(out, "\r\nConnection: close\r\nContent-Type: "+JSONType+"\r\nRetry-After: "...)
	out = strconv.AppendInt(out, int64(p.RetryS), 10)
	out = append(append(out, "\r\n"...), c.lines...)
	out = append(append(out, ": "...), id[:]...)
	out = append(out, "\r\nContent-Length: "...)
	out = strconv.AppendInt(out, int64(len(body)), 10)
	out = append(append(out, "\r\n\r\n"...), body...)
	// The peer may be gone; the connection is closed in any case.
	_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = conn.Write(out)
	_ = conn.Close()
}

// Listener accepts the connections that conns admits. It survives a shortage of file
// descriptors, at which fasthttp's Serve would stop for good.
type Listener struct {
	net.Listener
	conns  *Conns
	slack  time.Duration // see NewClientConn; 0 = exact deadlines
	closed chan struct{}
	close  func() error
}

// NewListener returns a listener of the connections that c admits. Their deadlines
// may pass early by slack; 0 means exact deadlines.
func NewListener(inner net.Listener, c *Conns, slack time.Duration) *Listener {
	closed := make(chan struct{})
	return &Listener{Listener: inner, conns: c, slack: slack, closed: closed, close: sync.OnceValue(func() error {
		close(closed)
		return inner.Close()
	})}
}

// Accept returns the next connection that is within the limits.
func (l *Listener) Accept() (net.Conn, error) {
	wait := time.Duration(0)
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			if !isShortage(err) {
				return nil, err
			}
			wait = min(max(2*wait, 5*time.Millisecond), time.Second)
			select {
			case <-l.closed:
				return nil, net.ErrClosed
			case <-time.After(wait):
			}
			continue
		}
		wait = 0
		if l.slack > 0 {
			conn = NewClientConn(conn, l.slack)
		}
		if problem := l.conns.add(conn); problem != nil {
			l.conns.refuse(conn, problem)
			continue
		}
		return conn, nil
	}
}

// Close ends Accept. It may be called more than once.
func (l *Listener) Close() error { return l.close() }

// isShortage reports whether an error of Accept is temporary.
func isShortage(err error) bool {
	for _, shortage := range [...]error{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED,
	} {
		if errors.Is(err, shortage) {
			return true
		}
	}
	return false
}
