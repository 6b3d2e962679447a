package openapitest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

const (
	mediaType = "application/json"
	// contentType is the Content-Type of every JSON body (docs/specification.md 1.12).
	contentType = mediaType + "; charset=utf-8"
	// eventMedia is the media type of server-sent events.
	eventMedia = "text/event-stream"
	// pageMedia is the media type of a page for people.
	pageMedia = "text/html"
)

// everywhere are the headers that the document describes in words, for all
// answers at once.
var everywhere = []string{
	"Date", "Connection", "Content-Type", "Content-Length", "Content-Encoding", "Vary", "X-Content-Type-Options",
	"Access-Control-Allow-Origin", "Access-Control-Expose-Headers",
}

// optionHeaders are described there too, for the answer to OPTIONS.
var optionHeaders = []string{
	"X-Request-Id", "Cache-Control", "Allow", "Access-Control-Allow-Methods", "Access-Control-Allow-Headers", "Access-Control-Max-Age",
}

// rateHeaders are on each admitted answer of a limited route
// (docs/specification.md C.3).
var rateHeaders = []string{"Ratelimit-Policy", "Ratelimit", "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"}

// Answer is a response as a client gets it, its body without Content-Encoding.
type Answer struct {
	Method string
	Path   string // as the document has it: with {…}, without query
	Status int
	Header http.Header
	Body   []byte
}

// Code returns the code of an error body, "" for another body.
func (a *Answer) Code() string { return a.member("code") }

func (a *Answer) member(name string) string {
	var m map[string]any
	if json.Unmarshal(a.Body, &m) != nil {
		return ""
	}
	text, _ := m[name].(string)
	return text
}

// CheckAnswer compares an answer with the document's description of its method and path.
func (d *Document) CheckAnswer(a *Answer) error {
	o, taken, err := d.operation(a.Method, a.Path)
	if err != nil {
		return err
	}
	switch {
	case a.Method == http.MethodOptions:
		err = d.checkOptions(a)
	case !taken && a.Status != http.StatusMethodNotAllowed:
		err = errors.New("the document does not have this method")
	default:
		err = d.checkResponse(a, &o)
	}
	if err != nil {
		return fmt.Errorf("%s %s: status %d: %w; body %.300s", a.Method, a.Path, a.Status, err, a.Body)
	}
	return nil
}

// CheckUnknown checks the answer to a path that the document does not have
// (docs/specification.md 4.6).
func (d *Document) CheckUnknown(a *Answer) error {
	err := errors.Join(d.checkHeaders(a, "/components/responses/E404"), d.checkBody(a, "/components/responses/E404"), d.checkProblem(a))
	if a.Status != http.StatusNotFound || a.Code() != "ROUTE_INCONNUE" || a.member("path") == "" {
		err = errors.Join(err, errors.New("not ROUTE_INCONNUE with its path"))
	}
	return err
}

