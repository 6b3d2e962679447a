package openapitest

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"blockdesk/sdk"
)

func specification(t *testing.T) (*Document, []byte) {
	t.Helper()
	text, err := sdk.Files.ReadFile(sdk.Specification)
	if err != nil {
		t.Fatal(err)
	}
	d, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return d, text
}

// TestSpecification: the document that we publish is whole and strict, and its
// examples are what it says.
func TestSpecification(t *testing.T) {
	d, text := specification(t)
	if err := d.Check(); err != nil {
		t.Error(err)
	}
	if n := len(d.Operations()); n < 30 {
		t.Errorf("only %d operations", n)
	}
	codes, _ := d.Codes()
	code, _ := d.object("/components/schemas/Problem/properties/code")
	for _, c := range codes {
		if words, _ := code["description"].(string); !strings.Contains(words, "| `"+c+"` |") {
			t.Errorf("the code %s is not documented", c)
		}
	}
	for _, o := range d.Operations() {
		if len(o.Servers) == 0 {
			t.Errorf("%s %s has no server", o.Method, o.Path)
		}
		content, at := d.object(under(o.pointer, "responses", "200", "content", mediaType))
		examples, _ := d.object(under(at, "examples"))
		if content != nil && len(examples) == 0 && !describing(o.Path) {
			t.Errorf("%s %s has no example of its answer", o.Method, o.Path)
		}
	}
	answersHaveExamples(t, d)
	info, _ := d.object("/info")
	words, _ := info["description"].(string)
	for _, name := range slices.Concat(everywhere, optionHeaders) {
		if !strings.Contains(words, "`"+name) {
			t.Errorf("the header %s is not documented", name)
		}
	}
	var out bytes.Buffer
	if err := json.Indent(&out, text, "", "  "); err != nil || !bytes.Equal(out.Bytes(), text) {
		t.Errorf("the document is not indented by two blanks: %v", err)
	}
}

// describing reports whether what is at a path describes others: it is its own
// example.
func describing(path string) bool {
	return strings.HasSuffix(path, "/openapi.json") || strings.HasSuffix(path, "schemas.json") || strings.HasSuffix(path, "/schemas") ||
		strings.HasPrefix(path, "/public-sdk/")
}

// rendered matches the examples that httpgw's tests make of fixed facts. Many of
// their members are data, with names of their own; cmd's conformance test mutates
// the answers themselves.
var rendered = regexp.MustCompile(`^(Market[A-Z]|WellKnown|CoinGecko|CoinMarketCap|Screener|TokenList$)`)

// answersHaveExamples: each answer of each operation has one for each of its media
// types, but for those that are documents of their own, and pages.
func answersHaveExamples(t *testing.T, d *Document) {
	t.Helper()
	for _, o := range d.Operations() {
		responses, at := d.object(under(o.pointer, "responses"))
		for status := range responses {
			content, pointer := d.object(under(at, status, "content"))
			for media := range content {
				own := status == "200" && (describing(o.Path) || media == pageMedia)
				if examples, _ := d.object(under(pointer, media, "examples")); len(examples) == 0 && !own {
					t.Errorf("%s %s: the answer %s has no example of %s", o.Method, o.Path, status, media)
				}
			}
		}
	}
}

// mayLack are members that an example has and an answer may lack, by the example: desks of
// 0.1.0 have no solana_pay, and before the first bar of all there is none to go to.
var mayLack = map[string]string{"ClaimPackage": "missing /solana_pay", "UdfNoData": "missing /nextTime"}

