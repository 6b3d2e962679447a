package httpgw

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/valyala/fasthttp"

	"blockdesk/httpgw/gatewaytest"
	marketapi "blockdesk/httpgw/market"
	"blockdesk/httpgw/site"
	"blockdesk/httpgw/wire"
)

// TestQueries: the answer to each query, over a socket.
func TestQueries(t *testing.T) {
	b := gatewaytest.NewBooks(t)
	g := start(t, testOptions(b), b, testDependencies())
	for _, c := range []struct {
		target      string
		code, field string
	}{
		{"depth?symbol=SLUSD/USDC", "", ""},
		{"depth?symbol=SLUSD%2FUSDC&limit=1", "", ""},
		{"depth?limit=100&symbol=92C/SLUSD", "", ""},
		{"depth?symbol=EMPTY/USDC&limit=0100", "", ""},
		{"depth?symbol=SLUSD/USDC&limit=%31%30", "", ""},
		{"depth?symbol=SLUSD/USDC&_=1732", wire.CodeInvalidField, "_"},
		{"trades?symbol=SLUSD/USDC&start=7", wire.CodeInvalidField, "start"},
		{"trades?symbol=SLUSD/USDC&%73tart=7", wire.CodeInvalidField, ""},
		{"depth?&&symbol=SLUSD/USDC&", "", ""},
		{"depth", wire.CodeMissingField, "symbol"},
		{"depth?symbol", wire.CodeMissingField, "symbol"},
		{"depth?symbol=", wire.CodeMissingField, "symbol"},
		{"depth?Symbol=SLUSD/USDC", wire.CodeInvalidField, "Symbol"},
		{"depth?symbol=SLUSD/USDC&symbol=SLUSD/USDC", wire.CodeInvalidField, "symbol"},
		{"depth?symbol=slusd/usdc", wire.CodeUnknownSymbol, "symbol"},
		{"depth?symbol=X/Y", wire.CodeUnknownSymbol, "symbol"},
		{"depth?symbol=SLUSD%2", wire.CodeUnknownSymbol, "symbol"},
		{"depth?symbol=SLUSD%zzUSDC", wire.CodeUnknownSymbol, "symbol"},
		{"depth?symbol=SLUSD/USDC%00", wire.CodeUnknownSymbol, "symbol"},
		{"depth?symbol=SLUSD+USDC", wire.CodeUnknownSymbol, "symbol"},
		{"depth?symbol=" + strings.Repeat("A", wire.MaxQueryValue+1), wire.CodeUnknownSymbol, "symbol"},
		{"depth?symbol=SLUSD/USDC&limit=0", wire.CodeInvalidLimit, "limit"},
		{"depth?symbol=SLUSD/USDC&limit=101", wire.CodeInvalidLimit, "limit"},
		{"depth?symbol=SLUSD/USDC&limit=", wire.CodeInvalidLimit, "limit"},
		{"depth?symbol=SLUSD/USDC&limit", wire.CodeInvalidLimit, "limit"},
		{"depth?symbol=SLUSD/USDC&limit=-1", wire.CodeInvalidLimit, "limit"},
		{"depth?symbol=SLUSD/USDC&limit=%2B5", wire.CodeInvalidLimit, "limit"},
		{"depth?symbol=SLUSD/USDC&limit=5.0", wire.CodeInvalidLimit, "limit"},
		{"depth?symbol=SLUSD/USDC&limit=1e1", wire.CodeInvalidLimit, "limit"},
		{"depth?symbol=SLUSD/USDC&limit=5&limit=6", wire.CodeInvalidLimit, "limit"},
		{"depth?symbol=SLUSD/USDC&limit=18446744073709551617", wire.CodeInvalidLimit, "limit"},
		{"depth?symbol=SLUSD/USDC&limit=999999999", wire.CodeInvalidLimit, "limit"},
		{"trades?symbol=SLUSD/USDC&limit=100", "", ""},
		{"trades?symbol=SLUSD/USDC&limit=101", wire.CodeInvalidLimit, "limit"},
		{"trades?limit=5", wire.CodeMissingField, "symbol"},
		{"ticker?symbol=92C/SLUSD", "", ""},
		{"ticker", wire.CodeMissingField, "symbol"},
		{"symbols?anything=goes", "", ""},
	} {
		resp, body := gatewaytest.Do(t, g.APIAddr(), "GET", "/api/v1/market/"+c.target, "")
		if c.code == "" {
			if resp.StatusCode != 200 {
				t.Errorf("%s: status %d: %s", c.target, resp.StatusCode, body)
			}
			continue
		}
		if e := gatewaytest.DecodeError(t, body); resp.StatusCode != 400 || e.Code != c.code || e.Field != c.field {
			t.Errorf("%s: status %d code %s field %s, want 400 %s %s", c.target, resp.StatusCode, e.Code, e.Field, c.code, c.field)
		}
	}
}

