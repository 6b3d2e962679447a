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

// outerHandler wraps all routes: it bounds the time of a body, compares raw paths, and
// answers unknown paths with our errors. net/http alone would wait for a body for ever,
// and would redirect.
type outerHandler struct {
	next     http.Handler
	ids      *wire.RequestIDs
	bodyTime time.Duration // for a whole body
}

// ServeHTTP answers one request.
func (d *outerHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		// A body that never ends would occupy one of adminConns. The writers of tests
		// have no deadlines, hence the ignored error.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(d.bodyTime))
	}
	if raw := rawPath(r); !isPlainPath(raw) {
		id := d.ids.Next()
		refuseAdmin(w, &id, wire.UnknownRoute(raw))
		return
	}
	d.next.ServeHTTP(w, r)
}

// rawPath returns the path of a request as it was sent.
func rawPath(r *http.Request) []byte {
	raw, _, _ := bytes.Cut([]byte(r.RequestURI), []byte{'?'})
	return raw
}

// isPlainPath reports whether a path has no escapes, dot segments or double slashes.
func isPlainPath(raw []byte) bool {
	text := string(raw)
	clean := path.Clean(text)
	return text != "" && text[0] == '/' && !bytes.ContainsRune(raw, '%') && (text == clean || text == clean+"/")
}

// unknown answers an unknown path.
func (d *outerHandler) unknown(w http.ResponseWriter, r *http.Request) {
	id := d.ids.Next()
	refuseAdmin(w, &id, wire.UnknownRoute(rawPath(r)))
}

// readOnly admits only GET and HEAD.
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

// adminHeaders sets the headers of a JSON answer.
func adminHeaders(h http.Header, id *wire.RequestID) {
	h.Set("Content-Type", wire.JSONType)
	h.Set("Cache-Control", string(wire.CacheControl[wire.NeverCached]))
	h.Set("X-Request-Id", string(id[:]))
	h.Set("X-Content-Type-Options", "nosniff")
}

// refuseAdmin writes an error.
func refuseAdmin(w http.ResponseWriter, id *wire.RequestID, problem *wire.Problem) {
	h := w.Header()
	adminHeaders(h, id)
	if problem.Allow != "" {
		h.Set("Allow", problem.Allow)
	}
	if problem.RetryS > 0 {
		h.Set("Retry-After", strconv.Itoa(problem.RetryS))
	}
	if problem.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	w.WriteHeader(problem.Status)
	// An error means that the client is gone.
	_, _ = w.Write(append(problem.Append(nil, id), '\n'))
}

// writePiece is how many bytes a client must read within wire.DefaultWriteTimeout.
const writePiece = 64 << 10

// deadlineListener accepts connections that fail if their peer does not read.
type deadlineListener struct{ net.Listener }

// Accept returns the next connection.
func (l deadlineListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &deadlineConn{conn}, nil
}

// deadlineConn sets a deadline for each piece that it writes. net/http has only a deadline
// for the whole answer, which a profile of a minute would miss.
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
