package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
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
	if told, ok := root["schema"].(string); ok && told != name {
		c.t.Errorf("%s%s names the schema %s, want %s", address, path, told, name)
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
