package gatewaytest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"blockdesk/internal/runtest"
)

// Exchange writes raw bytes to addr and reads one response.
func Exchange(t testing.TB, addr net.Addr, raw string) (*http.Response, []byte) {
	t.Helper()
	conn, err := net.Dial("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(runtest.HangTimeout)); err != nil {
		t.Fatal(err)
	}
	// The server may close the connection before everything is written.
	_, _ = io.WriteString(conn, raw)
	method, _, _ := bytes.Cut([]byte(raw), []byte{' '})
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: string(method)})
	if err != nil {
		t.Fatalf("no response to %.80q: %v", raw, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	return resp, body
}

// Do sends one request with extra header lines ("Name: value\r\n").
func Do(t testing.TB, addr net.Addr, method, target, headers string) (*http.Response, []byte) {
	t.Helper()
	return Exchange(t, addr, fmt.Sprintf("%s %s HTTP/1.1\r\nHost: test\r\n%s\r\n", method, target, headers))
}

// ErrorBody is the body of an error (docs/specification.md C.3), decoded strictly.
type ErrorBody struct {
	OK     *bool  `json:"ok"`
	Code   string `json:"code"`
	Error  string `json:"error"`
	Reason string `json:"reason"`
	Field  string `json:"field"`
	Path   string `json:"path"`
	Leader *struct {
		ID  string `json:"id"`
		URL string `json:"url"`
	} `json:"leader"`
	RequestID     string `json:"request_id"`
	Service       string `json:"service"`
	Specification string `json:"specification"`
}

// DecodeError decodes the body of an error and fails if a required member is missing.
func DecodeError(t testing.TB, body []byte) ErrorBody {
	t.Helper()
	var e ErrorBody
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil {
		t.Fatalf("error body %q: %v", body, err)
	}
	if e.OK == nil || *e.OK || e.Code == "" || e.Error == "" || e.Service != "/" || e.Specification != "/public-sdk/openapi/svc_public_api_v1.json" {
		t.Fatalf("error body %q lacks a member", body)
	}
	if !RequestIDForm.MatchString(e.RequestID) {
		t.Fatalf("request_id %q", e.RequestID)
	}
	return e
}

// RequestIDForm is the form of a request_id.
var RequestIDForm = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{10}$`)

// RequestFrom returns a request of a client with the address peer.
func RequestFrom(peer string) *fasthttp.RequestCtx {
	ctx := &fasthttp.RequestCtx{}
	ctx.Init(&fasthttp.Request{}, net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(peer), 4711)), nil)
	return ctx
}
