package httpgw

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"blockdesk/httpgw/gatewaytest"
	"blockdesk/httpgw/site"
	"blockdesk/httpgw/wire"
)

// rfqReads has the RFQ paths of docs/specification.md 4.1 and 4.3 with their
// addresses.
var rfqReads = []struct {
	path string
	on   wire.Surface
}{
	{"/api/v1/rfq/status", wire.OnBase | wire.OnAPI},
	{"/api/v1/rfq/current-sellable-ticket", wire.OnBase | wire.OnAPI},
	{"/api/v1/rfq/market-tickets", wire.OnBase | wire.OnAPI},
	{"/api/v1/rfq/market-tickets.compact", wire.OnBase | wire.OnAPI},
	{"/api/v1/rfq/levels", wire.OnBase | wire.OnAPI},
	{"/api/v1/rfq/pairs", wire.OnBase | wire.OnAPI},
	{"/api/v1/rfq/tokens", wire.OnBase | wire.OnAPI},
	{"/api/v1/rfq/rails", wire.OnBase | wire.OnAPI},
	{"/api/v1/rfq/robot-manifest", wire.OnBase | wire.OnAPI},
	{"/rfq-native/market-tickets.json", wire.OnBase},
	{"/rfq-native/current-sellable-ticket.json", wire.OnBase},
	{"/.well-known/svc-rfq.json", wire.OnBase | wire.OnAPI},
	{"/api/v1/exchange/board", wire.OnBase},
	{"/api/v1/dvp/status", wire.OnBase},
}

// startDesk runs a gateway whose desk has the fixed view, on a stopped clock.
func startDesk(t *testing.T, mend func(*Options)) *Gateway {
	t.Helper()
	b := gatewaytest.NewBooks(t)
	o := testOptions(b)
	o.Now = gatewaytest.NewDeskClock().Now
	if mend != nil {
		mend(&o)
	}
	deps := testDependencies()
	deps.Desk = gatewaytest.NewViewDesk(gatewaytest.FixedView())
	return start(t, o, b, deps)
}

// TestRFQRoutes drives each read on each address: body, ETag, 304, gzip, HEAD,
// and the methods that it does not take.
func TestRFQRoutes(t *testing.T) {
	g := startDesk(t, nil)
	for _, row := range rfqReads {
		for on, addr := range map[wire.Surface]net.Addr{wire.OnBase: g.BaseAddr(), wire.OnAPI: g.APIAddr(), wire.OnWS: g.WSAddr()} {
			where := wire.SurfaceNames[on] + " " + row.path
			get, body := gatewaytest.Do(t, addr, "GET", row.path, "")
			if row.on&on == 0 {
				if get.StatusCode != 404 {
					t.Errorf("%s: status %d", where, get.StatusCode)
				}
				continue
			}
			if get.StatusCode != 200 || get.Header.Get("Content-Type") != wire.JSONType || !bytes.HasPrefix(body, []byte(`{"ok":true,`)) {
				t.Errorf("%s: status %d: %.80s", where, get.StatusCode, body)
				continue
			}
			checkHeaders(t, where, get.Header)
			etag := get.Header.Get("ETag")
			if len(etag) < 10 || etag[0] != '"' {
				t.Errorf("%s: ETag %q", where, etag)
			}
			for _, method := range []string{"GET", "HEAD"} {
				resp, rest := gatewaytest.Do(t, addr, method, row.path, "If-None-Match: "+etag+"\r\n")
				if resp.StatusCode != 304 || len(rest) != 0 || resp.Header.Get("ETag") != etag {
					t.Errorf("%s: %s again: status %d", where, method, resp.StatusCode)
				}
			}
			head, none := gatewaytest.Do(t, addr, "HEAD", row.path, "")
			if head.StatusCode != 200 || len(none) != 0 || head.ContentLength != int64(len(body)) || head.Header.Get("ETag") != etag {
				t.Errorf("%s: HEAD: status %d length %d", where, head.StatusCode, head.ContentLength)
			}
			checkPacked(t, where, addr, row.path, body, etag)
			if post, _ := gatewaytest.Do(t, addr, "POST", row.path, "Content-Length: 0\r\n"); post.StatusCode != 405 || post.Header.Get("Allow") != "GET, HEAD, OPTIONS" {
				t.Errorf("%s: POST: status %d Allow %q", where, post.StatusCode, post.Header.Get("Allow"))
			}
		}
	}
}

