package httpgw

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"blockdesk/httpgw/gatewaytest"
	rfqapi "blockdesk/httpgw/rfq"
	"blockdesk/httpgw/wire"
)

// FuzzRouter sends any method and target: no panic, a known status, one error shape,
// no echo, and the answer of the route table.
func FuzzRouter(f *testing.F) {
	for _, seed := range []struct{ method, target, headers string }{
		{"GET", "/", ""},
		{"GET", "/api/v1/market/depth?symbol=SLUSD/USDC&limit=5", "If-None-Match: *\r\n"},
		{"HEAD", "/api/v1/market/../market/depth", "Accept-Encoding: gzip;q=0\r\n"},
		{"OPTIONS", "*", "Origin: http://x\r\n"},
		{"POST", "/ws/rfq", "Upgrade: websocket\r\nConnection: upgrade\r\n"},
		{"GET", "/%2e%2e/%00", "X-Forwarded-For: 1.2.3.4, ::1\r\n"},
		{"GET", "http://u:p@h/a?b#c", ""},
		{"CONNECT", "h:443", ""},
		{"GET", "/a?x=http://b/../c", ""},
		{"GET", claimsPath + "C0000000000001", ""},
		{"HEAD", claimsPath + "..", ""},
		{"POST", rfqapi.PathRFQ + "quote", "Content-Type: application/json\r\nContent-Length: 0\r\n"},
	} {
		f.Add(seed.method, seed.target, seed.headers)
	}
	b := gatewaytest.NewBooks(f)
	deps := testDependencies()
	deps.Desk = &gatewaytest.ScriptedDesk{Current: gatewaytest.FixedView()}
	g, err := New(testOptions(b), b, deps)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = g.Close() })
	table := g.routes(deps)
	d := &handler{g: g, router: newRouter(table, wire.OnBase, newMetrics())}
	rows := make(map[string]bool)
	for i := range table {
		if table[i].On&wire.OnBase != 0 {
			rows[table[i].Path] = true
		}
	}
	f.Fuzz(func(t *testing.T, method, uri, headers string) {
		raw := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: h\r\n%s\r\n", method, uri, headers)
		ctx := gatewaytest.RequestFrom("192.0.2.1")
		if err := ctx.Request.ReadLimitBody(bufio.NewReaderSize(bytes.NewReader([]byte(raw)), 1<<16), 1<<16); err != nil {
			var tooSmall *fasthttp.ErrSmallBuffer
			if errors.As(err, &tooSmall) || errors.Is(err, fasthttp.ErrBodyTooLarge) {
				return // TestUnreadable has these; they read on from a socket
			}
			g.answerUnreadable(ctx, err)
			gatewaytest.DecodeError(t, ctx.Response.Body())
			return
		}
		d.serve(ctx)
		status, body := ctx.Response.StatusCode(), ctx.Response.Body()
		path, _ := wire.SplitTarget(ctx)
		unknown := status == 404 && bytes.Contains(body, []byte(wire.CodeUnknownRoute))
		if known := rows[string(path)] || isClaim(path); known == unknown {
			t.Fatalf("path %q: status %d: %s", path, status, body)
		}
		switch status {
		case 101, 204, 304:
		case 200:
			if len(ctx.Response.Header.ContentEncoding()) == 0 && !json.Valid(body) {
				t.Fatalf("body %q", body)
			}
		case 400, 404, 405, 415, 426:
			e := gatewaytest.DecodeError(t, body)
			if e.Path != "" && e.Path != wire.HiddenPath && e.Path != string(path) {
				t.Fatalf("path %q for %q", e.Path, path)
			}
			if len(e.Path) > wire.MaxEcho {
				t.Fatalf("an echo of %d bytes", len(e.Path))
			}
		default:
			t.Fatalf("status %d", status)
		}
	})
}

// isClaim reports whether a path names a claim.
func isClaim(path []byte) bool {
	segment, found := bytes.CutPrefix(path, []byte(claimsPath))
	return found && wire.IsSegment(segment)
}

// FuzzSegment: a last segment is valid over HTTP exactly if IsSegment accepts it.
func FuzzSegment(f *testing.F) {
	for _, seed := range []string{"C0000000000001", "..", ".", "a/b", "%2e", "", "a\x00", "a b", strings.Repeat("x", wire.MaxSegment+1)} {
		f.Add(seed)
	}
	w := newWriter(f, nil)
	f.Fuzz(func(t *testing.T, segment string) {
		n, got := w.handlers[0].router.find([]byte(claimsPath + segment))
		whole := len(segment) > 0 && len(segment) <= wire.MaxSegment && strings.Trim(segment, ".") != "" || len(segment) > 2 && len(segment) <= wire.MaxSegment
		for _, c := range segment {
			whole = whole && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("._-", c))
		}
		if (n != nil) != whole {
			t.Fatalf("%q: found %v, want %v", segment, n != nil, whole)
		}
		if n != nil && string(got) != segment {
			t.Fatalf("%q: segment %q", segment, got)
		}
	})
}
