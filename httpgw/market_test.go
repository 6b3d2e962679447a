package httpgw

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"blockdesk/engine"
	"blockdesk/internal/ratelimit"
)

// TestQueries: what each query answers, on the wire.
func TestQueries(t *testing.T) {
	b := newBooks(t)
	g := start(t, testOptions(b), b, testDoors())
	for _, c := range []struct {
		target      string
		code, field string
	}{
		{"depth?symbol=SLUSD/USDC", "", ""},
		{"depth?symbol=SLUSD%2FUSDC&limit=1", "", ""},
		{"depth?limit=100&symbol=92C/SLUSD", "", ""},
		{"depth?symbol=EMPTY/USDC&limit=0100", "", ""},
		{"depth?symbol=SLUSD/USDC&_=1732&callback=x", "", ""},
		{"depth?&&symbol=SLUSD/USDC&", "", ""},
		{"depth", codeMissingField, "symbol"},
		{"depth?symbol", codeMissingField, "symbol"},
		{"depth?symbol=", codeMissingField, "symbol"},
		{"depth?Symbol=SLUSD/USDC", codeMissingField, "symbol"},
		{"depth?symbol=SLUSD/USDC&symbol=SLUSD/USDC", codeInvalidField, "symbol"},
		{"depth?symbol=slusd/usdc", codeUnknownSymbol, "symbol"},
		{"depth?symbol=X/Y", codeUnknownSymbol, "symbol"},
		{"depth?symbol=SLUSD%2", codeUnknownSymbol, "symbol"},
		{"depth?symbol=SLUSD%zzUSDC", codeUnknownSymbol, "symbol"},
		{"depth?symbol=SLUSD/USDC%00", codeUnknownSymbol, "symbol"},
		{"depth?symbol=SLUSD+USDC", codeUnknownSymbol, "symbol"},
		{"depth?symbol=" + strings.Repeat("A", maxQueryValue+1), codeUnknownSymbol, "symbol"},
		{"depth?symbol=SLUSD/USDC&limit=0", codeInvalidLimit, "limit"},
		{"depth?symbol=SLUSD/USDC&limit=101", codeInvalidLimit, "limit"},
		{"depth?symbol=SLUSD/USDC&limit=", codeInvalidLimit, "limit"},
		{"depth?symbol=SLUSD/USDC&limit", codeInvalidLimit, "limit"},
		{"depth?symbol=SLUSD/USDC&limit=-1", codeInvalidLimit, "limit"},
		{"depth?symbol=SLUSD/USDC&limit=%2B5", codeInvalidLimit, "limit"},
		{"depth?symbol=SLUSD/USDC&limit=5.0", codeInvalidLimit, "limit"},
		{"depth?symbol=SLUSD/USDC&limit=1e1", codeInvalidLimit, "limit"},
		{"depth?symbol=SLUSD/USDC&limit=5&limit=6", codeInvalidLimit, "limit"},
		{"depth?symbol=SLUSD/USDC&limit=18446744073709551617", codeInvalidLimit, "limit"},
		{"depth?symbol=SLUSD/USDC&limit=999999999", codeInvalidLimit, "limit"},
		{"trades?symbol=SLUSD/USDC&limit=100", "", ""},
		{"trades?symbol=SLUSD/USDC&limit=101", codeInvalidLimit, "limit"},
		{"trades?limit=5", codeMissingField, "symbol"},
		{"ticker?symbol=92C/SLUSD", "", ""},
		{"ticker", codeMissingField, "symbol"},
		{"symbols?anything=goes", "", ""},
	} {
		resp, body := ask(t, g.APIAddr(), "GET", "/api/v1/market/"+c.target, "")
		if c.code == "" {
			if resp.StatusCode != 200 {
				t.Errorf("%s: status %d: %s", c.target, resp.StatusCode, body)
			}
			continue
		}
		if e := decodeError(t, body); resp.StatusCode != 400 || e.Code != c.code || e.Field != c.field {
			t.Errorf("%s: status %d code %s field %s, want 400 %s %s", c.target, resp.StatusCode, e.Code, e.Field, c.code, c.field)
		}
	}
}

// TestDepthLimits: each limit shows so many levels, and 50 is the default.
func TestDepthLimits(t *testing.T) {
	b := newBooks(t)
	m := newMarketPages(&marketOptions{Instruments: b.set, Views: b})
	for limit := 0; limit <= MaxDepth; limit++ {
		query, want := fmt.Sprintf("symbol=SLUSD/USDC&limit=%d", limit), limit
		if limit == 0 {
			query, want = "symbol=SLUSD/USDC", defaultDepth
		}
		p, bad := m.serveDepth([]byte(query))
		if bad != nil {
			t.Fatal(bad)
		}
		var d depthAnswer
		if err := json.Unmarshal(p.body, &d); err != nil {
			t.Fatal(err)
		}
		if len(d.Bids) != want || len(d.Asks) != want {
			t.Errorf("%s: %d bids %d asks, want %d", query, len(d.Bids), len(d.Asks), want)
		}
	}
}