// TestConditionalGet: ETag, every form of If-None-Match, and gzip as another
// representation.
func TestConditionalGet(t *testing.T) {
	b := gatewaytest.NewBooks(t)
	g := start(t, testOptions(b), b, testDependencies())
	const target = "/api/v1/market/depth?symbol=SLUSD/USDC&limit=100"
	get := func(headers string) (*http.Response, []byte) {
		return gatewaytest.Do(t, g.BaseAddr(), "GET", target, headers)
	}

	plain, body := get("")
	packed, small := get("Accept-Encoding: br, gzip;q=0.5\r\n")
	etag, gzTag := plain.Header.Get("ETag"), packed.Header.Get("ETag")
	if etag == "" || gzTag == "" || etag == gzTag {
		t.Fatalf("ETags %q and %q", etag, gzTag)
	}
	if packed.Header.Get("Content-Encoding") != "gzip" || len(small) >= len(body)/2 {
		t.Fatalf("gzip: %q, %d bytes of %d", packed.Header.Get("Content-Encoding"), len(small), len(body))
	}
	r, err := gzip.NewReader(bytes.NewReader(small))
	if err != nil {
		t.Fatal(err)
	}
	if unpacked, err := io.ReadAll(r); err != nil || !bytes.Equal(unpacked, body) {
		t.Fatalf("the compressed form is not the plain one: %v", err)
	}
	for _, c := range []struct {
		headers string
		status  int
	}{
		{"If-None-Match: " + etag + "\r\n", 304},
		{"If-None-Match: W/" + etag + "\r\n", 304},
		{"If-None-Match: \"x\",\t" + etag + " , \"y\"\r\n", 304},
		{"If-None-Match: *\r\n", 304},
		{"If-None-Match: " + gzTag + "\r\nAccept-Encoding: gzip\r\n", 304},
		{"If-None-Match: " + gzTag + "\r\n", 200},
		{"If-None-Match: " + etag + "\r\nAccept-Encoding: gzip\r\n", 200},
		{"If-None-Match: \"\"\r\n", 200},
		{"If-None-Match: \"x,*,y\"\r\n", 200}, // one tag
		{"If-None-Match: \r\n", 200},
		{"If-None-Match: " + strings.Trim(etag, `"`) + "\r\n", 200},
		{"If-None-Match: " + etag[:len(etag)-2] + "\r\n", 200},
	} {
		resp, got := get(c.headers)
		if resp.StatusCode != c.status || (c.status == 304) != (len(got) == 0) {
			t.Errorf("%q: status %d with %d bytes, want %d", c.headers, resp.StatusCode, len(got), c.status)
		}
		if resp.Header.Get("ETag") == "" || resp.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%q: ETag %q Vary %q", c.headers, resp.Header.Get("ETag"), resp.Header.Get("Vary"))
		}
	}
	b.Views[0].Store(gatewaytest.FullView(0, 1043))
	if resp, _ := get("If-None-Match: " + etag + "\r\n"); resp.StatusCode != 200 {
		t.Errorf("after a change: status %d", resp.StatusCode)
	}
}

