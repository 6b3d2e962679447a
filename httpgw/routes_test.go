package httpgw

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"blockdesk/httpgw/gatewaytest"
	"blockdesk/httpgw/wire"
	"blockdesk/internal/runtest"
)

// TestRoutesBySurfaceAndMethod drives each row of the table on each address
// with each method, and paths that are no rows beside them.
func TestRoutesBySurfaceAndMethod(t *testing.T) {
	b := gatewaytest.NewBooks(t)
	g := start(t, testOptions(b), b, testDependencies())
	addrs := map[wire.Surface]net.Addr{wire.OnBase: g.BaseAddr(), wire.OnAPI: g.APIAddr(), wire.OnWS: g.WSAddr()}
	const both = wire.OnBase | wire.OnAPI
	rows := []struct {
		target string
		on     wire.Surface
		get    int
	}{
		{"/", both, 200},
		{"/api/v1/market/symbols", both, 200},
		{"/api/v1/market/ticker?symbol=SLUSD/USDC", both, 200},
		{"/api/v1/market/depth?symbol=92C%2fSLUSD", both, 200},
		{"/api/v1/market/trades?symbol=SLUSD%2FUSDC&limit=3", both, 200},
		{"/ws/rfq", wire.OnBase | wire.OnWS, 426},
		{"/ws/rfq/health", wire.OnAPI, 200},
		{"/api/v1/market/Depth?symbol=SLUSD/USDC", 0, 404},
		{"/api/v1/market/depth/?symbol=SLUSD/USDC", 0, 404},
		{"/api/v1/market", 0, 404},
	}
	for _, row := range rows {
		for on, addr := range addrs {
			for _, method := range []string{"GET", "HEAD", "OPTIONS", "POST", "PUT", "DELETE", "BREW"} {
				want := row.get
				switch {
				case row.on&on == 0:
					want = 404
				case method == "OPTIONS":
					want = 204
				case method != "GET" && method != "HEAD":
					want = 405
				}
				resp, body := gatewaytest.Do(t, addr, method, row.target, "")
				where := wire.SurfaceNames[on] + " " + method + " " + row.target
				if resp.StatusCode != want {
					t.Errorf("%s: status %d, want %d: %s", where, resp.StatusCode, want, body)
					continue
				}
				checkHeaders(t, where, resp.Header)
				if method == "HEAD" || want == 204 {
					if len(body) != 0 {
						t.Errorf("%s: a body of %d bytes", where, len(body))
					}
				} else if !json.Valid(body) {
					t.Errorf("%s: body is no JSON: %s", where, body)
				}
				if allow := resp.Header.Get("Allow"); (want == 405 || want == 204) && allow != "GET, HEAD, OPTIONS" {
					t.Errorf("%s: Allow %q", where, allow)
				}
				if want >= 400 && method != "HEAD" {
					gatewaytest.DecodeError(t, body)
				}
			}
		}
	}
}

func checkHeaders(t *testing.T, where string, h map[string][]string) {
	t.Helper()
	for name, want := range map[string]string{
		"X-Request-Id":                `^[0-9a-f]{8}-[0-9a-f]{10}$`,
		"Access-Control-Allow-Origin": `^\*$`,
		"X-Content-Type-Options":      `^nosniff$`,
		"Cache-Control":               `^(no-store|no-cache|public, max-age=60)$`,
		"Date":                        `GMT$`,
	} {
		if got := strings.Join(h[name], "|"); !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("%s: %s: %q", where, name, got)
		}
	}
	if len(h["Server"]) != 0 {
		t.Errorf("%s: a Server header", where)
	}
}

// TestHeadEqualsGet: a HEAD has the headers of the GET, including Content-Length.
func TestHeadEqualsGet(t *testing.T) {
	b := gatewaytest.NewBooks(t)
	g := start(t, testOptions(b), b, testDependencies())
	for _, target := range []string{"/", "/api/v1/market/symbols", "/api/v1/market/depth?symbol=SLUSD/USDC", "/nowhere"} {
		get, body := gatewaytest.Do(t, g.BaseAddr(), "GET", target, "")
		head, none := gatewaytest.Do(t, g.BaseAddr(), "HEAD", target, "")
		if len(none) != 0 {
			t.Errorf("%s: HEAD with a body", target)
		}
		if head.ContentLength != int64(len(body)) {
			t.Errorf("%s: HEAD says %d bytes, GET has %d", target, head.ContentLength, len(body))
		}
		for _, name := range []string{"ETag", "Content-Type", "Cache-Control", "Vary"} {
			if get.Header.Get(name) != head.Header.Get(name) {
				t.Errorf("%s: %s: GET %q, HEAD %q", target, name, get.Header.Get(name), head.Header.Get(name))
			}
		}
		if ct := get.Header.Get("Content-Type"); ct != wire.JSONType {
			t.Errorf("%s: Content-Type %q", target, ct)
		}
	}
}

