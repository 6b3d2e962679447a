package sdk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
)

// servedSchemas are the JSON Schemas that the service publishes, by name.
type servedSchemas map[string]*jsonschema.Schema

func (c *conformance) readSchemas(address string) servedSchemas {
	const path = "/api/v1/market/schemas"
	var served struct{ Schemas map[string]any }
	c.decode(c.send("GET", address, path, path, "").Body, &served)
	compiler, all := jsonschema.NewCompiler(), servedSchemas{}
	compiler.AssertFormat()
	for name, schema := range served.Schemas {
		if err := compiler.AddResource("https://schemas.test/"+name, schema); err != nil {
			c.t.Fatal(err)
		}
	}
	for name := range served.Schemas {
		compiled, err := compiler.Compile("https://schemas.test/" + name)
		if err != nil {
			c.t.Fatal(err)
		}
		all[name] = compiled
	}
	return all
}

func (c *conformance) decode(text []byte, into any) {
	c.t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		c.t.Fatalf("%v in %.200s", err, text)
	}
}

// holds holds what is at a path to the schema of that name, which the document
// must name too where it names one.
func (c *conformance) holds(schemas servedSchemas, address, path, name string) {
	c.t.Helper()
	body := c.send("GET", address, path, path, "").Body
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil || schemas[name] == nil {
		c.t.Errorf("%s%s has no schema %s, or is no JSON: %v", address, path, name, err)
		return
	}
	if err := schemas[name].Validate(v); err != nil {
		c.t.Errorf("%s%s: %v in %.300s", address, path, err, body)
	}
	root, _ := v.(map[string]any)
	if reported, ok := root["schema"].(string); ok && reported != name {
		c.t.Errorf("%s%s names the schema %s, want %s", address, path, reported, name)
	}
}

// schemas: what the integration manifest lists is there on both addresses under
// every path, and matches the schema that the service itself serves for it; so do
// the discovery files and the legacy surface. No schema is of nothing.
func (c *conformance) schemas() {
	schemas := c.readSchemas(c.all[0])
	var manifest struct {
		Documents []struct {
			Name, URL, Schema string
			Files             []string
		}
	}
	const path = "/api/v1/market/integration-manifest"
	c.decode(c.send("GET", c.all[1], path, path, "").Body, &manifest)
	used := map[string]bool{"svc_market_pool_v1": true} // there is no pool without a chain
	byName := map[string]string{}
	for _, d := range manifest.Documents {
		used[d.Schema], byName[d.Name] = true, d.Schema
		for _, url := range append([]string{d.URL}, d.Files...) {
			below, ok := strings.CutPrefix(url, c.all[0])
			if !ok {
				c.t.Errorf("%s is not below %s", url, c.all[0])
			}
			for _, address := range c.all[:2] {
				c.holds(schemas, address, below, d.Schema)
			}
		}
	}
	for _, legacy := range []string{"status", "proof", "pairs"} {
		c.holds(schemas, c.all[1], "/"+legacy, byName[legacy])
	}
	for _, o := range c.d.Operations() {
		name, ok := strings.CutPrefix(o.Path, "/.well-known/")
		if !ok || name == "svc-rfq.json" {
			continue
		}
		name = strings.NewReplacer("-", "_", ".json", "_v1").Replace(name)
		used[name] = true
		for _, address := range c.all[:2] {
			c.holds(schemas, address, o.Path, name)
		}
	}
	for name := range schemas {
		if !used[name] {
			c.t.Errorf("the schema %s is of nothing that is listed", name)
		}
	}
}

// printed matches an address of ours in a text, and what "GET /…" names.
var printed = regexp.MustCompile(`(?:(?:http|ws)://[0-9.:]+|GET )(/[^\s'"\\<]*)?`)

