package httpgw

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"blockdesk/desk"
	"blockdesk/httpgw/gatewaytest"
	rfqapi "blockdesk/httpgw/rfq"
	"blockdesk/httpgw/wire"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
)

// startWriter runs a gateway with a desk until the test ends.
func startWriter(t testing.TB, change func(*Options)) (*Gateway, *gatewaytest.ScriptedDesk) {
	t.Helper()
	g, sold := newWriterGateway(t, change)
	runtest.Start(t, g.Run)
	return g, sold
}

// newWriterGateway returns a gateway with a desk that listens and does not run yet.
func newWriterGateway(t testing.TB, change func(*Options)) (*Gateway, *gatewaytest.ScriptedDesk) {
	t.Helper()
	b := gatewaytest.NewBooks(t)
	o := testOptions(b)
	if change != nil {
		change(&o)
	}
	deps := testDependencies()
	sold := &gatewaytest.ScriptedDesk{Current: gatewaytest.FixedView()}
	deps.Desk = sold
	deps.Settlement = &fakeChain{verdict: desk.Verdict{Pending: time.Second}}
	g, err := New(o, b, deps)
	if err != nil {
		t.Fatal(err)
	}
	return g, sold
}

// talk writes raw bytes, closes the sending side if half is true, and returns
// everything that is received until the connection ends.
func talk(t testing.TB, addr net.Addr, raw string, half bool) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(runtest.HangTimeout)); err != nil {
		t.Fatal(err)
	}
	// The server may close while we still write.
	_, _ = io.WriteString(conn, raw)
	if half {
		_ = conn.(*net.TCPConn).CloseWrite()
	}
	answer, err := io.ReadAll(conn)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%.100q: still open after %v", raw, runtest.HangTimeout)
	}
	return string(answer)
}

// statusesOf returns the status codes of the answers in a connection's bytes,
// including 100.
func statusesOf(answer string) (codes string) {
	for _, part := range strings.Split(answer, "HTTP/1.1 ")[1:] {
		codes += part[:3] + " "
	}
	return strings.TrimSpace(codes)
}

