package feed

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/valyala/fasthttp"
)

var errNotTCP = errors.New("feed: not a plain TCP connection: terminate TLS in a proxy")

// limits counts the connections: all, and those of each client address.
type limits struct {
	mu         sync.Mutex
	all        int
	byIP       map[netip.Addr]int
	max, perIP int
}

// admission says whether another connection is admitted.
type admission uint8

const (
	admitted admission = iota + 1
	ipFull
	feedFull
)

// check returns whether another connection of ip is admitted, and counts it if it is
// admitted and take is set.
func (l *limits) check(ip netip.Addr, take bool) admission {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.all >= l.max:
		return feedFull
	case l.byIP[ip] >= l.perIP:
		return ipFull
	}
	if take {
		l.all++
		l.byIP[ip]++
	}
	return admitted
}

func (l *limits) release(ip netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all--
	if l.byIP[ip]--; l.byIP[ip] == 0 {
		delete(l.byIP, ip)
	}
}

func (l *limits) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all
}

// Handler upgrades a request for /ws/rfq to a WebSocket, or refuses it with the error
// body of all surfaces: 503 while the feed is not running or full, 429 at the client
// address's limit, 400, 403 or 405 for an invalid upgrade. The HTTP server must have
// KeepHijackedConns set.
func (f *Feed) Handler(ctx *fasthttp.RequestCtx) {
	ip, ok := f.admit(ctx)
	if !ok {
		return
	}
	if key := ctx.Request.Header.Peek(keyHeader); len(key) > 0 && !validKey(key) {
		f.upgrader.Error(ctx, fasthttp.StatusBadRequest, errBadKey)
		return
	}
	agreed := plain
	err := f.upgrader.Upgrade(ctx, func(ws *websocket.Conn) { f.accept(ws.NetConn(), ip, agreed, nil) })
	if err != nil {
		return // the upgrader has answered
	}
	// The function above runs after this handler has returned.
	agreed = negotiate(ctx)
}

const keyHeader = "Sec-WebSocket-Key"

var errBadKey = errors.New(keyHeader + " must be the base64 of 16 bytes")

// validKey reports whether a handshake's key is valid by RFC 6455, section 4.2.1. The
// library accepts any key that is not empty.
func validKey(key []byte) bool {
	var nonce [18]byte // the largest result of 24 digits
	if len(key) != base64.StdEncoding.EncodedLen(16) {
		return false
	}
	n, err := base64.StdEncoding.Decode(nonce[:], key)
	return err == nil && n == 16
}

// admit returns the client's address for the limits, and whether another connection of it
// is admitted. If not, it has answered the request. It does not count the connection.
func (f *Feed) admit(ctx *fasthttp.RequestCtx) (netip.Addr, bool) {
	if !f.running.Load() {
		refuse(ctx, fasthttp.StatusServiceUnavailable, "OVERLOADED", "the feed is not running; try again shortly", "not_running", "")
		return netip.Addr{}, false
	}
	ip := limitKey(f.o.ClientIP(ctx))
	switch f.limits.check(ip, false) {
	case feedFull:
		f.stats.refused.Add(1)
		refuse(ctx, fasthttp.StatusServiceUnavailable, "OVERLOADED", "too many connections; try again later", "connections", "")
		return ip, false
	case ipFull:
		f.stats.refused.Add(1)
		refuse(ctx, fasthttp.StatusTooManyRequests, "RATE_LIMITED", "too many connections from this address", "connections_per_ip", "")
		return ip, false
	default:
		return ip, true
	}
}

// limitKey returns the unit of the per-address limit: an IPv4 address or an IPv6 /64,
// because a host may use a whole /64.
func limitKey(ip netip.Addr) netip.Addr {
	ip = ip.Unmap()
	if !ip.Is6() {
		return ip
	}
	prefix, err := ip.Prefix(64)
	if err != nil {
		return ip
	}
	return prefix.Addr()
}

func newUpgrader() websocket.FastHTTPUpgrader {
	return websocket.FastHTTPUpgrader{
		// The library only does the handshake.
		ReadBufferSize:  16,
		WriteBufferSize: 16,
		// Any site may read public market data; there are no cookies.
		CheckOrigin: func(*fasthttp.RequestCtx) bool { return true },
		Error: func(ctx *fasthttp.RequestCtx, status int, reason error) {
			ctx.Response.Header.Set("Sec-WebSocket-Version", "13")
			refuse(ctx, status, "INVALID_FIELD", reason.Error(), "websocket_upgrade", "")
		},
	}
}

