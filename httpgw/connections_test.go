package httpgw

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"blockdesk/httpgw/gatewaytest"
	"blockdesk/httpgw/wire"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
)

// TestZeroCopyBodies: bodies sent without copying are complete and in order among
// pipelined answers.
func TestZeroCopyBodies(t *testing.T) {
	books := gatewaytest.NewBooks(t)
	g := start(t, testOptions(books), books, testDependencies())
	const large, small = "/api/v1/market/trades?symbol=SLUSD/USDC&limit=100", "/api/v1/market/ticker?symbol=SLUSD/USDC"
	_, wholeLarge := gatewaytest.Do(t, g.BaseAddr(), "GET", large, "")
	_, wholeSmall := gatewaytest.Do(t, g.BaseAddr(), "GET", small, "")
	if len(wholeLarge) < wire.ZeroCopyMin || len(wholeSmall) >= wire.ZeroCopyMin {
		t.Fatalf("bodies of %d and %d bytes show nothing", len(wholeLarge), len(wholeSmall))
	}
	requests := []struct {
		method, target, headers string
		status                  int
		body                    []byte
	}{
		{"GET", small, "", 200, wholeSmall},
		{"GET", large, "", 200, wholeLarge},
		{"GET", large, "", 200, wholeLarge},
		{"HEAD", large, "", 200, nil},
		{"GET", small, "", 200, wholeSmall},
		{"GET", large, "If-None-Match: *\r\n", 304, nil},
		{"GET", large, "", 200, wholeLarge},
	}
	for _, pipelined := range []bool{false, true} {
		conn, err := net.Dial("tcp", g.BaseAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(runtest.HangTimeout))
		var text strings.Builder
		in := bufio.NewReader(conn)
		for _, r := range requests {
			fmt.Fprintf(&text, "%s %s HTTP/1.1\r\nHost: test\r\n%s\r\n", r.method, r.target, r.headers)
		}
		if pipelined {
			if _, err := io.WriteString(conn, text.String()); err != nil {
				t.Fatal(err)
			}
		}
		for i, r := range requests {
			if !pipelined {
				if _, err := fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: test\r\n%s\r\n", r.method, r.target, r.headers); err != nil {
					t.Fatal(err)
				}
			}
			resp, err := http.ReadResponse(in, &http.Request{Method: r.method})
			if err != nil {
				t.Fatalf("pipelined %v, request %d: %v", pipelined, i, err)
			}
			body, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != r.status || !bytes.Equal(body, r.body) {
				t.Fatalf("pipelined %v, request %d: status %d, %d bytes, %v", pipelined, i, resp.StatusCode, len(body), err)
			}
			if r.method == "HEAD" && resp.ContentLength != int64(len(wholeLarge)) {
				t.Errorf("HEAD says %d bytes, not %d", resp.ContentLength, len(wholeLarge))
			}
		}
	}
}

// TestReaderThatDoesNotRead: the write timeout ends an answer that the client does not
// read.
func TestReaderThatDoesNotRead(t *testing.T) {
	books := gatewaytest.NewBooks(t)
	o := testOptions(books)
	o.WriteTimeout = 200 * time.Millisecond
	g := start(t, o, books, testDependencies())
	conn, err := net.Dial("tcp", g.BaseAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	request := "GET /api/v1/market/trades?symbol=SLUSD/USDC&limit=100 HTTP/1.1\r\nHost: test\r\n\r\n"
	_ = conn.SetDeadline(time.Now().Add(runtest.HangTimeout))
	for {
		_, err := io.WriteString(conn, strings.Repeat(request, 100))
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("the server has not closed the connection")
		}
		if err != nil {
			break
		}
	}
	await.Equal(t, "the number of connections", 0, g.conns.Count)
}

// endlessConn repeats the same request for a benchmark and discards the answers.
type endlessConn struct {
	net.Conn
	b       *testing.B
	request string
	peer    *net.TCPAddr
}

func (c *endlessConn) Read(p []byte) (int, error) {
	if !c.b.Loop() {
		return 0, io.EOF
	}
	return copy(p, c.request), nil
}

func (c *endlessConn) Write(p []byte) (int, error) { return len(p), nil }

func (c *endlessConn) SetReadDeadline(time.Time) error { return nil }

func (c *endlessConn) SetWriteDeadline(time.Time) error { return nil }

func (c *endlessConn) LocalAddr() net.Addr { return &net.TCPAddr{} }

func (c *endlessConn) RemoteAddr() net.Addr { return c.peer }

func (c *endlessConn) Close() error { return nil }

// BenchmarkRequest is a cached read including fasthttp, without the kernel.
func BenchmarkRequest(b *testing.B) {
	for name, header := range map[string]string{"200": "", "304": "If-None-Match: *\r\n"} {
		b.Run(name, func(b *testing.B) {
			books := gatewaytest.NewBooks(b)
			o := testOptions(books)
			o.NoLimits, o.Market = false, wire.Rate{PerMinute: 60_000_000, Burst: 1_000_000}
			g := start(b, o, books, testDependencies())
			c := wire.NewClientConn(&endlessConn{
				b: b, peer: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}, request: "GET /api/v1/market/depth?symbol=SLUSD/USDC&limit=78 HTTP/1.1\r\nHost: test\r\n" + header + "\r\n",
			}, time.Second)
			b.ReportAllocs()
			if err := g.servers[0].http.ServeConn(c); err != nil {
				b.Fatal(err)
			}
		})
	}
}