// TestPagesAreRenderedOnce: one view, one page, the same bytes; a new view, new
// bytes and another ETag; no two (endpoint's view, limit) share an ETag.
func TestPagesAreRenderedOnce(t *testing.T) {
	b := newBooks(t)
	m := newMarketPages(&marketOptions{Instruments: b.set, Views: b})
	query := []byte("symbol=SLUSD/USDC&limit=20")
	get := func() *page {
		p, bad := m.serveDepth(query)
		if bad != nil {
			t.Fatal(bad)
		}
		return p
	}
	first := get()
	if get() != first {
		t.Error("rendered again for the same view")
	}
	// Limit 33 falls on the slot of 20.
	if _, bad := m.serveDepth([]byte("symbol=SLUSD/USDC&limit=33")); bad != nil {
		t.Fatal(bad)
	}
	again := get()
	if again == first || !bytes.Equal(again.body, first.body) || !bytes.Equal(again.etag, first.etag) {
		t.Error("a page that lost its slot must come back with the same bytes and ETag")
	}

	next := *fullView(0, 1042)
	next.EngineSeq++ // the depth is as before, but engine_seq is in the body
	b.views[0].Store(&next)
	if p := get(); bytes.Equal(p.body, first.body) || bytes.Equal(p.etag, first.etag) {
		t.Error("another view must have other bytes and another ETag")
	}

	seen := make(map[string]int)
	for limit := 1; limit <= MaxDepth; limit++ {
		p, _ := m.serveDepth(fmt.Appendf(nil, "symbol=SLUSD/USDC&limit=%d", limit))
		if other, taken := seen[string(p.etag)]; taken {
			t.Fatalf("limits %d and %d share ETag %s", other, limit, p.etag)
		}
		seen[string(p.etag)] = limit
	}
}

// TestSlotsOfUsualLimits: the limits that people use do not push each other out.
func TestSlotsOfUsualLimits(t *testing.T) {
	var slots []int
	for _, limit := range []int{1, 5, 10, 20, 25, 50, 100} {
		if slices.Contains(slots, limit%limitSlots) {
			t.Errorf("limit %d shares a slot", limit)
		}
		slots = append(slots, limit%limitSlots)
	}
}

// TestSymbolsFollowStatus: a halt shows at once.
func TestSymbolsFollowStatus(t *testing.T) {
	b := newBooks(t)
	m := newMarketPages(&marketOptions{Instruments: b.set, Views: b})
	before, _ := m.serveSymbols(nil)
	if again, _ := m.serveSymbols(nil); again != before {
		t.Error("rendered again without a change")
	}
	b.views[1].Store(fullView(1, 8))
	if again, _ := m.serveSymbols(nil); again != before {
		t.Error("rendered again for a view of the same status")
	}
	halted := fullView(1, 9)
	halted.Status = engine.StatusHalted
	b.views[1].Store(halted)
	after, _ := m.serveSymbols(nil)
	if bytes.Equal(after.etag, before.etag) || !bytes.Contains(after.body, []byte(`"book_source":"mirrored","status":"halted"`)) {
		t.Errorf("after the halt: %s", after.body)
	}
}

// TestConditionalGet: ETag, If-None-Match in all its forms, gzip as another
// representation.
func TestConditionalGet(t *testing.T) {
	b := newBooks(t)
	g := start(t, testOptions(b), b, testDoors())
	const target = "/api/v1/market/depth?symbol=SLUSD/USDC&limit=100"
	get := func(headers string) (*http.Response, []byte) { return ask(t, g.BaseAddr(), "GET", target, headers) }

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
	b.views[0].Store(fullView(0, 1043))
	if resp, _ := get("If-None-Match: " + etag + "\r\n"); resp.StatusCode != 200 {
		t.Errorf("after a change: status %d", resp.StatusCode)
	}
}

func TestAcceptsGzip(t *testing.T) {
	for header, want := range map[string]bool{
		"": false, "gzip": true, "br, gzip": true, "gzip;q=0": false, "gzip; q=0.000": false, "gzip;q=0.1": true,
		"x-gzip": false, "deflate, gzip;q=1.0, *;q=0.5": true, "identity": false, ",,;,": false,
		"GZIP": true, "gzip;Q=0": false, "gzip;q": true,
	} {
		if acceptsGzip([]byte(header)) != want {
			t.Errorf("%q: want %t", header, want)
		}
	}
}