// TestNotFoundEcho: a path is repeated only if it is standard.
func TestNotFoundEcho(t *testing.T) {
	b := gatewaytest.NewBooks(t)
	g := start(t, testOptions(b), b, testDependencies())
	long := "/" + strings.Repeat("a", wire.MaxEcho-1)
	for _, c := range []struct{ target, path string }{
		{"/nowhere", "/nowhere"},
		{"/A.b_c-9/", "/A.b_c-9/"},
		{"/nowhere?secret=1", "/nowhere"},
		{"//", "//"},
		{"/../../etc/passwd", "/../../etc/passwd"},
		{"/api/v1/market/../market/depth?symbol=SLUSD/USDC", "/api/v1/market/../market/depth"},
		{"//api/v1/market/depth?symbol=SLUSD/USDC", "//api/v1/market/depth"},
		{"/./api/v1/market/symbols", "/./api/v1/market/symbols"},
		{long, long},
		{long + "a", wire.HiddenPath},
		{"/api/v1/market%2fsymbols", wire.HiddenPath},
		{"/%61pi/v1/market/symbols", wire.HiddenPath},
		{"/a%00b", wire.HiddenPath},
		{"/a%0d%0aSet-Cookie:x", wire.HiddenPath},
		{"/a;b", wire.HiddenPath},
		{"/<script>alert(1)</script>", wire.HiddenPath},
		{"/\"},{\"", wire.HiddenPath},
		{"/h\u00e9", wire.HiddenPath},
		{"/a\\b", wire.HiddenPath},
		{"/a#b", wire.HiddenPath},
		{"/a:b@c", wire.HiddenPath},
		{"/~user", wire.HiddenPath},
		{"http://evil.example/nowhere", "/nowhere"},
		{"*", wire.HiddenPath},
	} {
		resp, body := gatewaytest.Do(t, g.BaseAddr(), "GET", c.target, "")
		if resp.StatusCode != 404 {
			t.Errorf("GET %q: status %d", c.target, resp.StatusCode)
			continue
		}
		if e := gatewaytest.DecodeError(t, body); e.Code != "ROUTE_INCONNUE" || e.Path != c.path {
			t.Errorf("GET %q: code %q path %q, want path %q", c.target, e.Code, e.Path, c.path)
		}
	}
}

// TestAbsoluteForm: a request target may be a whole URL; only its path counts.
func TestAbsoluteForm(t *testing.T) {
	b := gatewaytest.NewBooks(t)
	g := start(t, testOptions(b), b, testDependencies())
	for _, target := range []string{"http://anywhere", "http://anywhere/api/v1/market/depth?symbol=SLUSD/USDC"} {
		if resp, body := gatewaytest.Do(t, g.BaseAddr(), "GET", target, ""); resp.StatusCode != 200 {
			t.Errorf("GET %s: status %d: %s", target, resp.StatusCode, body)
		}
	}
}

