package sdk

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"blockdesk/bench/server"
	"blockdesk/e2e/fixtest"
	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/sdk/openapitest"
	"blockdesk/service/demo"
	"blockdesk/service/operator"
)

// conformanceConfig is a desk with one pair that has a price, which it holds a
// million of, and one that waits for a book. Its limits are there and out of
// reach.
const conformanceConfig = `  market_data_burst: 1000000
  partner_per_minute: 60000000
  partner_burst: 1000000
  rfq_writes_per_minute: 60000000
  rfq_writes_burst: 1000000
  dvp_per_minute: 0
  handshake_per_minute: 0
rfq:
  pay_to: {USDC: PLaceho1derPaytoUSDCxxxxxxxxxxxxxxxxxxxxxxx, SOL: PLaceho1derPaytoSoLxxxxxxxxxxxxxxxxxxxxxxxx}
  sol_price_usd: "150"
  pairs:
    - {symbol: SLUSD/USDC, base_mint: PLaceho1derSLUSDmintxxxxxxxxxxxxxxxxxxxxxxx, base_decimals: 6, rails: [USDC, SOL],
       price_source: operator, reference_price_usd: "0.999", corridor_bps: 1000, max_age_s: 3600, inventory: "1000000"}
    - {symbol: 92C/SLUSD, base_mint: PLaceho1der92Cmintxxxxxxxxxxxxxxxxxxxxxxxxx, base_decimals: 6, rails: [USDC, SOL],
       price_source: book, via: SLUSD/USDC, corridor_bps: 1000, max_age_s: 3600, inventory: "1000000"}
`

// specified are the paths of the service description's 2.4, 4.1, 4.3, 4.4 and of the
// market data served so far, and where they are: b = base, a = api.
var specified = map[string]string{
	"GET /":                                             "ab",
	"GET /api/v1/market/symbols":                        "ab",
	"GET /api/v1/market/ticker":                         "ab",
	"GET /api/v1/market/depth":                          "ab",
	"GET /api/v1/market/trades":                         "ab",
	"GET /api/v1/market/klines":                         "ab",
	"GET /api/v1/market/candles":                        "ab",
	"GET /api/v1/market/oracle/heartbeat":               "ab",
	"GET /api/v1/market/stream":                         "ab",
	"GET /api/v1/market/openapi.json":                   "ab",
	"GET /public-sdk/openapi/svc_public_api_v1.json":    "ab",
	"GET /api/v1/rfq/status":                            "ab",
	"GET /api/v1/rfq/current-sellable-ticket":           "ab",
	"GET /api/v1/rfq/market-tickets":                    "ab",
	"GET /api/v1/rfq/market-tickets.compact":            "ab",
	"GET /api/v1/rfq/levels":                            "ab",
	"GET /api/v1/rfq/pairs":                             "ab",
	"GET /api/v1/rfq/tokens":                            "ab",
	"GET /api/v1/rfq/rails":                             "ab",
	"GET /api/v1/rfq/robot-manifest":                    "ab",
	"POST /api/v1/rfq/quote":                            "ab",
	"POST /api/v1/rfq/modular-claim-take":               "ab",
	"POST /api/v1/rfq/atomic-claim-ticket":              "ab",
	"POST /rfq-native/modular-claim-take":               "b",
	"POST /rfq-native/atomic-claim-ticket":              "b",
	"POST /rfq-native/settlement/verify-payment":        "b",
	"POST /api/v1/rfq/native/settlement/verify-payment": "b",
	"POST /api/v1/rfq/settlement/verify-payment":        "a",
	"GET /rfq-native/market-tickets.json":               "b",
	"GET /rfq-native/current-sellable-ticket.json":      "b",
	"GET /.well-known/svc-rfq.json":                     "ab",
	"GET /api/v1/exchange/board":                        "b",
	"GET /api/v1/dvp/status":                            "b",
	"GET /api/v1/dvp/handshake":                         "b",
	"POST /api/v1/dvp/handshake":                        "b",
	"POST /api/v1/dvp/build":                            "b",
	"POST /api/v1/dvp/submit":                           "b",
	"GET /api/v1/dvp/builds/{build_id}":                 "b",
	"GET /api/v1/rfq/claims/{claim_id}":                 "ab",
	"GET /ws/rfq/health":                                "a",
	"GET /openapi.json":                                 "ab",
	"GET /wallet":                                       "b",
	"GET /board":                                        "ab",
	"GET /docs":                                         "ab",
	"GET /status":                                       "a",
	"GET /proof":                                        "a",
	"GET /pairs":                                        "a",
}

// pagesForPeople are no JSON.
var pagesForPeople = []string{"/wallet", "/board", "/docs"}

const documentAlias = "/api/v1/market/openapi.json"

// Bodies that are right. T1-1 has 250,000 dollars left.
const (
	rightQuote   = `{"order_id":"T1","tranche_id":"T1-1","fill_usd":"1000","rail":"USDC"}`
	rightClaim   = `{"bot_wallet":"DXX33BoHM71kW196E4uPM1i2aFRPVo6aSuh5y2TyvzBo","order_id":"T1","tranche_id":"T1-1","fill_usd":"1000"}`
	rightPayment = `{"order_id":"T1","tranche_id":"T1-1","l1_signature":"EXAMPLEpaymentSignature1111111111111111111111111111111111111111111111111111111111111111"}`
)