// TestHostileWrites: hostile requests to a writing route are answered or closed as
// expected.
func TestHostileWrites(t *testing.T) {
	g, _ := startWriter(t, nil)
	const quote = rfqapi.PathRFQ + "quote"
	good := postText(quote, quoteBody)
	long := func(n int) string { return `{"order_id":"` + strings.Repeat("x", n-15) + `"}` }
	chunked := func(chunks string, headers ...string) string {
		return "POST " + quote + " HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n" +
			strings.Join(append(headers, ""), "\r\n") + "\r\n" + chunks
	}
	oneByOne := func(body string) (chunks string) {
		for i := range len(body) {
			chunks += "1\r\n" + body[i:i+1] + "\r\n"
		}
		return chunks + "0\r\n\r\n"
	}
	for _, c := range []struct{ name, raw, want string }{
		{"a good one", good, "200"},
		{"three of them", good + good + good, "200 200 200"},
		{"an absolute target", strings.Replace(good, quote, "http://evil.example"+quote, 1), "200"},
		{"a query", strings.Replace(good, quote, quote+"?a=b", 1), "200"},
		{"the longest body", postText(quote, long(wire.DefaultMaxBodyBytes)), "400"},
		{"one byte more", postText(quote, long(wire.DefaultMaxBodyBytes+1)), "413"},
		{"a terabyte announced", strings.Replace(good, "Content-Length: 68", "Content-Length: 1099511627776", 1), "413"},
		{"more than a word announced", strings.Replace(good, "Content-Length: 68", "Content-Length: 99999999999999999999", 1), "400"},
		{"a signed length", strings.Replace(good, "Content-Length: 68", "Content-Length: +68", 1), "400"},
		{"a hexadecimal length", strings.Replace(good, "Content-Length: 68", "Content-Length: 0x44", 1), "400"},
		{"two lengths in one", strings.Replace(good, "Content-Length: 68", "Content-Length: 68, 68", 1), "400"},
		{"a length too short", strings.Replace(good, "Content-Length: 68", "Content-Length: 60", 1), "400 400"},
		{"a length too long", strings.Replace(good, "Content-Length: 68", "Content-Length: 69", 1), "400"},
		{"no length", strings.Replace(good, "Content-Length: 68\r\n", "", 1), "400 400"},
		{"garbage behind a good one", good + "\x00\x01\x02\r\n\r\n" + good, "200 400"},
		{"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + strings.Repeat("\x00", 100) + "\r\n\r\n", "400"},
		{"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "404"},
		{"chunks", chunked(fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(quoteBody), quoteBody)), "200"},
		{"a chunk a byte", chunked(oneByOne(quoteBody)), "200"},
		{"chunks of 64 KiB and a byte", chunked(oneByOne(long(1000)) + "0\r\n\r\n"), "400 400"},
		{"a chunk too large", chunked("10001\r\n" + strings.Repeat("x", 0x10001) + "\r\n0\r\n\r\n"), "413"},
		{"a chunk larger than a word", chunked("ffffffffffffffffff\r\nx\r\n0\r\n\r\n"), "400"},
		{"a chunk of all words", chunked("7fffffffffffffff\r\nx\r\n0\r\n\r\n"), "400"},
		{"a negative chunk", chunked("-1\r\nx\r\n0\r\n\r\n"), "400"},
		{"a chunk that ends elsewhere", chunked("2\r\n{}x\r\n0\r\n\r\n"), "400"},
		{"a trailer", chunked("2\r\n{}\r\n0\r\nX: y\r\n\r\n"), "400"},
		{"a trailer that frames", chunked("2\r\n{}\r\n0\r\nContent-Length: 5\r\n\r\n"), "400"},
		{"a long trailer", chunked("2\r\n{}\r\n0\r\nX: " + strings.Repeat("y", 1<<15) + "\r\n\r\n"), "431"},
		{"two codings", chunked("2\r\n{}\r\n0\r\n\r\n", "Transfer-Encoding: chunked"), "400"},
		{"a coding behind a tab", strings.Replace(chunked("2\r\n{}\r\n0\r\n\r\n"), ": chunked", ": \tchunked\x0b", 1), "400"},
		{"two framings", chunked("0\r\n\r\n", "Content-Length: 3") + good, "400"},
		{"a form", strings.Replace(good, "application/json", "multipart/form-data; boundary=x", 1), "415"},
		{"a thousand headers", strings.Replace(good, "Host", strings.Repeat("A: b\r\n", 1000)+"Host", 1), "200"},
		{"ten thousand headers", strings.Replace(good, "Host", strings.Repeat("A: b\r\n", 10000)+"Host", 1), "431"},
		{"a header without a name", strings.Replace(good, "Host", ": x\r\nHost", 1), "400"},
		{"a folded header", strings.Replace(good, "Host", "A: b\r\n c\r\nHost", 1), "200"},
		{"a header with NUL", strings.Replace(good, "Host", "A: \x00\r\nHost", 1), "400"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			answer := talk(t, g.BaseAddr(), c.raw, true)
			if codes := statusesOf(answer); codes != c.want {
				t.Errorf("answers %q, want %q: %s", codes, c.want, answer)
			}
		})
	}
}