// checkPacked reads a document with gzip, which is used from wire.GzipMin on.
func checkPacked(t *testing.T, where string, addr net.Addr, path string, body []byte, etag string) {
	t.Helper()
	resp, got := gatewaytest.Do(t, addr, "GET", path, "Accept-Encoding: gzip\r\n")
	if len(body) < wire.GzipMin {
		if resp.Header.Get("Content-Encoding") != "" || !bytes.Equal(got, body) {
			t.Errorf("%s: a short body in %q", where, resp.Header.Get("Content-Encoding"))
		}
		return
	}
	if resp.Header.Get("Content-Encoding") != "gzip" || resp.Header.Get("ETag") == etag {
		t.Errorf("%s: encoding %q ETag %s", where, resp.Header.Get("Content-Encoding"), resp.Header.Get("ETag"))
		return
	}
	z, err := gzip.NewReader(bytes.NewReader(got))
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := io.ReadAll(z); err != nil || !bytes.Equal(plain, body) {
		t.Errorf("%s: unpacks to another body: %v", where, err)
	}
}

// TestOneBook: the mirror, the registry and the native surface serve the same book.
func TestOneBook(t *testing.T) {
	g := startDesk(t, nil)
	for _, paths := range [][2]string{
		{"/api/v1/rfq/market-tickets", "/rfq-native/market-tickets.json"},
		{"/api/v1/rfq/current-sellable-ticket", "/rfq-native/current-sellable-ticket.json"},
	} {
		_, mirror := gatewaytest.Do(t, g.BaseAddr(), "GET", paths[0], "")
		_, registry := gatewaytest.Do(t, g.APIAddr(), "GET", paths[0], "")
		_, native := gatewaytest.Do(t, g.BaseAddr(), "GET", paths[1], "")
		if !bytes.Equal(mirror, registry) || !bytes.Equal(mirror, native) {
			t.Errorf("%s: the surfaces differ", paths[0])
		}
	}
}

// TestNoDesk: without a desk its routes do not exist and are not described.
func TestNoDesk(t *testing.T) {
	b := gatewaytest.NewBooks(t)
	g := start(t, testOptions(b), b, testDependencies())
	for _, row := range rfqReads {
		if resp, _ := gatewaytest.Do(t, g.BaseAddr(), "GET", row.path, ""); resp.StatusCode != 404 {
			t.Errorf("%s: status %d", row.path, resp.StatusCode)
		}
	}
	if _, body := gatewaytest.Do(t, g.BaseAddr(), "GET", "/", ""); bytes.Contains(body, []byte(`"rfq":`)) {
		t.Errorf("promised: %s", body)
	}
}

// TestRFQDescribed: GET / lists every RFQ read in its group.
func TestRFQDescribed(t *testing.T) {
	g := startDesk(t, func(o *Options) { o.URLs.Base = "https://desk.example" })
	_, body := gatewaytest.Do(t, g.BaseAddr(), "GET", "/", "")
	var d site.ServiceDescription
	if err := json.Unmarshal(body, &d); err != nil {
		t.Fatal(err)
	}
	for _, row := range rfqReads {
		in := wire.GroupRFQ
		switch {
		case strings.HasPrefix(row.path, "/.well-known"):
			in = wire.GroupDiscovery
		case strings.HasSuffix(row.path, "board"):
			in = wire.GroupBoard
		case strings.HasSuffix(row.path, "dvp/status"):
			in = wire.GroupDesk
		}
		if line := "GET https://desk.example" + row.path; !slices.Contains(d.Endpoints[in], line) {
			t.Errorf("%s lacks %s", in, line)
		}
	}
}

// TestRFQReadsShareTheLimit: RFQ reads and market data share a bucket over both
// addresses.
func TestRFQReadsShareTheLimit(t *testing.T) {
	g := startDesk(t, func(o *Options) {
		o.NoLimits, o.Market = false, wire.Rate{PerMinute: 1, Burst: 2}
		o.Clock = func() int64 { return int64(time.Hour) }
	})
	for i, c := range []struct {
		addr   net.Addr
		path   string
		status int
	}{
		{g.BaseAddr(), "/api/v1/rfq/levels", 200},
		{g.APIAddr(), "/api/v1/market/symbols", 200},
		{g.BaseAddr(), "/api/v1/rfq/market-tickets.compact", 429},
	} {
		if resp, _ := gatewaytest.Do(t, c.addr, "GET", c.path, ""); resp.StatusCode != c.status {
			t.Errorf("read %d: status %d, want %d", i, resp.StatusCode, c.status)
		}
	}
}

// TestTicketsWithoutDesk: without a desk there are no tickets.
func TestTicketsWithoutDesk(t *testing.T) {
	if seq, at := (&Gateway{}).Tickets(nil); seq != 0 || at != 0 {
		t.Errorf("without a desk: seq %d at %d", seq, at)
	}
}
