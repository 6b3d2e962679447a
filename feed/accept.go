package feed

import (
	"crypto/rand"
	"encoding/hex"
	"net"
	"net/netip"
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
type verdict uint8

const (
	welcomeIn verdict = iota + 1
	fullIP
	fullAll
)

// check says whether one more connection of ip may come, and counts it if take
// is set and it may.
func (l *limits) check(ip netip.Addr, take bool) verdict {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.all >= l.most:
		return fullAll
	case l.byIP[ip] >= l.perIP:
		return fullIP
	}
	if take {
		l.all++
		l.byIP[ip]++
	}
	return welcomeIn
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
	// On failure the upgrader has answered by refuseUpgrade.
	_ = f.upgrader.Upgrade(ctx, func(ws *websocket.Conn) { f.accept(ws, ip) })
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
	case fullAll:
		f.stats.refused.Add(1)
		refuse(ctx, fasthttp.StatusServiceUnavailable, "OVERLOADED", "the feed has all the connections that it can take", "connections", "")
		return ip, false
	case fullIP:
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
		ReadBufferSize:  512,
		WriteBufferSize: 64, // the library writes nothing of ours
		WriteBufferPool: &sync.Pool{},
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
	if status == fasthttp.StatusServiceUnavailable || status == fasthttp.StatusTooManyRequests {
		ctx.Response.Header.Set("Retry-After", "5")
	}
	if field != "" {
		field = `","field":"` + field
	}
	body := `{"ok":false,"code":"` + code + `","error":"` + text + `","reason":"` + reason + field +
		`","request_id":"` + requestID(ctx) +
		`","service":"/","specification":"/public-sdk/openapi/svc_public_api_v1.json"}`
	ctx.SetBodyString(body)
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

// accept takes over an upgraded connection and hands it to Run, which starts
// its reader. fasthttp calls it on a goroutine that ends with it.
func (f *Feed) accept(ws *websocket.Conn, ip netip.Addr) {
	c, err := f.prepare(ws, ip)
	if err != nil {
		f.o.Logger.Warn("websocket connection refused", "reason", err.Error())
		_ = ws.Close()
		return
	}
	if f.limits.check(ip, true) != welcomeIn {
		// Another connection took the place between Handler's check and now.
		f.stats.refused.Add(1)
		var enc encoder
		_ = c.tcp.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = c.tcp.Write(enc.closing(CloseTryAgain, "too many connections"))
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

// prepare finds the TCP connection under ws and takes the right to write away
// from the library.
func (f *Feed) prepare(ws *websocket.Conn, ip netip.Addr) (*conn, error) {
	tcp, err := tcpConn(ws.NetConn())
	if err != nil {
		return nil, err
	}
	if err := silence(ws, tcp); err != nil {
		return nil, err
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil, err
	}
	if err := tcp.SetWriteBuffer(f.o.SendBuffer); err != nil {
		return nil, err
	}
	c := &conn{feed: f, ws: ws, tcp: tcp, raw: raw, ip: ip, session: randomHex()}
	c.shard = f.shards[f.nextShard.Add(1)%uint64(len(f.shards))]
	return c, nil
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

// silence makes every later write of the library fail before it reaches the
// socket: on a protocol error it would write a close frame from the reader's
// goroutine, beside the shard's writes and waiting for the peer. A write whose
// deadline has passed writes nothing, and the library remembers its failure.
func silence(ws *websocket.Conn, tcp *net.TCPConn) error {
	if err := ws.SetWriteDeadline(time.Unix(1, 0)); err != nil {
		return err
	}
	if err := ws.WriteMessage(websocket.TextMessage, nil); err == nil {
		return errNotSilent
	}
	return tcp.SetWriteDeadline(time.Time{})
}
