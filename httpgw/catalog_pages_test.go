package httpgw

import (
	"bytes"
	"encoding/json"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"

	"blockdesk/catalog"
	"blockdesk/httpgw/gatewaytest"
	marketapi "blockdesk/httpgw/market"
	"blockdesk/httpgw/site"
	"blockdesk/httpgw/wire"
)

// catalogPaths has every path of a catalog document by its main path, with the
// addresses that serve it.
func catalogPaths() map[string][]string {
	all := map[string][]string{marketapi.PathSchemas: {"/schemas.json"}}
	for _, d := range catalog.Documents() {
		all[marketapi.PathMarket+d.Name] = d.Files
	}
	for _, w := range catalog.WellKnowns() {
		all[marketapi.PathWellKnown+w.File] = nil
	}
	return all
}

// TestCatalogFilesAreOneDocument: every static file has the bytes and the ETag of its
// document on both addresses, and is not on the WebSocket's address.
func TestCatalogFilesAreOneDocument(t *testing.T) {
	b := gatewaytest.NewBooks(t)
	g := start(t, testOptions(b), b, testDependencies())
	both := []net.Addr{g.BaseAddr(), g.APIAddr()}
	paths := catalogPaths()
	for _, first := range slices.Sorted(maps.Keys(paths)) {
		resp, want := gatewaytest.Do(t, both[0], "GET", first, "")
		if resp.StatusCode != 200 || !json.Valid(want) || resp.Header.Get("Content-Type") != wire.JSONType {
			t.Errorf("%s: status %d %s: %s", first, resp.StatusCode, resp.Header.Get("Content-Type"), want)
			continue
		}
		for _, path := range append([]string{first}, paths[first]...) {
			for _, addr := range both {
				other, body := gatewaytest.Do(t, addr, "GET", path, "")
				if !bytes.Equal(body, want) || other.Header.Get("ETag") != resp.Header.Get("ETag") {
					t.Errorf("%s differs from %s", path, first)
				}
				if again, _ := gatewaytest.Do(t, addr, "GET", path, "If-None-Match: "+other.Header.Get("ETag")+"\r\n"); again.StatusCode != 304 {
					t.Errorf("%s with its ETag: status %d", path, again.StatusCode)
				}
			}
			if resp, _ := gatewaytest.Do(t, g.WSAddr(), "GET", path, ""); resp.StatusCode != 404 {
				t.Errorf("%s on the ws address: status %d", path, resp.StatusCode)
			}
		}
	}
	for path, of := range map[string]string{"/status": "status", "/proof": "proof", "/pairs": "pairs"} {
		_, want := gatewaytest.Do(t, both[1], "GET", marketapi.PathMarket+of, "")
		if _, body := gatewaytest.Do(t, both[1], "GET", path, ""); !bytes.Equal(body, want) {
			t.Errorf("%s on the api address differs from %s", path, of)
		}
		if resp, _ := gatewaytest.Do(t, both[0], "GET", path, ""); resp.StatusCode != 404 {
			t.Errorf("%s on the base address: status %d", path, resp.StatusCode)
		}
	}
}

// TestCatalogIsDescribed: documents of any facts conform to the specification and to
// their own schema.
func TestCatalogIsDescribed(t *testing.T) {
	for _, facts := range []*catalog.Facts{{Service: catalog.Service{Network: catalog.ExecutionNetwork}}, gatewaytest.Facts()} {
		deps := testDependencies()
		deps.Facts = func() *catalog.Facts { return facts }
		c := newConformingOf(t, withDesk(deps), nil)
		for path := range catalogPaths() {
			c.send(t, path, "GET "+path+" HTTP/1.1\r\nHost: test\r\n\r\n", 200)
		}
	}
}

// withDesk adds the scripted desk that newConformingOf needs.
func withDesk(deps Dependencies) Dependencies {
	deps.Desk = &gatewaytest.ScriptedDesk{Current: gatewaytest.FixedView()}
	return deps
}

// TestPool: a pool by its address; unknown addresses.
func TestPool(t *testing.T) {
	c := newConformingOf(t, withDesk(testDependencies()), nil)
	get := func(segment string, status int) []byte {
		return c.send(t, marketapi.PathPools+marketapi.PoolSegment, "GET "+marketapi.PathPools+segment+" HTTP/1.1\r\nHost: test\r\n\r\n", status).Body
	}
	if body := get(gatewaytest.Pool, 200); !bytes.Contains(body, []byte(`"pool_id":"`+gatewaytest.Pool+`"`)) {
		t.Errorf("the pool is %s", body)
	}
	unread := gatewaytest.Facts()
	unread.Pairs[0].Pool.Slot = 0
	deps := testDependencies()
	deps.Facts = func() *catalog.Facts { return unread }
	early := newConformingOf(t, withDesk(deps), nil)
	a := early.send(t, marketapi.PathPools+marketapi.PoolSegment, "GET "+marketapi.PathPools+gatewaytest.Pool+" HTTP/1.1\r\nHost: test\r\n\r\n", 503)
	if a.Code() != wire.CodeChainUnavailable || a.Header.Get("Retry-After") == "" {
		t.Errorf("a pool that was not read: %s", a.Body)
	}
	for _, segment := range []string{"x", strings.ToLower(gatewaytest.Pool), strings.Repeat("x", wire.MaxSegment)} {
		if body := get(segment, 404); !bytes.Contains(body, []byte(wire.CodeUnknownPool)) {
			t.Errorf("%s: %s", segment, body)
		}
	}
}