func (d *Document) checkOptions(a *Answer) error {
	if a.Status != http.StatusNoContent || len(a.Body) > 0 {
		return errors.New("OPTIONS wants 204 and no body")
	}
	for name, want := range map[string]string{
		"Allow": d.Allow(a.Path), "Access-Control-Allow-Methods": d.Allow(a.Path), "Access-Control-Allow-Origin": "*",
	} {
		if got := a.Header.Get(name); got != want {
			return fmt.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for _, name := range optionHeaders {
		if a.Header.Get(name) == "" {
			return fmt.Errorf("no header %s", name)
		}
	}
	for name := range a.Header {
		if !slices.Contains(everywhere, name) && !slices.Contains(optionHeaders, name) {
			return fmt.Errorf("the header %s is not described", name)
		}
	}
	return d.checkAsked(a)
}

// checkAsked: a browser may send each header that a route of the path reads.
func (d *Document) checkAsked(a *Answer) error {
	allowed := strings.Split(a.Header.Get("Access-Control-Allow-Headers"), ", ")
	for _, o := range d.operations {
		if o.Path != a.Path {
			continue
		}
		all, at := d.get(under(o.pointer, "parameters"))
		list, _ := all.([]any)
		for i := range list {
			parameter, _ := d.object(under(at, strconv.Itoa(i)))
			if name, _ := parameter["name"].(string); parameter["in"] == "header" && !slices.Contains(allowed, name) {
				return fmt.Errorf("a browser may not send the header %s", name)
			}
		}
	}
	return nil
}

func (d *Document) checkResponse(a *Answer, o *Operation) error {
	response, err := d.response(a, o)
	if err != nil {
		return err
	}
	return errors.Join(d.checkHeaders(a, response), d.checkBody(a, response), d.checkRates(a, o), d.checkProblem(a))
}

// response finds what describes an answer.
func (d *Document) response(a *Answer, o *Operation) (pointer string, err error) {
	if v, at := d.get(under(o.pointer, "responses", strconv.Itoa(a.Status))); v != nil {
		// An error that any route may give can have the status of an answer of this one.
		if a.Status < 400 || a.Method == http.MethodHead || d.names(at, a.Code()) {
			return at, nil
		}
	}
	v, at := d.get(under(o.pointer, "responses", "default"))
	if v == nil || !d.names(at, a.Code()) {
		return "", fmt.Errorf("the status with code %q is not described", a.Code())
	}
	return at, nil
}

// names reports whether a response lists a code.
func (d *Document) names(response, code string) bool {
	parts, _ := d.get(under(response, "content", mediaType, "schema", "allOf"))
	list, _ := parts.([]any)
	for i := range list {
		one, _ := d.object(under(response, "content", mediaType, "schema", "allOf", strconv.Itoa(i), "properties", "code"))
		if codes, ok := one["enum"].([]any); ok && slices.Contains(codes, any(code)) {
			return true
		}
	}
	return false
}

// checkHeaders: each that is required is there, each that is there is described,
// and each value matches.
func (d *Document) checkHeaders(a *Answer, response string) error {
	described := map[string]string{}
	all, at := d.object(under(response, "headers"))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		header, pointer := d.object(under(at, name))
		described[http.CanonicalHeaderKey(name)] = pointer
		if header["required"] == true && a.Header.Get(name) == "" {
			return fmt.Errorf("no header %s", name)
		}
	}
	for name, values := range a.Header {
		pointer := described[name]
		switch {
		case pointer == "" && slices.Contains(everywhere, name):
			continue
		case pointer == "":
			return fmt.Errorf("the header %s is not described", name)
		case len(values) != 1:
			return fmt.Errorf("the header %s is there %d times", name, len(values))
		}
		if err := d.validate(under(pointer, "schema"), values[0]); err != nil {
			return fmt.Errorf("the header %s: %q: %w", name, values[0], err)
		}
	}
	return nil
}

// checkBody: the media type is exact and the body matches, of a stream as much as
// was read; HEAD and an answer without content have none.
func (d *Document) checkBody(a *Answer, response string) error {
	content, _ := d.object(under(response, "content"))
	if content == nil || a.Method == http.MethodHead {
		if len(a.Body) > 0 {
			return errors.New("a body where there should be none")
		}
		return nil
	}
	for _, media := range []string{eventMedia, pageMedia} {
		if content[media] == nil {
			continue
		}
		if got := a.Header.Get("Content-Type"); got != media+"; charset=utf-8" {
			return fmt.Errorf("Content-Type %q, want %s in UTF-8", got, media)
		}
		return d.validate(under(response, "content", media, "schema"), string(a.Body))
	}
	if got := a.Header.Get("Content-Type"); got != contentType {
		return fmt.Errorf("Content-Type %q, want %q", got, contentType)
	}
	v, err := decode(a.Body)
	if err != nil {
		return err
	}
	return d.validate(under(response, "content", mediaType, "schema"), v)
}

// checkRates: a route has the headers of its limit on every answer after it was
// admitted, and on none where it has no limit.
func (d *Document) checkRates(a *Answer, o *Operation) error {
	described, _ := d.get(under(o.pointer, "responses", "200", "headers", "RateLimit"))
	before := []string{"METHOD_NOT_ALLOWED", "REQUEST_TIMEOUT", "BODY_TOO_LARGE", "HEADERS_TOO_LARGE", "MALFORMED_REQUEST", "ROUTE_INCONNUE"}
	early := slices.Contains(before, a.Code()) || a.member("reason") == "connections" ||
		a.Method == http.MethodHead && a.Status == http.StatusMethodNotAllowed
	for _, name := range rateHeaders {
		if there, want := a.Header.Get(name) != "", described != nil && !early; there != want {
			return fmt.Errorf("the header %s is there: %v, want %v", name, there, want)
		}
	}
	return nil
}

// checkProblem: what an error's body and its headers must agree on.
func (d *Document) checkProblem(a *Answer) error {
	if a.Status < 400 || a.Method == http.MethodHead {
		return nil
	}
	_, reasons := d.Codes()
	if reason := a.member("reason"); reason != "" && !strings.Contains(reasons, "`"+reason+"`") {
		return fmt.Errorf("the reason %s is not described", reason)
	}
	if id := a.Header.Get("X-Request-Id"); a.member("request_id") != id {
		return fmt.Errorf("request_id %q and X-Request-Id %q differ", a.member("request_id"), id)
	}
	if a.Status == http.StatusMethodNotAllowed && a.Header.Get("Allow") != d.Allow(a.Path) {
		return fmt.Errorf("Allow is %q, want %q", a.Header.Get("Allow"), d.Allow(a.Path))
	}
	return nil
}

// Mutants makes of a JSON text every text that differs by one member that is
// missing, by one too many, or by one value of another type, and says of each
// what was done. It stops when each returns false.
func Mutants(text []byte, each func(what string, mutant []byte) bool) error {
	root, err := decode(text)
	if err != nil {
		return err
	}
	m := &mutator{root: root, each: each}
	m.mutate("", root, func(v any) { m.root = v })
	return m.err
}

type mutator struct {
	root any
	each func(string, []byte) bool
	over bool
	err  error
}

func (m *mutator) report(what string) {
	if m.over {
		return
	}
	var out bytes.Buffer
	if m.err = json.NewEncoder(&out).Encode(m.root); m.err != nil || !m.each(what, out.Bytes()) {
		m.over = true
	}
}

// mutate goes over the value at a pointer; set puts another one in its place.
func (m *mutator) mutate(pointer string, v any, set func(any)) {
	// No schema of ours takes an object with this member, or a text here.
	other := any(map[string]any{"mutant": true})
	if _, isObject := v.(map[string]any); isObject {
		other = "mutant"
	}
	set(other)
	m.report("mistyped " + pointer)
	set(v)
	switch v := v.(type) {
	case []any:
		for i := range v {
			m.mutate(under(pointer, strconv.Itoa(i)), v[i], func(other any) { v[i] = other })
		}
	case map[string]any:
		v["mutant"] = true
		m.report("extra in " + pointer)
		delete(v, "mutant")
		for _, name := range slices.Sorted(maps.Keys(v)) {
			value := v[name]
			delete(v, name)
			m.report("missing " + under(pointer, name))
			v[name] = value
			m.mutate(under(pointer, name), value, func(other any) { v[name] = other })
		}
	}
}