// TestHostilePaths: a writing route has exactly one spelling.
func TestHostilePaths(t *testing.T) {
	g, sold := startWriter(t, nil)
	for path, status := range map[string]string{
		"/api/v1/rfq/./quote": "404", "/api/v1/rfq/../rfq/quote": "404", "/api/v1//rfq/quote": "404", "//api/v1/rfq/quote": "404",
		"/api/v1/rfq/quote/": "404", "/api/v1/rfq/quote%00": "404", "/api/v1/rfq%2fquote": "404", "/api/v1/rfq/%71uote": "404",
		"/API/V1/RFQ/QUOTE": "404", "/api/v1/rfq/quote;x": "404", "/api/v1/rfq/quote#x": "404", "/api/v1/rfq/quote\\": "404",
		"/api/v1/rfq/quote%0d%0aX:y": "404", "/api/v1/rfq/claims/..%2fquote": "404", "http://a/api/v1/rfq/../rfq/quote": "404",
		"api/v1/rfq/quote": "400", "/api/v1/rfq/quote\r\nX: y": "400", "/api/v1/rfq/qu\rote": "400", "/api/v1/rfq/qu\x00te": "400",
	} {
		answer := talk(t, g.BaseAddr(), postText(path, quoteBody, "Connection: close"), false)
		if codes := statusesOf(answer); codes != status {
			t.Errorf("%q: answers %q, want %q: %s", path, codes, status, answer)
		}
	}
	if n := len(sold.Requests); n != 0 {
		t.Errorf("the desk was asked %d times", n)
	}
}

// TestSlowWrites: a slow request is cut off after the timeout at any point. Within
// chunks fasthttp does not report a timeout.
func TestSlowWrites(t *testing.T) {
	g, sold := newWriterGateway(t, func(o *Options) { o.ReadTimeout = 300 * time.Millisecond })
	head := "POST " + rfqapi.PathRFQ + "quote HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n"
	cases := map[string]struct{ at, drip, want string }{
		"headers":           {head, strings.Repeat("A: b\r\n", 1000), "408"},
		"body":              {head + "Content-Length: 60000\r\n\r\n", strings.Repeat(" ", 6000), "408"},
		"chunks":            {head + "Transfer-Encoding: chunked\r\n\r\n", strings.Repeat("1\r\n \r\n", 1000), "400 or 408"},
		"a chunk's size":    {head + "Transfer-Encoding: chunked\r\n\r\n", strings.Repeat("0", 6000), "400 or 408"},
		"a chunk's comment": {head + "Transfer-Encoding: chunked\r\n\r\n1;", strings.Repeat("x", 6000), "400 or 408"},
		"trailers":          {head + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n", strings.Repeat("A: b\r\n", 1000), "408"},
		"after 100":         {head + "Content-Length: 60000\r\nExpect: 100-continue\r\n\r\n", strings.Repeat(" ", 6000), "100 408"},
		"the second one":    {postText(rfqapi.PathRFQ+"quote", quoteBody) + head, strings.Repeat("A: b\r\n", 1000), "200 408"},
	}
	// A connection's time begins when the gateway takes it, which is only when what a
	// client may send at once is there.
	conns := map[string]net.Conn{}
	for name, c := range cases {
		conn, err := net.Dial("tcp", g.BaseAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, c.at); err != nil {
			t.Fatal(err)
		}
		conns[name] = conn
	}
	runtest.Start(t, g.Run)
	stops := map[string]func() int{}
	for name, c := range cases {
		stops[name] = drip(t, conns[name], c.drip)
	}
	for name, c := range cases {
		answer, err := io.ReadAll(conns[name])
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("%s: still open", name)
		}
		if sent := stops[name](); sent == len(c.drip) {
			t.Errorf("%s: all of the %d bytes were waited for", name, sent)
		}
		if codes := statusesOf(string(answer)); codes == "" || !slices.Contains(strings.Split(c.want, " or "), codes) {
			t.Errorf("%s: answers %q, want %q: %s", name, codes, c.want, answer)
		}
	}
	if n := len(sold.Requests); n > 1 {
		t.Errorf("the desk was asked %d times", n)
	}
}

