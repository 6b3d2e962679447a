package admin

import (
	"bytes"
	"net"
	"net/http"
	"path"
	"strconv"
	"time"

	"blockdesk/httpgw/wire"
)

// outerHandler is what the admin's routes have in common: bodies come in time, paths
// are compared as they were sent, and what is not answered gets the contract's
// error. net/http alone waits for a body without end, and redirects.
type outerHandler struct {
	next     http.Handler
	ids      *wire.RequestIDs
	bodyTime time.Duration // for a whole body
}

// ServeHTTP answers one request.
func (d *outerHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		// A body that never ends would hold one of adminConns connections. A
		// writer without deadlines, as tests have, has no connection.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(d.bodyTime))
	}
	if raw := rawPath(r); !isPlainPath(raw) {
		id := d.ids.Next()
		refuseAdmin(w, &id, wire.UnknownRoute(raw))
		return
	}
	d.next.ServeHTTP(w, r)
}

// rawPath is the path of a request as it was sent.
func rawPath(r *http.Request) []byte {
	raw, _, _ := bytes.Cut([]byte(r.RequestURI), []byte{'?'})
	return raw
}

// isPlainPath reports whether a path can be one of ours: without escapes, dots
// and doubled slashes.
func isPlainPath(raw []byte) bool {
	text := string(raw)
	clean := path.Clean(text)
	return text != "" && text[0] == '/' && !bytes.ContainsRune(raw, '%') && (text == clean || text == clean+"/")
}

// unknown answers what is not in the table.
func (d *outerHandler) unknown(w http.ResponseWriter, r *http.Request) {
	id := d.ids.Next()
	refuseAdmin(w, &id, wire.UnknownRoute(rawPath(r)))
}

// readOnly lets GET and HEAD through.
func (d *outerHandler) readOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			id := d.ids.Next()
			refuseAdmin(w, &id, wire.MethodNotAllowed("GET, HEAD"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// adminHeaders sets the headers of an answer in JSON.
func adminHeaders(h http.Header, id *wire.RequestID) {
	h.Set("Content-Type", wire.JSONType)
	h.Set("Cache-Control", string(wire.CacheControl[wire.NeverCached]))
	h.Set("X-Request-Id", string(id[:]))
	h.Set("X-Content-Type-Options", "nosniff")
}

// refuseAdmin writes an error.
func refuseAdmin(w http.ResponseWriter, id *wire.RequestID, bad *wire.Problem) {
	h := w.Header()
	adminHeaders(h, id)
	if bad.Allow != "" {
		h.Set("Allow", bad.Allow)
	}
	if bad.RetryS > 0 {
		h.Set("Retry-After", strconv.Itoa(bad.RetryS))
	}
	if bad.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	w.WriteHeader(bad.Status)
	// Who does not read it has gone.
	_, _ = w.Write(append(bad.Append(nil, id), '\n'))
}

// writePiece is how much a reader must take in DefaultWriteTimeout.
const writePiece = 64 << 10

// deadlineListener accepts connections that end when their peer does not read.
type deadlineListener struct{ net.Listener }

// Accept returns the next connection.
func (l deadlineListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &deadlineConn{conn}, nil
}

// deadlineConn has a deadline for each piece that it writes. net/http has one
// for a whole answer, which a profile of a minute does not meet.
type deadlineConn struct{ net.Conn }

// Write writes all of p, or fails.
func (c *deadlineConn) Write(p []byte) (n int, err error) {
	for more := true; more && err == nil; more = n < len(p) {
		if err = c.SetWriteDeadline(time.Now().Add(wire.DefaultWriteTimeout)); err != nil {
			return n, err
		}
		var k int
		k, err = c.Conn.Write(p[n:min(len(p), n+writePiece)])
		n += k
	}
	return n, err
}
