package feed

import (
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

// limits counts connections: all, and those of each address.
type limits struct {
	mu    sync.Mutex
	all   int
	byIP  map[netip.Addr]int
	most  int
	perIP int
}

// verdict says whether one more connection may come.
type admission uint8

const (
	admitted admission = iota + 1
	ipFull
	feedFull
)

// check says whether one more connection of ip may come, and counts it if take
// is set and it may.
func (l *limits) check(ip netip.Addr, take bool) admission {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.all >= l.most:
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

// Handler upgrades a request for /ws/rfq to a WebSocket, or refuses it with the
// error shape of every surface: 503 while the feed does not run or is full, 429
// when the client's address has its share, 400, 403 or 405 for what is no
// upgrade. The server that calls it must have KeepHijackedConns set.
func (f *Feed) Handler(ctx *fasthttp.RequestCtx) {
	ip, ok := f.admit(ctx)
	if !ok {
		return
	}
	if key := ctx.Request.Header.Peek(keyHeader); len(key) > 0 && !validKey(key) {
		f.upgrader.Error(ctx, fasthttp.StatusBadRequest, errBadKey)
		return
	}
	speaks := plain
	err := f.upgrader.Upgrade(ctx, func(ws *websocket.Conn) { f.accept(ws.NetConn(), ip, speaks, nil) })
	if err != nil {
		return // the upgrader has answered
	}
	// The connection is handed over after this handler has returned.
	speaks = negotiate(ctx)
}

const keyHeader = "Sec-WebSocket-Key"

var errBadKey = errors.New(keyHeader + " must be the base64 of 16 bytes")

// validKey reports whether a handshake's key is what RFC 6455, section 4.2.1, has
// it be. The library takes any that is not empty.
func validKey(key []byte) bool {
	var nonce [18]byte // the most that 24 digits can be
	if len(key) != base64.StdEncoding.EncodedLen(16) {
		return false
	}
	n, err := base64.StdEncoding.Decode(nonce[:], key)
	return err == nil && n == 16
}

// admit reports whether one more connection of the client may come now, or
// answers that it may not. It does not count it yet.
func (f *Feed) admit(ctx *fasthttp.RequestCtx) (netip.Addr, bool) {
	if !f.running.Load() {
		refuse(ctx, fasthttp.StatusServiceUnavailable, "OVERLOADED", "the feed is not running; try again shortly", "not_running", "")
		return netip.Addr{}, false
	}
	ip := limitKey(f.o.ClientIP(ctx))
	switch f.limits.check(ip, false) {
	case feedFull:
		f.stats.refused.Add(1)
		refuse(ctx, fasthttp.StatusServiceUnavailable, "OVERLOADED", "the feed has all the connections that it can take", "connections", "")
		return ip, false
	case ipFull:
		f.stats.refused.Add(1)
		refuse(ctx, fasthttp.StatusTooManyRequests, "RATE_LIMITED", "this address has all the connections that one may have", "connections_per_ip", "")
		return ip, false
	default:
		return ip, true
	}
}

// limitKey is what one client is for the limits: an IPv4 address or an IPv6 /64,
// since a host may have all of the latter.
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
		// The library reads and writes nothing: the handshake is all it does.
		ReadBufferSize:  16,
		WriteBufferSize: 16,
		// Public market data, no cookies: any site may read it.
		CheckOrigin: func(*fasthttp.RequestCtx) bool { return true },
		Error: func(ctx *fasthttp.RequestCtx, status int, reason error) {
			ctx.Response.Header.Set("Sec-WebSocket-Version", "13")
			refuse(ctx, status, "INVALID_FIELD", reason.Error(), "websocket_upgrade", "")
		},
	}
}

// refuse answers with the error shape of contract section C. The texts need no
// escape in JSON; field is empty where no one field is to blame.
func refuse(ctx *fasthttp.RequestCtx, status int, code, text, reason, field string) {
	ctx.SetStatusCode(status)
	ctx.SetContentType("application/json; charset=utf-8")
	// Frames that a client sent ahead of the answer must not be read as requests.
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

// publicHeaders sets what every answer of the feed's own says: any site may read
// it, as it is, and nobody may keep it.
func publicHeaders(h *fasthttp.ResponseHeader) {
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", "*")
}

// requestID returns the X-Request-Id that the gateway has set, or one of ours.
func requestID(ctx *fasthttp.RequestCtx) string {
	id := ctx.Response.Header.Peek("X-Request-Id")
	for _, c := range id {
		plain := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '_'
		if !plain {
			id = nil
			break
		}
	}
	if len(id) == 0 {
		fresh := randomHex()
		ctx.Response.Header.Set("X-Request-Id", fresh)
		return fresh
	}
	return string(id)
}

func randomHex() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	return hex.EncodeToString(b[:])
}

// accept takes over a connection whose HTTP is done and hands it to Run. It
// keeps the socket alone: nothing of the server's or the library's. fasthttp
// calls it on a goroutine that ends with it. s is set where events are spoken.
func (f *Feed) accept(n net.Conn, ip netip.Addr, speaks encoding, s *stream) {
	c, err := f.prepare(n, ip, speaks, s)
	if err != nil {
		f.o.Logger.Warn("connection refused", "reason", err.Error())
		_ = n.Close()
		return
	}
	if f.limits.check(ip, true) != admitted {
		// Another connection took the place between Handler's check and now.
		f.stats.refused.Add(1)
		if speaks != eventStream {
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

// prepare makes a connection of the socket under n.
func (f *Feed) prepare(n net.Conn, ip netip.Addr, speaks encoding, s *stream) (*conn, error) {
	tcp, err := tcpConn(n)
	if err != nil {
		return nil, err
	}
	early, err := buffered(n, tcp)
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
	c := &conn{tcp: tcp, raw: raw, ip: ip, session: randomHex(), encoding: speaks, stream: s, early: early, drainLeft: maxDrain}
	c.in.deflate = speaks == deflated
	if speaks == eventStream {
		c.ignoreInput, c.drainLeft = true, maxStreamInput
	}
	c.shard = f.shards[f.nextShard.Add(1)%uint64(len(f.shards))]
	return c, nil
}

// buffered returns what the server has read from tcp behind the request, or nil,
// and clears the deadlines that it set. A read whose deadline has passed gives
// what is in buffers and does not touch the socket.
func buffered(n net.Conn, tcp *net.TCPConn) (early []byte, err error) {
	if err := tcp.SetReadDeadline(time.Unix(1, 0)); err != nil {
		return nil, err
	}
	var buf [512]byte
	for err == nil {
		var got int
		got, err = n.Read(buf[:])
		early = append(early, buf[:got]...)
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, err
	}
	return early, tcp.SetDeadline(time.Time{})
}

// tcpConn returns the socket under what fasthttp hands over. It does not look
// under TLS, whose records only TLS may write.
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