// TestManifestIsWhole: the integration manifest has every market read and every static
// file, and nothing else.
func TestManifestIsWhole(t *testing.T) {
	deps := testDependencies()
	deps.Desk = &gatewaytest.ScriptedDesk{Current: gatewaytest.FixedView()}
	w := newWriterOf(t, deps, func(o *Options) { o.Specification = gatewaytest.Specification(t) })
	want := map[string]bool{}
	for _, row := range w.g.routes(deps) {
		file := strings.HasSuffix(row.Path, ".json") && strings.Count(row.Path, "/") == 1
		if row.On&wire.OnBase != 0 && row.Method == wire.MethodGet && (row.Group == wire.GroupMarket || file) {
			want[row.Path] = true
		}
	}
	var manifest struct {
		Documents, Reads []struct {
			URL   string
			Files []string
		}
	}
	facts := gatewaytest.Facts()
	if err := json.Unmarshal(catalog.Encode(catalog.IntegrationManifest(facts, "")), &manifest); err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, row := range append(manifest.Documents, manifest.Reads...) {
		for _, url := range append(row.Files, row.URL) {
			path, _, _ := strings.Cut(strings.TrimPrefix(url, "http://base"), "?")
			// The manifest has a link where the routes have a template.
			for link, template := range map[string]string{"SLUSD_USDC": marketapi.PairSegment, facts.Pairs[0].Pool.Address: marketapi.PoolSegment} {
				path = strings.Replace(path, "/"+link, "/"+template, 1)
			}
			listed[path] = true
		}
	}
	if got, want := slices.Sorted(maps.Keys(listed)), slices.Sorted(maps.Keys(want)); !slices.Equal(got, want) {
		t.Errorf("listed are\n%v, want\n%v", got, want)
	}
}

// TestWalletPage: the page has the content of the documents, escapes configured names,
// and runs only the service's own script.
func TestWalletPage(t *testing.T) {
	facts := gatewaytest.Facts()
	facts.Tokens[0].Accounts = []catalog.Account{
		{Address: "Reserve", Amount: 1_234_567_500_000, Role: catalog.GuaranteeReserve, Label: `<b>"reserve"`, Slot: 7},
	}
	deps := testDependencies()
	deps.Facts = func() *catalog.Facts { return facts }
	b := gatewaytest.NewBooks(t)
	g := start(t, testOptions(b), b, deps)
	resp, body := gatewaytest.Do(t, g.BaseAddr(), "GET", site.PathWallet, "")
	text := string(body)
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != wire.HTMLType || resp.Header.Get("ETag") == "" {
		t.Fatalf("status %d %v", resp.StatusCode, resp.Header)
	}
	for _, want := range []string{
		"test &lt;&amp;&gt; market", "a &#34;desk&#34;", "SLUSDmint1111", "not configured", "1.000000000", "no price", "1,234,567.5 SLUSD",
		"guarantee_reserve", "&lt;b&gt;&#34;reserve&#34;", `href="http://base/api/v1/market/wallet-index"`, "2026-11-21T",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %s:\n%s", want, text)
		}
	}
	policy := resp.Header.Get("Content-Security-Policy")
	if strings.Count(text, "<script") != 1 || !strings.Contains(text, `<script type="module" src="/board/wallet.js"></script>`) ||
		strings.Contains(text, `<b>"`) || strings.Contains(text, "style=") || !strings.HasPrefix(policy, "default-src 'none'; script-src 'self'; ") {
		t.Errorf("the page is open to scripts: %s\n%s", policy, text)
	}
	if resp, _ := gatewaytest.Do(t, g.APIAddr(), "GET", site.PathWallet, ""); resp.StatusCode != 404 {
		t.Errorf("on the api address: status %d", resp.StatusCode)
	}
}

// TestNoFacts: without facts only the schemas are served.
func TestNoFacts(t *testing.T) {
	b := gatewaytest.NewBooks(t)
	deps := testDependencies()
	deps.Facts = nil
	g := start(t, testOptions(b), b, deps)
	for path, want := range map[string]int{
		marketapi.PathMarket + "status": 404, "/market.json": 404, marketapi.PathCoinGecko + "orderbook": 404, marketapi.PathSchemas: 200, marketapi.PathMarket + "oracle/heartbeat": 200,
	} {
		if resp, _ := gatewaytest.Do(t, g.BaseAddr(), "GET", path, ""); resp.StatusCode != want {
			t.Errorf("%s: status %d, want %d", path, resp.StatusCode, want)
		}
	}
}