// links: every address that an answer prints is one where something is.
func (c *conformance) links() {
	seen := map[string]string{} // by address, where it is printed
	for _, o := range c.d.Operations() {
		if o.Method != "GET" || strings.Contains(o.Path, "{") || strings.HasSuffix(o.Path, "openapi.json") || strings.HasPrefix(o.Path, "/public-sdk/") ||
			o.Path == streamPath || o.Path == "/ws/rfq" {
			continue
		}
		address := urls(&o)[0]
		query := ""
		if good := goodQueries(o.Path); len(good) > 0 {
			query = good[0]
		}
		body := c.send("GET", address, o.Path, o.Path+query, "").Body
		for _, match := range printed.FindAllString(string(body), -1) {
			if path, ok := strings.CutPrefix(match, "GET "); ok && strings.HasPrefix(path, "/") {
				match = c.all[0] + path
			} else if ok {
				continue
			}
			seen[strings.Replace(match, "ws://", "http://", 1)] = o.Path
		}
	}
	if len(seen) < 50 {
		c.t.Errorf("only %d addresses are printed", len(seen))
	}
	for _, url := range slices.Sorted(maps.Keys(seen)) {
		if strings.Contains(url, streamPath) {
			continue // it does not end
		}
		below := url[strings.Index(url[len("http://"):]+"/", "/")+len("http://"):]
		a := c.exchange("GET", strings.TrimSuffix(url, below), below, segments.Replace(below), "")
		// It may want parameters, a POST, an upgrade or a chain; but it is there.
		if a.Code() == "ROUTE_INCONNUE" || a.Status >= 500 && a.Code() != "CHAIN_UNAVAILABLE" {
			c.t.Errorf("%s prints %s: status %d", seen[url], url, a.Status)
		}
	}
}

// agreed: once the cycle has the trade, the documents have the values of the live reads
// to the character; times are cut to milliseconds.
func (c *conformance) agreed() {
	const symbol = "?symbol=" + programtest.Symbol
	type row = map[string]any
	read := func(path string) (v row) {
		c.decode([]byte(programtest.Get(c.t, c.all[0]+path)), &v)
		return v
	}
	var latest row
	await.True(c.t, "the cycle that has the trade", func() bool {
		latest, _ = read("/latest-trade.json")["trade"].(row)
		return latest != nil
	})
	ticker, price := read("/api/v1/market/ticker"+symbol), read("/latest-price.json")
	summary, _ := read("/market-summary.json")["pairs"].([]any)[0].(row)
	candle, _ := read("/latest-candle.json")["candle"].(row)
	trade, _ := read("/trades.json?limit=1")["trades"].([]any)[0].(row)
	kline, _ := read("/api/v1/market/klines" + symbol + "&timeframe=1h&limit=1")["klines"].([]any)[0].([]any)
	book := read("/api/v1/market/depth" + symbol + "&limit=1")
	best := func(side string) any { return book[side].([]any)[0].([]any)[0] }
	cut := func(ts any) any { return strings.TrimSuffix(fmt.Sprint(ts), "Z")[:len("2006-01-02T15:04:05.000")] }
	for name, pair := range map[string][2]any{
		"trade_id": {latest["trade_id"], trade["trade_id"]}, "price": {latest["price"], trade["price"]}, "qty": {latest["qty"], trade["qty"]},
		"side": {latest["side"], trade["side"]}, "signature": {latest["signature"], trade["signature"]}, "ts": {cut(latest["ts"]), cut(trade["ts"])},
		"last": {price["last"], ticker["last"]}, "last trade": {price["last"], trade["price"]}, "bid": {price["bid"], ticker["bid"]},
		"ask": {price["ask"], ticker["ask"]}, "best bid": {price["bid"], best("bids")}, "best ask": {price["ask"], best("asks")},
		"epoch": {price["epoch"], ticker["epoch"]}, "seq": {price["seq"], ticker["seq"]},
		"volume": {summary["volume_24h"], ticker["volume_24h"]}, "quote volume": {summary["quote_volume_24h"], ticker["quote_volume_24h"]},
		"trades": {summary["trades_24h"], ticker["trades_24h"]}, "last in the summary": {summary["last"], ticker["last"]},
		"open": {candle["open"], kline[1]}, "high": {candle["high"], kline[2]}, "low": {candle["low"], kline[3]}, "close": {candle["close"], kline[4]},
		"candle's volume": {candle["volume"], kline[5]}, "candle's trades": {candle["trades"], kline[7]},
	} {
		if pair[0] == nil && name != "signature" || !reflect.DeepEqual(pair[0], pair[1]) {
			c.t.Errorf("%s: a document says %v, the live read %v", name, pair[0], pair[1])
		}
	}
}