// wrongQuotes are what the desk is asked for in vain: what replaces what in
// rightQuote, and the refusal. Those that break the schema say so.
var wrongQuotes = []struct {
	from, to     string
	status       int
	code, reason string
	schema       bool // the document refuses it too
}{
	{`"T1"`, `"T99"`, 404, "UNKNOWN_TICKET", "unknown_ticket", false},
	{`"T1"`, `"t1"`, 404, "UNKNOWN_TICKET", "unknown_ticket", true},
	{`T1-1`, `T1-9`, 404, "UNKNOWN_TICKET", "unknown_tranche", false},
	{`T1-1`, `T1`, 404, "UNKNOWN_TICKET", "unknown_tranche", true},
	{`"1000"`, `"500"`, 400, "INVALID_FIELD", "not_on_ladder", true},
	{`"1000"`, `1000.0`, 400, "INVALID_FIELD", "not_whole", false}, // JSON Schema takes it for 1000
	{`"1000"`, `-1000`, 400, "INVALID_FIELD", "not_whole", true},
	{`"1000"`, `true`, 400, "INVALID_FIELD", "wrong_type", true},
	{`"USDC"`, `"usdc"`, 400, "INVALID_FIELD", "unknown_rail", true},
	{`"USDC"`, `"BTC"`, 400, "INVALID_FIELD", "unknown_rail", true},
	{`"1000"`, `"1000000"`, 409, "CAPACITY_EXHAUSTED", "capacity_exhausted", false},
	{`T1`, `T2`, 409, "CAPACITY_EXHAUSTED", "ticket_withdrawn", false},
	{`T1`, `T3`, 409, "CAPACITY_EXHAUSTED", "ticket_expired", false},
	{`T1`, `T4`, 409, "REFUS_DVP", "price_unavailable", false},
	{`T1-1","fill_usd":"1000`, `T1-2","fill_usd":"2500000`, 409, "REFUS_DVP", "inventory", false},
	{`"T1","tranche_id":"T1-1","fill_usd":"1000","rail":"USDC`, `"T5","tranche_id":"T5-1","fill_usd":"1000","rail":"SOL`, 400, "INVALID_FIELD", "rail_not_accepted", false},
}

// conformance is a running service whose every answer is held to the document
// that it serves.
type conformance struct {
	t     *testing.T
	s     *server.Server
	d     *openapitest.Document
	all   []string // addresses: base, api, ws
	http  *http.Client
	desk  *operator.Client
	token string          // of the demo's first wallet, for DvP
	codes map[string]int  // answers seen, by code; "" = no error
	done  map[string]bool // operations that have answered 2xx
}

// TestConformance drives every path of the description on every surface, and
// compares what comes back with the OpenAPI document.
func TestConformance(t *testing.T) {
	runtest.SkipUnderRace(t, "it asks one thing after the other, thousands of times; the tests of httpgw race the same code")
	t.Parallel()
	config := strings.Replace(programtest.Config(t, conformanceConfig), "market_data_per_minute: 0", "market_data_per_minute: 60000000", 1)
	s := programtest.Start(t, config)
	token, err := operator.LocalToken(s.DataDir())
	if err != nil {
		t.Fatal(err)
	}
	c := &conformance{
		t: t, s: s, codes: map[string]int{}, done: map[string]bool{},
		all:  []string{s.Addresses.Base, s.Addresses.API, strings.Replace(s.Addresses.WS, "ws://", "http://", 1)},
		http: &http.Client{Transport: &http.Transport{DisableCompression: true}, Timeout: runtest.HangTimeout},
		desk: &operator.Client{URL: s.Addresses.Admin, Token: token, HTTP: http.DefaultClient},
	}
	t.Cleanup(c.http.CloseIdleConnections)
	c.readDocument()
	c.fillDesk()
	c.fillBook()
	t.Run("handshake", func(t *testing.T) { c.token = c.with(t).handshake() })
	t.Run("complete", func(t *testing.T) { c.with(t).complete() })
	t.Run("quotes", func(t *testing.T) { c.with(t).quotes() })
	t.Run("examples", func(t *testing.T) { c.with(t).examples() })
	t.Run("keys", func(t *testing.T) { c.with(t).keys() })
	c.operate("/desk/locks", map[string]any{"rail": "SOL", "locked": true, "reason": `the payer "rotates" \ soon`})
	t.Run("schemas", func(t *testing.T) { c.with(t).schemas() })
	t.Run("links", func(t *testing.T) { c.with(t).links() })
	t.Run("parameters", func(t *testing.T) { c.with(t).everywhere((*conformance).parameters) })
	t.Run("reads", func(t *testing.T) { c.with(t).everywhere((*conformance).reads) })
	t.Run("writes", func(t *testing.T) { c.with(t).everywhere((*conformance).writes) })
	t.Run("large", func(t *testing.T) { c.with(t).large() })
	t.Run("books", func(t *testing.T) { c.with(t).books() })
	t.Run("agreed", func(t *testing.T) { c.with(t).agreed() })
	t.Run("unknown", func(t *testing.T) { c.with(t).unknown() })
	t.Run("seen", func(t *testing.T) { c.with(t).seen() })
}

// with is c for a part of the test.
func (c *conformance) with(t *testing.T) *conformance {
	part := *c
	part.t = t
	return &part
}

// send sends a request and holds the answer to the document. path is as the
// document has it; target what is sent of it.
func (c *conformance) send(method, address, path, target, body string, headers ...string) *openapitest.Answer {
	c.t.Helper()
	a := c.exchange(method, address, path, target, body, headers...)
	if err := c.d.CheckAnswer(a); err != nil {
		c.t.Errorf("%s%s: %v", address, target, err)
	}
	c.codes[a.Code()]++
	if a.Status < 300 && method != http.MethodOptions && method != http.MethodHead {
		c.done[method+" "+path] = true
	}
	return a
}

// exchange sends a request; headers are names and values in turn.
func (c *conformance) exchange(method, address, path, target, body string, headers ...string) *openapitest.Answer {
	c.t.Helper()
	a, err := c.roundTrip(c.http, method, address, path, target, body, headers...)
	if err != nil {
		c.t.Fatal(err)
	}
	return a
}