// TestReadersDuringChanges: while views change, every reader gets whole bodies
// whose ETag and seq belong together, and seq never falls.
func TestReadersDuringChanges(t *testing.T) {
	b := newBooks(t)
	m := newMarketPages(&marketOptions{Instruments: b.set, Views: b})
	const versions = 300
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		readers.Go(func() {
			last := uint64(0)
			for {
				p, bad := m.serveDepth([]byte("symbol=SLUSD/USDC&limit=10"))
				var d depthAnswer
				if bad != nil || json.Unmarshal(p.body, &d) != nil {
					t.Errorf("a broken body: %v", bad)
					return
				}
				if tag := fmt.Sprintf(`"e%s-%d-%d-10"`, d.Epoch[1:], d.EngineSeq, d.Seq); tag != string(p.etag) || d.Seq < last {
					t.Errorf("ETag %s on seq %d after %d", p.etag, d.Seq, last)
					return
				}
				last = d.Seq
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	for seq := range uint64(versions) {
		b.views[0].Store(fullView(0, 2000+seq))
	}
	close(stop)
	readers.Wait()
}

// TestDescription: exactly the members of part 2.4, and endpoints that answer.
func TestDescription(t *testing.T) {
	b := newBooks(t)
	o := testOptions(b)
	o.URLs.Base = "https://desk.example/"
	g := start(t, o, b, testDoors())
	_, body := ask(t, g.BaseAddr(), "GET", "/", "")
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
	var d description
	if err := json.Unmarshal(body, &d); err != nil {
		t.Fatal(err)
	}
	if d.Version != "1.1.0" || d.SDK != "/public-sdk/" || d.Qualification.Label == "" || d.Qualification.Nature == "" {
		t.Errorf("description %+v", d)
	}
	wantEndpoints := map[group][]string{
		groupMarket: {
			"GET https://desk.example/api/v1/market/symbols", "GET https://desk.example/api/v1/market/ticker",
			"GET https://desk.example/api/v1/market/depth", "GET https://desk.example/api/v1/market/trades",
			"GET https://desk.example/api/v1/market/klines", "GET https://desk.example/api/v1/market/candles",
			"GET https://desk.example/api/v1/market/oracle/heartbeat", "GET https://desk.example/api/v1/market/stream",
		},
		groupBoard:     {"GET https://desk.example/board"},
		groupWebSocket: {"GET ws://" + g.WSAddr().String() + "/ws/rfq", "GET http://" + g.APIAddr().String() + "/ws/rfq/health"},
	}
	for path := range catalogPaths() {
		in := groupMarket
		if strings.HasPrefix(path, pathWellKnown) {
			in = groupDiscovery
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

// TestCachedReadAllocatesNothing: of ours, from the raw query to the page.
func TestCachedReadAllocatesNothing(t *testing.T) {
	b := newBooks(t)
	m := newMarketPages(&marketOptions{Instruments: b.set, Views: b})
	l := ratelimit.NewBuckets(ratelimit.Of(DefaultPerMinute, time.Minute, DefaultBurst), DefaultMaxClients, func() int64 { return 1 })
	for _, c := range []struct {
		query string
		read  func([]byte) (*page, *problem)
	}{
		{"symbol=SLUSD%2FUSDC&limit=50", m.serveDepth},
		{"symbol=SLUSD/USDC&limit=50", m.serveTrades},
		{"symbol=92C/SLUSD", m.serveTicker},
		{"", m.serveSymbols},
	} {
		query := []byte(c.query)
		if allocs := testing.AllocsPerRun(100, func() {
			if _, bad := c.read(query); bad != nil {
				t.Fatal(bad)
			}
			l.Take(ratelimit.Client{1})
		}); allocs != 0 {
			t.Errorf("%s: %.1f allocations", c.query, allocs)
		}
	}
	view := fullView(0, 1)
	buf := make([]byte, 0, 1<<16)
	if allocs := testing.AllocsPerRun(100, func() {
		buf = appendDepth(buf[:0], b.set.Get(0), view, MaxDepth)
	}); allocs != 0 {
		t.Errorf("rendering into room: %.1f allocations", allocs)
	}
}

// TestViewsBeforeTheFirst: an instrument without a view is an empty book.
func TestViewsBeforeTheFirst(t *testing.T) {
	b := newBooks(t)
	m := newMarketPages(&marketOptions{Instruments: b.set, Views: b})
	p, bad := m.serveDepth([]byte("symbol=EMPTY/USDC"))
	if bad != nil {
		t.Fatal(bad)
	}
	const want = `{"ok":true,"symbol":"EMPTY/USDC","epoch":"e0","seq":0,"engine_seq":0,"ts":null,"bids":[],"asks":[],` +
		`"source":"matched","slot":null}`
	if string(p.body) != want {
		t.Errorf("got %s", p.body)
	}
}
