package docs

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"

	"blockdesk/internal/await"
)

const (
	marketRoot = "/api/v1/market/"
	rfqRoot    = "/api/v1/rfq/"
	statusPath = marketRoot + "status"
)

// walkClient sends the requests of the walk.
var walkClient = http.DefaultClient

// get requests a path of the base address, or a URL.
func (w *walk) get(path string) *http.Response {
	w.t.Helper()
	return w.send(http.MethodGet, path, "")
}

func (w *walk) post(path, body string, headers ...string) *http.Response {
	w.t.Helper()
	return w.send(http.MethodPost, path, body, headers...)
}

func (w *walk) send(method, path, body string, headers ...string) *http.Response {
	w.t.Helper()
	if strings.HasPrefix(path, "/") {
		path = w.at.At.Base + path
	}
	req, err := http.NewRequestWithContext(w.t.Context(), method, path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := walkClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	all, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		w.t.Fatal(err)
	}
	resp.Body = io.NopCloser(bytes.NewReader(all))
	return resp
}

// refused returns the body of an answer that must have this status and code.
func (w *walk) refused(resp *http.Response, status int, code string) map[string]any {
	w.t.Helper()
	var body map[string]any
	err := json.NewDecoder(resp.Body).Decode(&body)
	if err != nil || resp.StatusCode != status || body["code"] != code || body["ok"] != false {
		w.t.Errorf("%s: status %d, %v, %v, want %d %s", resp.Request.URL, resp.StatusCode, body, err, status, code)
	}
	return body
}

// body returns what a path answers with 200.
func (w *walk) body(path string) string {
	w.t.Helper()
	resp := w.get(path)
	all, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		w.t.Fatalf("%s: status %d: %.300s: %v", path, resp.StatusCode, all, err)
	}
	return string(all)
}

func (w *walk) decoded(path string) (v any) {
	w.t.Helper()
	d := json.NewDecoder(strings.NewReader(w.body(path)))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		w.t.Fatalf("%s: %v", path, err)
	}
	return v
}

// json returns the object that a path answers with.
func (w *walk) json(path string) map[string]any {
	w.t.Helper()
	v, ok := w.decoded(path).(map[string]any)
	if !ok {
		w.t.Fatalf("%s is no object", path)
	}
	return v
}

// read returns the values at a place of a document, such as tokens.*.symbol.
func (w *walk) read(path, place string) []any {
	w.t.Helper()
	return valuesAt(w.decoded(path), strings.Split(place, "."))
}

func valuesAt(v any, place []string) (out []any) {
	if len(place) == 0 {
		return []any{v}
	}
	if list, ok := v.([]any); ok && place[0] == "*" {
		for _, element := range list {
			out = append(out, valuesAt(element, place[1:])...)
		}
	} else if members, ok := v.(map[string]any); ok {
		if member, ok := members[place[0]]; ok {
			out = valuesAt(member, place[1:])
		}
	}
	return out
}

// one returns the only value at a place of a document.
func (w *walk) one(path, place string) any {
	w.t.Helper()
	got := w.read(path, place)
	if len(got) != 1 {
		w.t.Fatalf("%s: %s is %v", path, place, got)
	}
	return got[0]
}

// equal checks the values at a place of a document.
func (w *walk) equal(path, place string, want ...any) {
	w.t.Helper()
	if got := w.read(path, place); !slices.Equal(got, want) {
		w.t.Errorf("%s: %s is %v, want %v", path, place, got, want)
	}
}

// members checks that an object of a document has these members.
func (w *walk) members(path, place string, names ...string) {
	w.t.Helper()
	v := w.json(path)
	if place != "" {
		v, _ = v[place].(map[string]any)
	}
	for _, name := range names {
		if _, ok := v[name]; !ok {
			w.t.Errorf("%s: %s has no %s", path, place, name)
		}
	}
}

// isAmount reports whether a text is a decimal number of digits.
func isAmount(text string) bool {
	whole, fraction, _ := strings.Cut(text, ".")
	return whole != "" && strings.Trim(whole+fraction, "0123456789") == ""
}

// listedDocument is a row of the integration manifest.
type listedDocument struct {
	Name, URL string
	Files     []string
}

func (w *walk) documents() []listedDocument {
	w.t.Helper()
	var manifest struct{ Documents []listedDocument }
	if err := json.Unmarshal([]byte(w.body(marketRoot+"integration-manifest")), &manifest); err != nil || len(manifest.Documents) < 30 {
		w.t.Fatalf("%d documents, %v", len(manifest.Documents), err)
	}
	return manifest.Documents
}

// sameBytes checks that a document has the same bytes under all its paths. The cycle may
// turn over between two reads, so differing ones are read again.
func (w *walk) sameBytes() {
	w.t.Helper()
	for _, d := range w.documents() {
		for _, file := range d.Files {
			api := strings.Replace(d.URL, w.at.At.Base, w.at.At.API, 1)
			await.True(w.t, d.Name+" under all paths", func() bool {
				first := w.body(d.URL)
				return w.body(file) == first && w.body(api) == first && w.body(d.URL) == first
			})
		}
	}
}

// answer returns the object of an answer that must have this status.
func (w *walk) answer(resp *http.Response, status int) map[string]any {
	w.t.Helper()
	all, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != status {
		w.t.Fatalf("%s: status %d, want %d: %.400s: %v", resp.Request.URL, resp.StatusCode, status, all, err)
	}
	body := map[string]any{}
	d := json.NewDecoder(bytes.NewReader(all))
	d.UseNumber()
	if err := d.Decode(&body); err != nil {
		w.t.Fatalf("%s: %v: %.400s", resp.Request.URL, err, all)
	}
	return body
}

// has checks that a document has a value at a place.
func (w *walk) has(path, place string, want any) {
	w.t.Helper()
	if got := w.read(path, place); !slices.Contains(got, want) {
		w.t.Errorf("%s: %s is %v, without %v", path, place, got, want)
	}
}

// answers checks that each path of an address answers 200 with JSON.
func (w *walk) answers(address string, paths ...string) {
	w.t.Helper()
	for _, path := range paths {
		w.decoded(address + path)
	}
}

// within returns the paths below a root.
func within(root string, names ...string) (paths []string) {
	for _, name := range names {
		paths = append(paths, root+name)
	}
	return paths
}