func (c *conformance) roundTrip(client *http.Client, method, address, path, target, body string, headers ...string) (*openapitest.Answer, error) {
	req, err := http.NewRequestWithContext(c.t.Context(), method, address+target, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	a := &openapitest.Answer{Method: method, Path: path, Status: resp.StatusCode, Header: resp.Header}
	if a.Status != http.StatusSwitchingProtocols {
		a.Body, err = io.ReadAll(resp.Body)
	}
	return a, err
}

// expect is send of a request that must get this status, code and reason.
func (c *conformance) expect(status int, code, reason, method, address, path, target, body string, headers ...string) *openapitest.Answer {
	c.t.Helper()
	a := c.send(method, address, path, target, body, headers...)
	var got struct{ Code, Reason string }
	if status >= 400 {
		if err := json.Unmarshal(a.Body, &got); err != nil {
			c.t.Error(err)
		}
	}
	if a.Status != status || got.Code != code || got.Reason != reason {
		c.t.Errorf("%s %s%s %.200s: status %d %s %s, want %d %s %s", method, address, target, body, a.Status, got.Code, got.Reason, status, code, reason)
	}
	if limited := status == 429 || status == 503; limited != (a.Header.Get("Retry-After") != "") {
		c.t.Errorf("%s %s%s: status %d with Retry-After %q", method, address, target, a.Status, a.Header.Get("Retry-After"))
	}
	return a
}

// readDocument takes the document from the service itself.
func (c *conformance) readDocument() {
	text := c.exchange("GET", c.all[0], programtest.DocumentPath, programtest.DocumentPath, "").Body
	var err error
	if c.d, err = openapitest.Parse(text); err == nil {
		err = c.d.Check()
	}
	if err != nil {
		c.t.Fatal(err)
	}
	if alias := c.exchange("GET", c.all[1], documentAlias, documentAlias, ""); !bytes.Equal(alias.Body, text) {
		c.t.Error("the api address has another document")
	}
}

// operate has the operator do something.
func (c *conformance) operate(path string, in any) {
	c.t.Helper()
	if _, err := c.desk.Do(c.t.Context(), path, in); err != nil {
		c.t.Fatal(err)
	}
}

// fillDesk posts a ticket of each kind: T1 sells, T2 is withdrawn, T3 expires,
// T4 has no price, T5 takes USDC alone.
func (c *conformance) fillDesk() {
	later := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	for _, ticket := range []operator.TicketPost{
		{Pair: programtest.Symbol, Label: "Block A", Tranches: []string{"250000", "5000000"}, ExpiresAt: later},
		{Pair: programtest.Symbol, Label: "Block B", Tranches: []string{"1000"}},
		{Pair: programtest.Symbol, Label: "Block C", Tranches: []string{"1000"}, ExpiresAt: "soon"},
		{Pair: programtest.OtherSymbol, Label: `Block "D" \`, Tranches: []string{"1000"}},
		{Pair: programtest.Symbol, Label: "Block E", Tranches: []string{"1000.5"}, Rails: []string{"USDC"}, ReferencePriceUSD: "1.01"},
	} {
		if ticket.ExpiresAt != "soon" {
			c.operate("/desk/tickets", ticket)
			continue
		}
		await.NoError(c.t, "a ticket that is posted before it expires", func() error {
			ticket.ExpiresAt = time.Now().Add(1200 * time.Millisecond).UTC().Format(time.RFC3339Nano)
			_, err := c.desk.Do(c.t.Context(), "/desk/tickets", ticket)
			return err
		})
	}
	c.operate("/desk/tickets/T2/withdraw", struct{}{})
	await.True(c.t, "T3 to expire", func() bool {
		return strings.Contains(programtest.Get(c.t, c.all[0]+"/api/v1/rfq/market-tickets"), `"state":"expired"`)
	})
}

// fillBook leaves a book with both sides and a trade.
func (c *conformance) fillBook() {
	maker, taker := fixtest.LogOn(c.t, c.s.Addresses.FIX, programtest.FirmA), fixtest.LogOn(c.t, c.s.Addresses.FIX, programtest.FirmB)
	maker.Order("m1", "2", "5", "1.01")
	maker.Order("m2", "1", "7", "0.99")
	maker.Expect(map[int]string{11: "m1", 150: "0"})
	maker.Expect(map[int]string{11: "m2", 150: "0"})
	taker.Order("t1", "1", "2", "1.02")
	taker.Expect(map[int]string{11: "t1", 150: "0"})
	taker.Expect(map[int]string{11: "t1", 150: "F"})
	await.True(c.t, "the trade on REST", func() bool {
		return strings.Contains(programtest.Get(c.t, c.all[0]+"/api/v1/market/trades?symbol="+programtest.Symbol), `"trade_id"`)
	})
}

// complete: the document has what the description has, on the same addresses.
func (c *conformance) complete() {
	has := map[string]string{}
	for _, o := range c.d.Operations() {
		on := ""
		for _, address := range c.all[:2] {
			if slices.Contains(urls(&o), address) {
				on = string("ba"[slices.Index(c.all, address)]) + on
			}
		}
		has[o.Method+" "+o.Path] = on
		for _, url := range urls(&o) {
			if !slices.Contains(c.all, url) {
				c.t.Errorf("%s %s has the server %s, which nobody is", o.Method, o.Path, url)
			}
		}
	}
	for line, on := range specifiedMarket() {
		if has[line] != on {
			c.t.Errorf("%s is described on %q, want %q", line, has[line], on)
		}
	}
	for line, on := range specified {
		if has[line] != on {
			c.t.Errorf("%s is described on %q, want %q", line, has[line], on)
		}
	}
}

// urls are those of an operation's servers, as http.
func urls(o *openapitest.Operation) (all []string) {
	for _, url := range o.Servers {
		all = append(all, strings.Replace(url, "ws://", "http://", 1))
	}
	return all
}

// segments stand for what is in braces: things that there are, or could be.
var segments = strings.NewReplacer(
	"{claim_id}", "C0000000000001", "{build_id}", "B0000000000001", "{pool_address}", "Poo1", "{market_pair}", "SLUSD_USDC",
)

// everywhere drives every operation on the addresses that have it; on the others
// there is no such route.
func (c *conformance) everywhere(drive func(c *conformance, o *openapitest.Operation, address string)) {
	for _, o := range c.d.Operations() {
		for _, address := range c.all {
			if slices.Contains(urls(&o), address) {
				drive(c, &o, address)
				continue
			}
			target := segments.Replace(o.Path)
			for _, method := range []string{"GET", "POST", "OPTIONS"} {
				if err := c.d.CheckUnknown(c.exchange(method, address, o.Path, target, "")); err != nil {
					c.t.Errorf("%s %s%s: %v", method, address, target, err)
				}
			}
		}
	}
}

// methods: OPTIONS lists the methods, and no other is accepted.
func (c *conformance) methods(o *openapitest.Operation, address, target string) {
	c.send("OPTIONS", address, o.Path, target, "", "Origin", "https://elsewhere.example")
	taken := map[string]bool{}
	for _, other := range c.d.Operations() {
		if other.Path == o.Path {
			taken[other.Method], taken["HEAD"] = true, taken["HEAD"] || other.Method == "GET"
		}
	}
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} {
		if !taken[method] {
			if a := c.send(method, address, o.Path, target, ""); a.Status != http.StatusMethodNotAllowed {
				c.t.Errorf("%s %s%s: status %d", method, address, target, a.Status)
			}
		}
	}
}

// goodQueries are what a read may be asked, by path; others take none.
func goodQueries(path string) []string {
	const symbol = "?symbol=" + programtest.Symbol
	switch path {
	case "/api/v1/market/ticker":
		return []string{symbol, "?symbol=92C%2FSLUSD"}
	case "/api/v1/market/klines":
		return []string{symbol, symbol + "&limit=1", "?limit=1440&interval=1d&symbol=92C%2fSLUSD", symbol + "&timeframe=1h", symbol + "&before=1"}
	case "/api/v1/market/candles", "/candles.json":
		return []string{"", symbol, "?timeframe=1h&limit=120", "?interval=1h", "?before=1795312800000"}
	case "/udf/symbols":
		return []string{symbol, "?symbol=X/Y"}
	case "/udf/history":
		return []string{symbol + "&resolution=60", symbol + "&resolution=1D&countback=1", symbol}
	case "/api/v1/rfq/trades":
		return []string{symbol, symbol + "&limit=1", symbol + "&before=1"}
	case "/api/v1/market/depth", "/api/v1/market/trades":
		return []string{symbol, symbol + "&limit=1", "?limit=100&symbol=92C%2fSLUSD"}
	case "/trades.json":
		return []string{"", symbol, "?limit=1", "?limit=100&symbol=92C%2fSLUSD"}
	}
	if queries := partnerQueries(path); queries != nil {
		return queries
	}
	return []string{"", "?other=1"}
}

// knownParameters are the reads of market data that refuse a parameter that they do not
// know, so that a misspelt one is not ignored.
var knownParameters = []string{
	"/api/v1/market/ticker", "/api/v1/market/depth", "/api/v1/market/trades", "/api/v1/market/klines", "/api/v1/market/candles",
	"/trades.json", "/candles.json", "/api/v1/rfq/trades",
}

// badQueries are what it may not, with the code and reason of the refusal.
func badQueries(path string) map[string][2]string {
	bad := map[string][2]string{}
	switch path {
	case "/api/v1/market/depth", "/api/v1/market/trades", "/api/v1/rfq/trades":
		for _, limit := range []string{"0", "-1", "", "x", "1.0", "1001", "9999999999"} {
			bad["?symbol="+programtest.Symbol+"&limit="+limit] = [2]string{"INVALID_LIMIT", ""}
		}
		bad["?symbol="+programtest.Symbol+"&limit=1&limit=1"] = [2]string{"INVALID_LIMIT", "repeated"}
		fallthrough
	case "/api/v1/market/ticker":
		bad[""] = [2]string{"MISSING_FIELD", ""}
		bad["?symbol="] = [2]string{"MISSING_FIELD", ""}
		bad["?symbol=A/B"] = [2]string{"UNKNOWN_SYMBOL", ""}
		bad["?symbol=slusd/usdc"] = [2]string{"UNKNOWN_SYMBOL", ""}
		bad["?symbol=%zz"] = [2]string{"UNKNOWN_SYMBOL", ""}
		bad["?symbol="+programtest.Symbol+"&symbol="+programtest.Symbol] = [2]string{"INVALID_FIELD", "repeated"}
	}
	for query, want := range badPartnerQueries(path) {
		bad[query] = want
	}
	if slices.Contains(knownParameters, path) {
		for _, query := range []string{"?other=1", "?other", "?symbol=" + programtest.Symbol + "&other=1", "?Symbol=" + programtest.Symbol} {
			bad[query] = [2]string{"INVALID_FIELD", "unknown_field"}
		}
	}
	return bad
}

// reads drives a GET.
func (c *conformance) reads(o *openapitest.Operation, address string) {
	switch {
	case o.Method != "GET":
		return
	case o.Path == "/ws/rfq":
		c.upgrade(o, address)
		return
	case o.Path == streamPath:
		c.stream(o, address)
		return
	case strings.Contains(o.Path, "{claim_id}"):
		c.claims(o, address)
		return
	case strings.HasSuffix(o.Path, "{build_id}"):
		c.builds(o, address)
		return
	case strings.HasSuffix(o.Path, "{pool_address}"):
		c.pools(o, address)
		return
	}
	target := segments.Replace(o.Path)
	c.methods(o, address, target)
	for _, query := range goodQueries(o.Path) {
		a := c.expect(200, "", "", "GET", address, o.Path, target+query, "")
		c.forms(a, address, target+query)
		if query == goodQueries(o.Path)[0] && address == urls(o)[0] && !slices.Contains(pagesForPeople, o.Path) {
			c.mutants(a)
		}
	}
	for query, want := range badQueries(o.Path) {
		c.expect(400, want[0], want[1], "GET", address, o.Path, target+query, "")
	}
	if pair, ok := strings.CutSuffix(o.Path, "{market_pair}"); ok {
		for _, name := range []string{"x", "SLUSD-USDC", "slusd_usdc"} {
			c.expect(400, "UNKNOWN_SYMBOL", "", "GET", address, o.Path, pair+name, "")
		}
	}
}

// forms asks for the same answer without a body, not at all, and compressed.
func (c *conformance) forms(a *openapitest.Answer, address, target string) {
	c.t.Helper()
	head := c.send("HEAD", address, a.Path, target, "")
	if head.Status != 200 || head.Header.Get("Content-Type") != a.Header.Get("Content-Type") {
		c.t.Errorf("HEAD %s%s: status %d %v", address, target, head.Status, head.Header)
	}
	etag := a.Header.Get("ETag")
	if etag == "" { // health, which the document says has none
		return
	}
	// Live values may have changed meanwhile, by its cycle.
	again := c.send("GET", address, a.Path, target, "", "If-None-Match", etag)
	if again.Status != http.StatusNotModified && again.Header.Get("ETag") == etag {
		c.t.Errorf("GET %s%s with its ETag: status %d", address, target, again.Status)
	}
	packed := c.exchange("GET", address, a.Path, target, "", "Accept-Encoding", "gzip")
	if coded := packed.Header.Get("Content-Encoding") == "gzip"; coded != (len(a.Body) >= 1200) {
		c.t.Errorf("GET %s%s: %d bytes come compressed: %v", address, target, len(a.Body), coded)
	} else if coded {
		z, err := gzip.NewReader(bytes.NewReader(packed.Body))
		if err != nil {
			c.t.Fatal(err)
		}
		if packed.Body, err = io.ReadAll(z); err != nil {
			c.t.Fatal(err)
		}
	}
	if err := c.d.CheckAnswer(packed); err != nil {
		c.t.Errorf("compressed: %v", err)
	}
}

// mutants: no body with a member missing, too many or mistyped would pass.
func (c *conformance) mutants(a *openapitest.Answer) {
	c.t.Helper()
	if slices.Contains([]string{programtest.DocumentPath, documentAlias, "/openapi.json", "/api/v1/market/schemas", "/schemas.json"}, a.Path) {
		return // documents that describe others: any object
	}
	fewest := 5
	if a.Path == udfPath+"time" { // a number alone, which can be mistyped and no more
		fewest = 1
	}
	n, there := 0, map[string]bool{}
	if err := openapitest.Mutants(a.Body, func(what string, mutant []byte) bool {
		n++
		other := *a
		other.Body = mutant
		member := what[strings.LastIndexByte(what, '/')+1:]
		newer := strings.HasPrefix(what, "missing ") && slices.Contains(newerMembers[a.Path], member)
		there[member] = there[member] || newer
		if c.d.CheckAnswer(&other) == nil && !newer && !mayMiss(a.Path, what) {
			c.t.Errorf("%s: %s is not noticed", a.Path, what)
		}
		return true
	}); err != nil || n < fewest {
		c.t.Errorf("%s: %d mutants: %v", a.Path, n, err)
	}
	for _, member := range newerMembers[a.Path] {
		if !there[member] {
			c.t.Errorf("%s has no %s: %.300s", a.Path, member, a.Body)
		}
	}
}

// claims asks for claims that there are not, and for a transaction of one: without a
// chain there is none.
func (c *conformance) claims(o *openapitest.Operation, address string) {
	path, below, _ := strings.Cut(o.Path, "{claim_id}")
	c.methods(o, address, path+"C0000000000001"+below)
	for _, id := range []string{"C0000000000001", "c0000000000001", "C1", "T1", strings.Repeat("x", 64)} {
		c.expect(404, "UNKNOWN_CLAIM", "unknown_claim", "GET", address, o.Path, path+id+below, "")
	}
	for _, id := range []string{"", ".", "..", "C%31", strings.Repeat("x", 65)} {
		if err := c.d.CheckUnknown(c.exchange("GET", address, o.Path, path+id+below, "")); err != nil {
			c.t.Errorf("%s%s%s: %v", path, id, below, err)
		}
	}
}

// payPath ends the path of a claim's transaction request of Solana Pay.
const payPath = "/{claim_id}/pay"

// pay asks for the payment of claims that there are not: without a chain there is none. A
// wrong body is refused all the same.
func (c *conformance) pay(o *openapitest.Operation, address string) {
	right := `{"account":"` + demo.Address("wallet-1") + `"}`
	path, below, _ := strings.Cut(o.Path, "{claim_id}")
	postTo := func(id string) poster {
		return func(status int, code, reason, body string, headers ...string) {
			c.t.Helper()
			c.expect(status, code, reason, "POST", address, o.Path, path+id+below, body, headers...)
		}
	}
	c.methods(o, address, segments.Replace(o.Path))
	c.request("POST", o.Path, right, true)
	for _, id := range []string{"C0000000000001", "c0000000000001", "C1", "T1", strings.Repeat("x", 64)} {
		postTo(id)(404, "UNKNOWN_CLAIM", "unknown_claim", right)
	}
	for _, id := range []string{"", ".", "..", "C%31", strings.Repeat("x", 65)} {
		if err := c.d.CheckUnknown(c.exchange("POST", address, o.Path, path+id+below, right)); err != nil {
			c.t.Errorf("POST %s%s%s: %v", path, id, below, err)
		}
	}
	post := postTo("C0000000000001")
	c.broken(right, post)
	c.members(o, right, post)
	for _, account := range []string{"x", strings.Repeat("1", 31), "0" + demo.Address("wallet-1")[1:]} {
		body := `{"account":"` + account + `"}`
		post(400, "INVALID_FIELD", "not_an_address", body)
		c.request("POST", o.Path, body, false)
	}
}

// upgrade drives the WebSocket's route up to where it is one.
func (c *conformance) upgrade(o *openapitest.Operation, address string) {
	c.methods(o, address, o.Path)
	c.expect(426, "UPGRADE_REQUIRED", "", "GET", address, o.Path, o.Path, "")
	c.send("HEAD", address, o.Path, o.Path, "")
	headers := []string{"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13"}
	c.expect(400, "INVALID_FIELD", "websocket_upgrade", "GET", address, o.Path, o.Path, "", headers...)
	c.expect(101, "", "", "GET", address, o.Path, o.Path, "", append(headers, "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")...)
}

// quotes: what is right, and each thing that the desk refuses, on each address.
func (c *conformance) quotes() {
	const path = "/api/v1/rfq/quote"
	for _, address := range c.all[:2] {
		for _, body := range []string{
			rightQuote, strings.Replace(rightQuote, `"1000"`, `250000`, 1), strings.Replace(rightQuote, "USDC", "SOL", 1),
			" \n{\"rail\":\"\\u0055SDC\", \"fill_usd\":250,\t\"tranche_id\":\"T5-1\",\"order_id\":\"T5\"}\r\n",
		} {
			a := c.expect(200, "", "", "POST", address, path, path, body)
			c.request("POST", path, body, true)
			c.mutants(a)
		}
		for _, wrong := range wrongQuotes {
			body := strings.ReplaceAll(rightQuote, wrong.from, wrong.to)
			c.expect(wrong.status, wrong.code, wrong.reason, "POST", address, path, path, body)
			c.request("POST", path, body, !wrong.schema)
		}
		c.operate("/desk/locks", map[string]any{"pair": programtest.Symbol, "locked": true, "reason": "drill"})
		c.expect(409, "REFUS_DVP", "locked", "POST", address, path, path, rightQuote)
		c.operate("/desk/locks", map[string]any{"pair": programtest.Symbol, "locked": false})
	}
}

// request holds a body to the document: whether it is right there too.
func (c *conformance) request(method, path, body string, right bool) {
	c.t.Helper()
	for _, o := range c.d.Operations() {
		if o.Method == method && o.Path == path {
			if err := c.d.CheckRequest(&o, []byte(body)); (err == nil) != right {
				c.t.Errorf("%s %s %s: %v", method, path, body, err)
			}
		}
	}
}

// exampleCodes are what the examples come to here, by the beginnings of their
// names; others need a chain. Those of DvP have somebody else's key and token.
var exampleCodes = map[string]string{
	"Quote": "", "HandshakeRequest": "", "HandshakeProof": "INVALID_FIELD", "Build": "TAKER_NON_ADMIS_JETON", "Submit": "TAKER_NON_ADMIS_JETON",
	"SolanaPay": "UNKNOWN_CLAIM",
}

// examples sends each example of a body: it works as it is printed, where there
// is a chain.
func (c *conformance) examples() {
	for _, o := range c.d.Operations() {
		examples, err := c.d.RequestExamples(&o)
		if err != nil || o.Method == "POST" && len(examples) == 0 {
			c.t.Errorf("%s %s has no example: %v", o.Method, o.Path, err)
		}
		for name, body := range examples {
			a := c.send(o.Method, urls(&o)[0], o.Path, segments.Replace(o.Path), string(body))
			want := "CHAIN_UNAVAILABLE"
			for beginning, code := range exampleCodes {
				if strings.HasPrefix(name, beginning) {
					want = code
				}
			}
			if a.Code() != want {
				c.t.Errorf("%s: status %d: %s", name, a.Status, a.Body)
			}
		}
	}
}

// keys: a key brings back what was said, refusals too, from every address; with
// another body it is a conflict.
func (c *conformance) keys() {
	const path = "/api/v1/rfq/quote"
	for key, body := range map[string]string{"right": rightQuote, "refused": strings.ReplaceAll(rightQuote, "T1", "T4")} {
		first := c.send("POST", c.all[0], path, path, body, "Idempotency-Key", key)
		again := c.send("POST", c.all[1], path, path, body, "Idempotency-Key", key)
		same := bytes.Equal(again.Body, first.Body) == (key == "right") // a refusal has its own request_id
		if first.Header.Get("Idempotency-Replayed") != "" || again.Header.Get("Idempotency-Replayed") != "true" || !same || again.Status != first.Status {
			c.t.Errorf("%s: %d %s\nthen %d %s", key, first.Status, first.Body, again.Status, again.Body)
		}
		c.expect(409, "IDEMPOTENCY_CONFLICT", "", "POST", c.all[1], path, path, strings.Replace(body, "1000", "250", 1), "Idempotency-Key", key)
	}
	for key, reason := range map[string]string{strings.Repeat("k", 129): "too_long", "a b": "not_visible_ascii", "clé": "not_visible_ascii"} {
		c.expect(400, "INVALID_FIELD", reason, "POST", c.all[0], path, path, rightQuote, "Idempotency-Key", key)
	}
}

// brokenBodies are not valid JSON objects, by their reason;
// RIGHT stands for a right one.
var brokenBodies = map[string]string{
	" ": "empty_body", "\xef\xbb\xbfRIGHT": "byte_order_mark", "[RIGHT]": "not_an_object", `"x"`: "not_an_object",
	`{"order_id"`: "syntax", `{"order_id":T1}`: "syntax", `{'order_id':'T1'}`: "syntax", "{,}": "syntax", `{"a":01}`: "syntax",
	"RIGHTx": "trailing_data", "RIGHT{}": "trailing_data", `{"order_id":"\ud800"}`: "lone_surrogate", "{\"order_id\":\"\xff\"}": "invalid_utf8",
	`{"x":[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]}`: "too_deep",
}

// writes drives a POST with what is wrong for all of them, and each member
// wrong in each way. A valid request that needs a chain is refused because there is none.
func (c *conformance) writes(o *openapitest.Operation, address string) {
	if o.Method != "POST" {
		return
	}
	switch {
	case strings.HasPrefix(o.Path, "/api/v1/dvp/"):
		c.dvp(o, address)
		return
	case strings.HasSuffix(o.Path, payPath):
		c.pay(o, address)
		return
	}
	right := rightPayment
	switch {
	case strings.HasSuffix(o.Path, "quote"):
		right = rightQuote
	case strings.Contains(o.Path, "claim"):
		right = rightClaim
	}
	post := func(status int, code, reason, body string, headers ...string) {
		c.t.Helper()
		c.expect(status, code, reason, "POST", address, o.Path, o.Path, body, headers...)
	}
	c.methods(o, address, o.Path)
	c.request("POST", o.Path, right, true)
	if right != rightQuote {
		post(503, "CHAIN_UNAVAILABLE", "", right)
		post(503, "CHAIN_UNAVAILABLE", "", strings.Replace(right, "}", `,"payment_rail":"SOL"}`, 1), "Idempotency-Key", "k")
		c.optionalMembers(o, right, post)
	} else {
		post(409, "REFUS_DVP", "locked", strings.Replace(right, "USDC", "SOL", 1))
	}
	c.broken(right, post)
	c.members(o, right, post)
	post(404, "UNKNOWN_TICKET", "unknown_ticket", strings.ReplaceAll(right, "T1", "T99"))
	post(404, "UNKNOWN_TICKET", "unknown_tranche", strings.ReplaceAll(right, "T1-1", "T2-1"))
}

// poster sends a body, and expects a status, a code and a reason.
type poster func(status int, code, reason, body string, headers ...string)

// broken sends what is no body of any request.
func (c *conformance) broken(right string, post poster) {
	c.t.Helper()
	for body, reason := range brokenBodies {
		post(400, "INVALID_JSON", reason, strings.Replace(body, "RIGHT", right, 1))
	}
	post(415, "UNSUPPORTED_MEDIA_TYPE", "content_type", right, "Content-Type", "text/plain")
	post(415, "UNSUPPORTED_MEDIA_TYPE", "content_type", right, "Content-Type", "")
	post(415, "UNSUPPORTED_MEDIA_TYPE", "content_encoding", right, "Content-Encoding", "gzip")
}

// large sends each POST a body that is too long, all at once: the service reads
// on for a moment before it answers, so that the answer arrives.
func (c *conformance) large() {
	// New connections: on one whose last answer is older than the write timeout,
	// this refusal is lost.
	client := &http.Client{Transport: &http.Transport{DisableCompression: true, DisableKeepAlives: true}, Timeout: runtest.HangTimeout}
	var group errgroup.Group
	answers := make(chan *openapitest.Answer, 100)
	for _, o := range c.d.Operations() {
		for _, address := range urls(&o) {
			if o.Method != "POST" {
				continue
			}
			group.Go(func() error {
				a, err := c.roundTrip(client, "POST", address, o.Path, segments.Replace(o.Path), strings.Repeat(" ", 64<<10+1))
				if err == nil {
					answers <- a
				}
				return err
			})
		}
	}
	if err := group.Wait(); err != nil {
		c.t.Error(err)
	}
	close(answers)
	for a := range answers {
		if err := c.d.CheckAnswer(a); err != nil || a.Code() != "BODY_TOO_LARGE" {
			c.t.Errorf("%s: %v: %s", a.Path, err, a.Body)
		}
		c.codes[a.Code()]++
	}
}

// members takes each member away and gives it each wrong form, those aside that
// are free to be missing.
func (c *conformance) members(o *openapitest.Operation, right string, post poster, free ...string) {
	var values map[string]string
	if err := json.Unmarshal([]byte(right), &values); err != nil {
		c.t.Fatal(err)
	}
	post(400, "INVALID_FIELD", "unknown_field", strings.Replace(right, "}", `,"x":1}`, 1))
	post(400, "MISSING_FIELD", "", "{}")
	for name, value := range values {
		if slices.Contains(free, name) {
			continue
		}
		was := fmt.Sprintf("%q:%q", name, value)
		for to, want := range map[string][2]string{
			"":                                  {"MISSING_FIELD", ""},
			fmt.Sprintf("%q:null", name):        {"MISSING_FIELD", ""},
			fmt.Sprintf("%q:{}", name):          {"INVALID_FIELD", "wrong_type"},
			fmt.Sprintf("%q:[%q]", name, value): {"INVALID_FIELD", "wrong_type"},
			fmt.Sprintf("%q:false", name):       {"INVALID_FIELD", "wrong_type"},
			fmt.Sprintf(`%q:""`, name):          {"INVALID_FIELD", "empty"},
			fmt.Sprintf("%q:%q", name, strings.Repeat("x", 97)): {"INVALID_FIELD", "too_long"},
		} {
			body := strings.Replace(right, was, to, 1)
			body = strings.NewReplacer(",,", ",", "{,", "{", ",}", "}").Replace(body)
			post(400, want[0], want[1], body)
			c.request("POST", o.Path, body, false)
		}
		post(400, "INVALID_FIELD", "repeated", strings.Replace(right, was, was+","+was, 1))
	}
}

// optionalMembers gives those that a body may have each right and wrong value.
func (c *conformance) optionalMembers(o *openapitest.Operation, right string, post poster) {
	for member, want := range map[string]string{
		`"payment_rail":"USDC"`: "", `"payment_rail":"BTC"`: "INVALID_FIELD unknown_rail", `"payment_rail":7`: "INVALID_FIELD wrong_type",
	} {
		c.optional(o, right, member, want, post)
	}
	more := map[string]string{
		`"quote_id":"Q0000100000001"`: "", `"quote_id":"q1"`: "INVALID_FIELD not_an_id", `"quote_id":""`: "INVALID_FIELD empty",
	}
	if right == rightPayment {
		more = map[string]string{
			`"claim_id":"C0000100000001"`: "", `"claim_id":"c1"`: "UNKNOWN_CLAIM unknown_claim", `"ticket_label":"Block A"`: "",
			`"ticket_label":"Block B"`: "INVALID_FIELD mismatch", `"fill_usd":1000`: "", `"fill_usd":"7"`: "INVALID_FIELD not_on_ladder",
		}
	}
	for member, want := range more {
		c.optional(o, right, member, want, post)
	}
	for from, to := range map[string]string{"PLaceho1der": "PLaceh01der", "EXAMPLE": "EXAMPL0"} {
		if body := strings.Replace(right, from, to, 1); body != right {
			reason := map[string]string{rightClaim: "not_an_address", rightPayment: "not_a_signature"}[right]
			post(400, "INVALID_FIELD", reason, body)
			c.request("POST", o.Path, body, false)
		}
	}
}

func (c *conformance) optional(o *openapitest.Operation, right, member, want string, post poster) {
	body := strings.Replace(right, "}", ","+member+"}", 1)
	code, reason, wrong := strings.Cut(want, " ")
	switch {
	case !wrong:
		post(503, "CHAIN_UNAVAILABLE", "", body)
	case code == "UNKNOWN_CLAIM":
		post(404, code, reason, body)
	default:
		post(400, code, reason, body)
	}
	// The desk checks what must agree with the ticket.
	c.request("POST", o.Path, body, !wrong || reason == "mismatch")
}

// books: the mirror, the registry and the native backend show the same bytes.
func (c *conformance) books() {
	for mirror, native := range map[string]string{
		"/api/v1/rfq/market-tickets":          "/rfq-native/market-tickets.json",
		"/api/v1/rfq/current-sellable-ticket": "/rfq-native/current-sellable-ticket.json",
	} {
		// A cycle may end between two of them: then once more.
		await.True(c.t, mirror+" to be the same everywhere", func() bool {
			first := programtest.Get(c.t, c.all[0]+mirror)
			return strings.Contains(first, `"T1"`) && programtest.Get(c.t, c.all[1]+mirror) == first && programtest.Get(c.t, c.all[0]+native) == first
		})
	}
}

// unknown: what is no route says so on every address, and echoes what may be.
func (c *conformance) unknown() {
	const hidden = "(chemin non standard - non reproduit)"
	for target, echo := range map[string]string{
		"/nothing": "/nothing", "/api/v1/rfq/levels/": "/api/v1/rfq/levels/", "/API/v1/rfq/levels": "/API/v1/rfq/levels",
		"/api/v1/rfq/levels%20": hidden, "/%3Cscript%3E": hidden, "/" + strings.Repeat("x", 159): "/" + strings.Repeat("x", 159),
		"/" + strings.Repeat("x", 160): hidden, "/rfq-native/../api/v1/rfq/levels": "/rfq-native/../api/v1/rfq/levels",
	} {
		for _, address := range c.all {
			for _, method := range []string{"GET", "POST", "DELETE", "OPTIONS"} {
				a := c.exchange(method, address, "", target, "")
				var body struct{ Path string }
				if err := json.Unmarshal(a.Body, &body); err != nil || body.Path != echo {
					c.t.Errorf("%s %s%s: %v: %s", method, address, target, err, a.Body)
				}
				if err := c.d.CheckUnknown(a); err != nil {
					c.t.Errorf("%s %s%s: %v", method, address, target, err)
				}
			}
		}
	}
}

// seen: the run has met every operation, and what it was to meet.
func (c *conformance) seen() {
	for _, o := range c.d.Operations() {
		// Claims, proofs of payment and pools wait for the chain; httpgw's tests have
		// one.
		waits := o.Method == "POST" && !strings.HasSuffix(o.Path, "quote") && !strings.HasSuffix(o.Path, "handshake") || strings.HasSuffix(o.Path, "_id}") ||
			strings.HasSuffix(o.Path, "{claim_id}/transaction") || strings.HasSuffix(o.Path, payPath) ||
			strings.HasSuffix(o.Path, "_address}")
		if done := c.done[o.Method+" "+o.Path]; done == waits {
			c.t.Errorf("%s %s has succeeded: %v", o.Method, o.Path, done)
		}
	}
	for _, code := range []string{
		"INVALID_JSON", "MISSING_FIELD", "INVALID_FIELD", "INVALID_LIMIT", "UNKNOWN_SYMBOL", "UNKNOWN_TICKET", "UNKNOWN_CLAIM", "UNKNOWN_POOL",
		"METHOD_NOT_ALLOWED", "REFUS_DVP", "CAPACITY_EXHAUSTED", "IDEMPOTENCY_CONFLICT", "BODY_TOO_LARGE", "UNSUPPORTED_MEDIA_TYPE",
		"UPGRADE_REQUIRED", "CHAIN_UNAVAILABLE", "TAKER_NON_ADMIS_JETON", "EMISSION_PAR_IP_TROP_RECENTE",
	} {
		if c.codes[code] == 0 {
			c.t.Errorf("%s was not met", code)
		}
	}
	total := 0
	for _, n := range c.codes {
		total += n
	}
	c.t.Logf("%d answers held to the document: %v", total, c.codes)
}