// TestExpect: a client that sends Expect: 100-continue gets 100 only if its
// headers are valid; a refusal costs no token.
func TestExpect(t *testing.T) {
	clock := &manualClock{}
	g, _ := startWriter(t, func(o *Options) { o.NoLimits, o.Clock = false, clock.read })
	head := func(path, media string, length int) string {
		return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: t\r\nContent-Type: %s\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", path, media, length)
	}
	const quote, media = rfqapi.PathRFQ + "quote", "application/json"
	for _, c := range []struct{ name, head, want, code string }{
		{"no such route", head("/nowhere", media, 68), "404", wire.CodeUnknownRoute},
		{"a route of reads", head(rfqapi.PathRFQ+"levels", media, 68), "405", wire.CodeMethodNotAllowed},
		{"too long", head(quote, media, wire.DefaultMaxBodyBytes+1), "413", wire.CodeBodyTooLarge},
		{"no JSON", head(quote, "text/plain", 68), "415", wire.CodeUnsupportedMedia},
		{"two framings", strings.Replace(head(quote, media, 68), "Expect", "Transfer-Encoding: chunked\r\nExpect", 1), "400", wire.CodeMalformed},
	} {
		answer := talk(t, g.BaseAddr(), c.head, false)
		if codes := statusesOf(answer); codes != c.want {
			t.Errorf("%s: answers %q: %s", c.name, codes, answer)
			continue
		}
		resp, err := http.ReadResponse(bufio.NewReader(strings.NewReader(answer)), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		if e := gatewaytest.DecodeError(t, body); e.Code != c.code || resp.Header.Get("RateLimit") != "" {
			t.Errorf("%s: %v %s", c.name, resp.Header, body)
		}
		checkHeaders(t, c.name, resp.Header)
	}
	conn, err := net.Dial("tcp", g.BaseAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(runtest.HangTimeout)); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	for i := range 2 {
		if _, err := io.WriteString(conn, head(quote, media, len(quoteBody))); err != nil {
			t.Fatal(err)
		}
		line, err := r.ReadString('\n')
		blank, _ := r.ReadString('\n')
		if err != nil || !strings.HasPrefix(line, "HTTP/1.1 100 ") || blank != "\r\n" {
			t.Fatalf("%q %q %v", line, blank, err)
		}
		if _, err := io.WriteString(conn, quoteBody); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		if left := resp.Header.Get("X-RateLimit-Remaining"); resp.StatusCode != 200 || left != fmt.Sprint(9-i) {
			t.Errorf("status %d, %s left", resp.StatusCode, left)
		}
	}
}

// TestTrailerNamesNoClient: a trailer comes from the client, so it must not count as
// the forwarding header.
func TestTrailerNamesNoClient(t *testing.T) {
	for _, header := range []string{"X-Forwarded-For", "Cf-Connecting-Ip"} {
		clock := &manualClock{}
		g, _ := startWriter(t, func(o *Options) {
			o.NoLimits, o.Clock, o.ForwardedHeader = false, clock.read, header
			o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		})
		last := ""
		for i := range 12 {
			raw := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: t\r\nConnection: close\r\n%s: 203.0.113.1\r\n"+
				"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n%s: 198.51.100.%d\r\n\r\n",
				rfqapi.PathRFQ+"quote", header, header, i)
			last = talk(t, g.BaseAddr(), raw, false)
			if header == "X-Forwarded-For" && statusesOf(last) != "400" {
				t.Errorf("fasthttp took it as a trailer: %s", last)
			}
		}
		if header != "X-Forwarded-For" && statusesOf(last) != "429" {
			t.Errorf("%s: request 12 of one client: %s", header, last)
		}
	}
}

// TestMemoryOfWrites: connections that announce the largest body and do not send it
// cost at most their buffers.
func TestMemoryOfWrites(t *testing.T) {
	const n, each = 200, 256 << 10
	g, _ := startWriter(t, nil)
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for range n {
		conn, err := net.Dial("tcp", g.BaseAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		head := postText(rfqapi.PathRFQ+"quote", "", "A: "+strings.Repeat("b", 8<<10))
		head = strings.Replace(head, "Content-Length: 0", fmt.Sprintf("Content-Length: %d", wire.DefaultMaxBodyBytes), 1)
		if _, err := io.WriteString(conn, head+"{"); err != nil {
			t.Fatal(err)
		}
	}
	await.Equal(t, "the number of connections", n, g.conns.Count)
	if after := heap(); after > before+n*each {
		t.Errorf("%d connections hold %d KiB", n, (after-before)>>10)
	}
}