// TestExamplesAreBinding: no example is left when one of its members is missing,
// too many or of another type, but for those that a problem or mayLack's may lack.
func TestExamplesAreBinding(t *testing.T) {
	d, _ := specification(t)
	mutants := 0
	for _, o := range d.Operations() {
		responses, at := d.object(under(o.pointer, "responses"))
		for status := range responses {
			_, response := d.get(under(at, status))
			schema := under(response, "content", mediaType, "schema")
			examples, from := d.object(under(response, "content", mediaType, "examples"))
			for _, name := range slices.Sorted(maps.Keys(examples)) {
				if rendered.MatchString(name) && name != "MarketTickets" {
					continue
				}
				example, _ := d.object(under(from, name))
				text, err := json.Marshal(example["value"])
				if err != nil {
					t.Fatal(err)
				}
				if err := Mutants(text, func(what string, mutant []byte) bool {
					mutants++
					v, err := decode(mutant)
					if err != nil {
						t.Fatal(err)
					}
					optional := status >= "4" && slices.Contains([]string{"missing /reason", "missing /field", "missing /path"}, what) ||
						o.Path == "/" && strings.HasPrefix(what, "missing /endpoints/") || mayLack[name] == what
					if err := d.validate(schema, v); (err == nil) != optional {
						t.Errorf("%s: %s: %v", name, what, err)
					}
					return true
				}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if mutants < 2000 {
		t.Errorf("only %d mutants", mutants)
	}
}

// small is a description with one limited read, whose 200 requires an ETag.
const small = `{"openapi": "3.1.0", "paths": {"/a/{b}": {"servers": [{"url": "http://base", "description": "base address"}],
"get": {"parameters": [{"name": "X-Key", "in": "header", "schema": {"type": "string"}}], "responses": {
	"200": {"headers": {"ETag": {"required": true, "schema": {"type": "string", "pattern": "^\"[^\"]+\"$"}},
		"RateLimit-Policy": {"schema": {"type": "string"}}, "RateLimit": {"schema": {"type": "string"}}, "X-RateLimit-Limit": {"schema": {"type": "string"}},
		"X-RateLimit-Remaining": {"schema": {"type": "string"}}, "X-RateLimit-Reset": {"schema": {"type": "string"}}},
		"content": {"application/json": {"schema": {"$ref": "#/components/schemas/A"}, "examples": {"one": {"$ref": "#/components/examples/One"}}}}},
	"404": {"$ref": "#/components/responses/E404"}, "405": {"$ref": "#/components/responses/E405"},
	"default": {"$ref": "#/components/responses/Other"}}}}},
"components": {"schemas": {
	"A": {"type": "object", "required": ["ok"], "properties": {"ok": {"const": true}, "n": {"type": ["integer", "null"]}}, "additionalProperties": false},
	"Problem": {"type": "object", "required": ["code", "request_id"], "properties": {"code": {"enum": ["X", "METHOD_NOT_ALLOWED", "ROUTE_INCONNUE", "INTERNAL"]},
		"reason": {"type": "string", "description": "` + "`known`" + `"}, "path": {"type": "string"}, "request_id": {"type": "string"}}, "additionalProperties": false}},
"responses": {
	"E404": {"headers": {"X-Request-Id": {"required": true, "schema": {"type": "string"}}, "RateLimit-Policy": {"schema": {"type": "string"}}, "RateLimit": {"schema": {"type": "string"}},
		"X-RateLimit-Limit": {"schema": {"type": "string"}}, "X-RateLimit-Remaining": {"schema": {"type": "string"}}, "X-RateLimit-Reset": {"schema": {"type": "string"}}},
		"content": {"application/json": {"schema": {"allOf": [{"$ref": "#/components/schemas/Problem"}, {"properties": {"code": {"enum": ["X", "ROUTE_INCONNUE"]}}}]}}}},
	"E405": {"headers": {"Allow": {"required": true, "schema": {"type": "string"}}, "X-Request-Id": {"schema": {"type": "string"}}},
		"content": {"application/json": {"schema": {"allOf": [{"$ref": "#/components/schemas/Problem"}, {"properties": {"code": {"enum": ["METHOD_NOT_ALLOWED"]}}}]}}}},
	"Other": {"content": {"application/json": {"schema": {"allOf": [{"$ref": "#/components/schemas/Problem"}, {"properties": {"code": {"enum": ["INTERNAL"]}}}]}}}}},
"examples": {"One": {"value": {"ok": true, "n": 1}}}}}`

func parse(t *testing.T, text string) *Document {
	t.Helper()
	d, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestCheck: each fault of a document is found.
func TestCheck(t *testing.T) {
	if err := parse(t, small).Check(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ from, to, want string }{
		"wrong example":    {`"n": 1}`, `"n": "1"}`, "the example /components/examples/One"},
		"dangling":         {"examples/One", "examples/Two", "is not there"},
		"loose":            {`["integer", "null"]}}, "additionalProperties": false`, `["integer", "null"]}}`, "takes any member"},
		"undescribed":      {`"required": ["ok"]`, `"required": ["ok", "q"]`, "requires q"},
		"unused":           {`"examples": {"One"`, `"parameters": {"P": {}}, "examples": {"One"`, "/components/parameters/P is used nowhere"},
		"no schema":        {`{"const": true}`, `{"type": "bool"}`, "schema at"},
		"an inner example": {`{"required": true, "schema": {"type": "string"}}, "X-Request-Id"`, `{"required": true, "schema": {"type": "string"}, "example": 7}, "X-Request-Id"`, "the example at"},
	} {
		if strings.Count(small, c.from) == 0 {
			t.Fatalf("%s: nothing to replace", name)
		}
		if err := parse(t, strings.Replace(small, c.from, c.to, 1)).Check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, text := range []string{`{`, `{"a": {"b": 1, "b": 2}}`, `{"a": [{"b": {}, "b": 1}]}`, `{} {}`} {
		if _, err := Parse([]byte(text)); err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
	if _, err := Parse([]byte(`{"a": "a", "b": ["a", "a", {"a": "b"}, {"a": "b"}]}`)); err != nil {
		t.Error(err)
	}
}

func answerOf(method string, status int, body string) *Answer {
	a := &Answer{Method: method, Path: "/a/{b}", Status: status, Header: http.Header{}, Body: []byte(body)}
	a.Header.Set("Date", "today")
	a.Header.Set("Content-Type", contentType)
	a.Header.Set("X-Request-Id", "r1")
	if status < 400 {
		a.Header.Del("X-Request-Id")
		a.Header.Set("ETag", `"e"`)
	}
	for _, name := range rateHeaders {
		a.Header.Set(name, "1")
	}
	if status == 405 {
		for _, name := range rateHeaders {
			a.Header.Del(name)
		}
		a.Header.Set("Allow", "GET, HEAD, OPTIONS")
	}
	return a
}

// TestCheckAnswer: an answer that is right, and each way to be wrong.
func TestCheckAnswer(t *testing.T) {
	d := parse(t, small)
	get := func() *Answer { return answerOf("GET", 200, `{"ok": true, "n": null}`) }
	notFound := func() *Answer { return answerOf("GET", 404, `{"code": "X", "reason": "known", "request_id": "r1"}`) }
	put := func() *Answer { return answerOf("PUT", 405, `{"code": "METHOD_NOT_ALLOWED", "request_id": "r1"}`) }
	head := func() *Answer { return answerOf("HEAD", 200, "") }
	options := func() *Answer {
		a := &Answer{Method: "OPTIONS", Path: "/a/{b}", Status: 204, Header: http.Header{}}
		for name, value := range map[string]string{
			"Allow": "GET, HEAD, OPTIONS", "Access-Control-Allow-Methods": "GET, HEAD, OPTIONS", "Access-Control-Allow-Origin": "*",
			"Access-Control-Allow-Headers": "Content-Type, X-Key", "Access-Control-Max-Age": "1", "X-Request-Id": "r1", "Cache-Control": "no-store",
		} {
			a.Header.Set(name, value)
		}
		return a
	}
	for _, right := range []func() *Answer{get, notFound, put, head, options} {
		if err := d.CheckAnswer(right()); err != nil {
			t.Error(err)
		}
	}
	body := func(text string) func(*Answer) { return func(a *Answer) { a.Body = []byte(text) } }
	set := func(name, value string) func(*Answer) { return func(a *Answer) { a.Header.Set(name, value) } }
	del := func(name string) func(*Answer) { return func(a *Answer) { a.Header.Del(name) } }
	status := func(n int) func(*Answer) { return func(a *Answer) { a.Status = n } }
	for name, c := range map[string]struct {
		of   func() *Answer
		mend func(*Answer)
		want string
	}{
		"path":                 {get, func(a *Answer) { a.Path = "/c" }, "no path"},
		"method":               {put, status(200), "does not have this method"},
		"status":               {get, status(201), "not described"},
		"status of an error":   {notFound, status(409), "not described"},
		"code of the status":   {notFound, body(`{"code": "INTERNAL", "reason": "unknown", "request_id": "r1"}`), "reason unknown"},
		"code nowhere":         {notFound, body(`{"code": "Z", "request_id": "r1"}`), "not described"},
		"media type":           {get, set("Content-Type", "application/json"), "Content-Type"},
		"no media type":        {get, del("Content-Type"), "Content-Type"},
		"required header":      {get, del("ETag"), "no header ETag"},
		"header's value":       {get, set("ETag", "e"), "the header Etag"},
		"header twice":         {get, func(a *Answer) { a.Header.Add("ETag", `"f"`) }, "2 times"},
		"undescribed header":   {get, set("X-Own", "1"), "X-Own is not described"},
		"rate header":          {get, del("RateLimit"), "Ratelimit is there: false"},
		"rate header of a 405": {put, set("RateLimit", "1"), "Ratelimit"},
		"no body":              {get, body(""), "not JSON"},
		"two bodies":           {get, body(`{"ok": true}{}`), "not JSON"},
		"member twice":         {get, body(`{"ok": true, "ok": true}`), "twice"},
		"member missing":       {get, body(`{}`), "ok"},
		"member too many":      {get, body(`{"ok": true, "m": 1}`), "m"},
		"fraction":             {get, body(`{"ok": true, "n": 1.5}`), "n"},
		"HEAD with a body":     {head, body("x"), "no"},
		"reason":               {notFound, body(`{"code": "X", "reason": "unknown", "request_id": "r1"}`), "reason unknown"},
		"request_id":           {notFound, body(`{"code": "X", "request_id": "r2"}`), "differ"},
		"Allow":                {put, set("Allow", "GET"), "Allow"},
		"OPTIONS":              {options, set("Allow", "GET"), "Allow"},
		"OPTIONS's status":     {options, status(200), "204"},
		"OPTIONS's age":        {options, func(a *Answer) { a.Header.Del("Access-Control-Max-Age") }, "Access-Control-Max-Age"},
		"OPTIONS's own header": {options, set("X-Other", "1"), "X-Other"},
		"a header to send":     {options, set("Access-Control-Allow-Headers", "Content-Type"), "X-Key"},
	} {
		a := c.of()
		c.mend(a)
		if err := d.CheckAnswer(a); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	unknown := answerOf("GET", 404, `{"code": "ROUTE_INCONNUE", "path": "/x", "request_id": "r1"}`)
	if err := d.CheckUnknown(unknown); err != nil {
		t.Error(err)
	}
	unknown.Body = []byte(`{"code": "ROUTE_INCONNUE", "request_id": "r1"}`)
	if err := d.CheckUnknown(unknown); err == nil {
		t.Error("an unknown route without its path is accepted")
	}
}

// TestMutants: all of a small text's, each once, and none that is the text.
func TestMutants(t *testing.T) {
	var got []string
	if err := Mutants([]byte(`{"a":[1],"b":{}}`), func(what string, mutant []byte) bool {
		got = append(got, what+" "+strings.TrimSpace(string(mutant)))
		return true
	}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`mistyped  "mutant"`,
		`extra in  {"a":[1],"b":{},"mutant":true}`,
		`missing /a {"b":{}}`,
		`mistyped /a {"a":{"mutant":true},"b":{}}`,
		`mistyped /a/0 {"a":[{"mutant":true}],"b":{}}`,
		`missing /b {"a":[1]}`,
		`mistyped /b {"a":[1],"b":"mutant"}`,
		`extra in /b {"a":[1],"b":{"mutant":true}}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