// refuse answers with the error body of docs/specification.md C.3. The texts need no
// escapes in JSON; field may be empty.
func refuse(ctx *fasthttp.RequestCtx, status int, code, text, reason, field string) {
	ctx.SetStatusCode(status)
	ctx.SetContentType("application/json; charset=utf-8")
	// Close, so that frames sent ahead of the answer are not parsed as requests.
	ctx.SetConnectionClose()
	h := &ctx.Response.Header
	publicHeaders(h)
	if status == fasthttp.StatusServiceUnavailable || status == fasthttp.StatusTooManyRequests {
		h.Set("Retry-After", "5")
	}
	if field != "" {
		field = `","field":"` + field
	}
	body := `{"ok":false,"code":"` + code + `","error":"` + text + `","reason":"` + reason + field +
		`","request_id":"` + requestID(ctx) +
		`","service":"/","specification":"/public-sdk/openapi/svc_public_api_v1.json"}`
	ctx.SetBodyString(body)
}

// publicHeaders sets the headers of all the feed's answers: readable by any site, not
// cacheable.
func publicHeaders(h *fasthttp.ResponseHeader) {
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", "*")
}

// requestID returns the X-Request-Id that the gateway has set, or sets a random one.
func requestID(ctx *fasthttp.RequestCtx) string {
	id := ctx.Response.Header.Peek("X-Request-Id")
	if len(id) == 0 || bytes.ContainsFunc(id, notInID) {
		fresh := randomHex()
		ctx.Response.Header.Set("X-Request-Id", fresh)
		return fresh
	}
	return string(id)
}

func notInID(r rune) bool {
	return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '-' && r != '_'
}

func randomHex() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// accept takes over a connection whose HTTP exchange has ended and passes it to its
// shard. It keeps the socket only and nothing of the server or the library. fasthttp
// calls it on a goroutine that ends with it. s is set for a stream.
func (f *Feed) accept(n net.Conn, ip netip.Addr, e encoding, s *stream) {
	c, err := f.prepare(n, ip, e, s)
	if err != nil {
		f.o.Logger.Warn("feed connection refused", "error", err)
		_ = n.Close()
		return
	}
	if f.limits.check(ip, true) != admitted {
		// The limit was reached after Handler's check.
		f.stats.refused.Add(1)
		if e != eventStream {
			var enc encoder
			_ = c.tcp.SetWriteDeadline(time.Now().Add(time.Second))
			_, _ = c.tcp.Write(enc.closing(CloseTryAgain, "too many connections"))
		}
		_ = c.tcp.Close()
		return
	}
	select {
	case f.accepted <- c:
	case <-f.halted:
		f.limits.release(ip)
		_ = c.tcp.Close()
	}
}

// prepare makes a connection from the TCP socket under n.
func (f *Feed) prepare(n net.Conn, ip netip.Addr, e encoding, s *stream) (*conn, error) {
	tcp, err := tcpConn(n)
	if err != nil {
		return nil, err
	}
	earlyInput, err := buffered(n, tcp)
	if err != nil {
		return nil, err
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(tcp.SetWriteBuffer(f.o.SendBuffer), tcp.SetReadBuffer(receiveBuffer)); err != nil {
		return nil, err
	}
	c := &conn{tcp: tcp, raw: raw, ip: ip, session: randomHex(), encoding: e, stream: s, earlyInput: earlyInput, drainLeft: maxDrain}
	c.in.deflate = e == deflated
	if e == eventStream {
		c.ignoreInput, c.drainLeft = true, maxStreamInput
	}
	c.inbox = &f.shards[f.nextShard.Add(1)%uint64(len(f.shards))].inbox
	return c, nil
}

// buffered returns the input that the server has read from tcp after the request, or nil,
// and clears the server's deadlines. A read after its deadline returns buffered bytes and
// does not touch the socket.
func buffered(n net.Conn, tcp *net.TCPConn) (earlyInput []byte, err error) {
	if err := tcp.SetReadDeadline(time.Unix(1, 0)); err != nil {
		return nil, err
	}
	var buf [512]byte
	for err == nil {
		var got int
		got, err = n.Read(buf[:])
		earlyInput = append(earlyInput, buf[:got]...)
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, err
	}
	return earlyInput, tcp.SetDeadline(time.Time{})
}

// tcpConn returns the socket under fasthttp's connection. It does not look under TLS,
// because only TLS may write its records.
func tcpConn(n net.Conn) (*net.TCPConn, error) {
	for {
		switch t := n.(type) {
		case *net.TCPConn:
			return t, nil
		case interface{ UnsafeConn() net.Conn }:
			n = t.UnsafeConn()
		default:
			return nil, errNotTCP
		}
	}
}