// TestUnreadable: requests that do not reach the router.
func TestUnreadable(t *testing.T) {
	b := gatewaytest.NewBooks(t)
	o := testOptions(b)
	g := start(t, o, b, testDependencies())
	for _, c := range []struct {
		name, raw string
		status    int
		code      string
	}{
		{"no words", "hello\r\n\r\n", 400, wire.CodeMalformed},
		{"no host", "GET / HTTP/1.1\r\n\r\n", 400, wire.CodeMalformed},
		{"two hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, wire.CodeMalformed},
		{"a control byte in the path", "GET /a\x01b HTTP/1.1\r\nHost: a\r\n\r\n", 400, wire.CodeMalformed},
		{"NUL in the path", "GET /a\x00b HTTP/1.1\r\nHost: a\r\n\r\n", 400, wire.CodeMalformed},
		{"a bare CR in the path", "GET /a\rb HTTP/1.1\r\nHost: a\r\n\r\n", 400, wire.CodeMalformed},
		{"a wrong version", "GET / HTTP/9\r\nHost: a\r\n\r\n", 400, wire.CodeMalformed},
		{"two lengths", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx", 400, wire.CodeMalformed},
		{"a negative length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\nx", 400, wire.CodeMalformed},
		{"an unknown coding", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: rot13\r\n\r\nx", 400, wire.CodeMalformed},
		{"a broken chunk", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400, wire.CodeMalformed},
		{
			"one long header", "GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", wire.DefaultMaxHeaderBytes) + "\r\n\r\n",
			431, wire.CodeHeadersTooLarge,
		},
		{
			"a thousand headers", "GET / HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("Some-Header: 0123456789\r\n", 1000) + "\r\n",
			431, wire.CodeHeadersTooLarge,
		},
		{"a long path", "GET /" + strings.Repeat("x", wire.DefaultMaxHeaderBytes) + " HTTP/1.1\r\nHost: a\r\n\r\n", 431, wire.CodeHeadersTooLarge},
		{
			"a body of one byte too many",
			"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 65537\r\n\r\n" + strings.Repeat("x", 65537), 413, wire.CodeBodyTooLarge,
		},
		{
			"a chunked body of one byte too many",
			"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n10001\r\n" + strings.Repeat("x", 65537) + "\r\n0\r\n\r\n",
			413, wire.CodeBodyTooLarge,
		},
		{
			"the longest body", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 65536\r\n\r\n" + strings.Repeat("x", 65536),
			405, wire.CodeMethodNotAllowed,
		},
	} {
		resp, body := gatewaytest.Exchange(t, g.BaseAddr(), c.raw)
		if resp.StatusCode != c.status {
			t.Errorf("%s: status %d, want %d: %s", c.name, resp.StatusCode, c.status, body)
			continue
		}
		if e := gatewaytest.DecodeError(t, body); e.Code != c.code {
			t.Errorf("%s: code %q, want %q", c.name, e.Code, c.code)
		}
		checkHeaders(t, c.name, resp.Header)
	}
}

// TestHeaderLimitExact: the longest request line and headers, and one byte more.
func TestHeaderLimitExact(t *testing.T) {
	b := gatewaytest.NewBooks(t)
	g := start(t, testOptions(b), b, testDependencies())
	for _, c := range []struct {
		addr  net.Addr
		limit int
	}{{g.BaseAddr(), wire.DefaultMaxHeaderBytes}, {g.WSAddr(), wsHeaderBytes}} {
		request := func(size int) string {
			const head = "GET /x HTTP/1.1\r\nHost: a\r\nX: "
			return head + strings.Repeat("x", size-len(head)-4) + "\r\n\r\n"
		}
		if resp, _ := gatewaytest.Exchange(t, c.addr, request(c.limit)); resp.StatusCode != 404 {
			t.Errorf("%d bytes: status %d, want 404", c.limit, resp.StatusCode)
		}
		if resp, _ := gatewaytest.Exchange(t, c.addr, request(c.limit+1)); resp.StatusCode != fasthttp.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("%d bytes: status %d, want 431", c.limit+1, resp.StatusCode)
		}
	}
}

// TestUnreadableLate: an unreadable request is answered no matter how old the
// connection is.
func TestUnreadableLate(t *testing.T) {
	b := gatewaytest.NewBooks(t)
	o := testOptions(b)
	o.WriteTimeout = 300 * time.Millisecond
	g := start(t, o, b, testDependencies())
	conn, err := net.Dial("tcp", g.BaseAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(runtest.HangTimeout)); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	for i, step := range []struct {
		send string
		want int
	}{
		{"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 200},
		{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 65537\r\n\r\n" + strings.Repeat("x", 65537), 413},
	} {
		if i > 0 {
			time.Sleep(2 * o.WriteTimeout) // sleep: the first answer's deadline has to pass, and nothing reports it
		}
		if _, err := io.WriteString(conn, step.send); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatalf("request %d: %v", i+1, err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != step.want {
			t.Errorf("request %d: status %d, want %d", i+1, resp.StatusCode, step.want)
		}
	}
}