// TestDescription: GET / has exactly the members of docs/specification.md 2.4, and its
// endpoints answer.
func TestDescription(t *testing.T) {
	b := gatewaytest.NewBooks(t)
	o := testOptions(b)
	o.URLs.Base = "https://desk.example/"
	g := start(t, o, b, testDependencies())
	_, body := gatewaytest.Do(t, g.BaseAddr(), "GET", "/", "")
	var got map[string]json.RawMessage
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"contacts", "encodage", "endpoints", "erreur_route_inconnue", "github", "mise_a_jour", "ok", "operateur",
		"qualification", "sdk_public", "service", "specification_openapi", "version",
	}
	var names []string
	for name := range got {
		names = append(names, name)
	}
	slices.Sort(names)
	if !slices.Equal(names, want) {
		t.Errorf("members %v, want %v", names, want)
	}
	var d site.ServiceDescription
	if err := json.Unmarshal(body, &d); err != nil {
		t.Fatal(err)
	}
	if d.Version != "1.1.0" || d.SDK != "/public-sdk/" || d.Qualification.Label == "" || d.Qualification.Nature == "" {
		t.Errorf("description %+v", d)
	}
	wantEndpoints := map[wire.Group][]string{
		wire.GroupMarket: {
			"GET https://desk.example/api/v1/market/symbols", "GET https://desk.example/api/v1/market/ticker?symbol={symbol}",
			"GET https://desk.example/api/v1/market/depth?symbol={symbol}", "GET https://desk.example/api/v1/market/trades?symbol={symbol}",
			"GET https://desk.example/api/v1/market/klines?symbol={symbol}", "GET https://desk.example/api/v1/market/candles",
			"GET https://desk.example/api/v1/market/oracle/heartbeat", "GET https://desk.example/api/v1/market/stream",
		},
		wire.GroupBoard:     {"GET https://desk.example/board"},
		wire.GroupWebSocket: {"GET ws://" + g.WSAddr().String() + "/ws/rfq", "GET http://" + g.APIAddr().String() + "/ws/rfq/health"},
	}
	for path := range catalogPaths() {
		in := wire.GroupMarket
		if strings.HasPrefix(path, marketapi.PathWellKnown) {
			in = wire.GroupDiscovery
		}
		wantEndpoints[in] = append(wantEndpoints[in], "GET https://desk.example"+path)
	}
	for name, want := range wantEndpoints {
		for _, line := range want {
			if !slices.Contains(d.Endpoints[name], line) {
				t.Errorf("endpoints %s lack %s", name, line)
			}
		}
	}
	if len(d.Endpoints) != len(wantEndpoints) {
		t.Errorf("endpoints %v", d.Endpoints)
	}
}

// TestStreamRoute: the stream answers on both addresses, each connection costs one
// token of the market limit, and CORS allows the header of a resume.
func TestStreamRoute(t *testing.T) {
	b, deps := gatewaytest.NewBooks(t), testDependencies()
	var asked atomic.Int32
	deps.Stream = func(ctx *fasthttp.RequestCtx) {
		asked.Add(1)
		if id := ctx.Response.Header.Peek("X-Request-Id"); len(id) == 0 {
			t.Error("the handler does not get the request's id")
		}
		ctx.SetContentType("text/event-stream; charset=utf-8")
		ctx.SetBodyString("event: status\n\n")
	}
	o := testOptions(b)
	o.NoLimits, o.Market = false, wire.Rate{PerMinute: 1, Burst: 2}
	g := start(t, o, b, deps)
	const path = "/api/v1/market/stream"
	for _, addr := range []net.Addr{g.BaseAddr(), g.APIAddr()} {
		resp, body := gatewaytest.Do(t, addr, "GET", path, "")
		if resp.StatusCode != 200 || string(body) != "event: status\n\n" || resp.Header.Get("RateLimit") == "" {
			t.Errorf("status %d %v: %s", resp.StatusCode, resp.Header, body)
		}
	}
	if resp, _ := gatewaytest.Do(t, g.BaseAddr(), "GET", path, ""); resp.StatusCode != 429 || asked.Load() != 2 {
		t.Errorf("status %d after %d connections", resp.StatusCode, asked.Load())
	}
	if resp, _ := gatewaytest.Do(t, g.WSAddr(), "GET", path, ""); resp.StatusCode != 404 {
		t.Errorf("on the ws address: status %d", resp.StatusCode)
	}
	if resp, _ := gatewaytest.Do(t, g.BaseAddr(), "OPTIONS", path, ""); !strings.Contains(resp.Header.Get("Access-Control-Allow-Headers"), "Last-Event-ID") {
		t.Errorf("OPTIONS: %v", resp.Header)
	}
	deps.Stream = nil
	o.Market = wire.Rate{PerMinute: 60, Burst: 20}
	if resp, _ := gatewaytest.Do(t, start(t, o, b, deps).BaseAddr(), "GET", path, ""); resp.StatusCode != 404 {
		t.Errorf("without a handler: status %d", resp.StatusCode)
	}
}
