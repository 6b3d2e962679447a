// Package openapitest holds a service's answers to its OpenAPI 3.1 document. It
// is for tests alone, the tests of every package that answers or describes.
//
// A [Document] is read by its JSON pointers, so what is checked is the text that
// integrators get and no model of it. Schemas are compiled as JSON Schema draft
// 2020-12, the version of OpenAPI 3.1, with content encodings asserted.
//
// The document's words are taken strictly: an answer's status must be described
// (a default counts for its own codes alone), its media type must be exact, each
// of its headers must be described and each required one present, and its body
// must match the schema.
package openapitest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Document is a parsed OpenAPI document. It is for one goroutine.
type Document struct {
	root       any
	compiler   *jsonschema.Compiler
	schemas    map[string]*jsonschema.Schema // by pointer
	operations []Operation
}

// Operation is one method of one path.
type Operation struct {
	Method, Path string
	// Servers are the URLs of the servers that have it, by their description.
	Servers map[string]string
	pointer string
}

// where is the document's name for the compiler.
const where = "https://openapi.test/document.json"

// Parse reads a document.
func Parse(text []byte) (*Document, error) {
	root, err := decode(text)
	if err != nil {
		return nil, err
	}
	d := &Document{root: root, compiler: jsonschema.NewCompiler(), schemas: map[string]*jsonschema.Schema{}}
	d.compiler.DefaultDraft(jsonschema.Draft2020)
	d.compiler.AssertContent()
	if err := d.compiler.AddResource(where, root); err != nil {
		return nil, err
	}
	d.operations = d.listOperations()
	return d, nil
}

// decode reads one JSON value whose objects name no member twice, its numbers
// exact.
func decode(text []byte) (any, error) {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	return v, uniqueMembers(json.NewDecoder(bytes.NewReader(text)))
}

// uniqueMembers reads one value that is known to be JSON.
func uniqueMembers(in *json.Decoder) error {
	type level struct {
		names map[string]bool // nil in a list
		value bool            // a name has been read
	}
	var levels []level
	for {
		token, err := in.Token()
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		top := len(levels) - 1
		if name, isText := token.(string); isText && top >= 0 && levels[top].names != nil && !levels[top].value {
			if levels[top].names[name] {
				return fmt.Errorf("the member %s is there twice", name)
			}
			levels[top].names[name], levels[top].value = true, true
			continue
		}
		if top >= 0 {
			levels[top].value = false
		}
		switch token {
		case json.Delim('{'):
			levels = append(levels, level{names: map[string]bool{}})
		case json.Delim('['):
			levels = append(levels, level{})
		case json.Delim('}'), json.Delim(']'):
			levels = levels[:top]
		}
	}
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// under returns the pointer to a member, or to one of a member.
func under(pointer string, names ...string) string {
	for _, name := range names {
		pointer += "/" + pointerEscapes.Replace(name)
	}
	return pointer
}

// get returns what a pointer points to, and the pointer behind any references;
// nil where there is nothing.
func (d *Document) get(pointer string) (any, string) {
	at := d.root
	for name := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		name = strings.ReplaceAll(strings.ReplaceAll(name, "~1", "/"), "~0", "~")
		switch v := at.(type) {
		case map[string]any:
			at = v[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(v) {
				return nil, pointer
			}
			at = v[i]
		default:
			return nil, pointer
		}
	}
	if object, ok := at.(map[string]any); ok {
		if ref, ok := object["$ref"].(string); ok {
			return d.get(strings.TrimPrefix(ref, "#"))
		}
	}
	return at, pointer
}

// object returns the object that a pointer points to; empty where there is none.
func (d *Document) object(pointer string) (map[string]any, string) {
	v, at := d.get(pointer)
	object, _ := v.(map[string]any)
	return object, at
}

// schema compiles the schema at a pointer.
func (d *Document) schema(pointer string) (*jsonschema.Schema, error) {
	if s := d.schemas[pointer]; s != nil {
		return s, nil
	}
	var fragment strings.Builder
	for name := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		fragment.WriteString("/" + url.PathEscape(name))
	}
	s, err := d.compiler.Compile(where + "#" + fragment.String())
	if err != nil {
		return nil, fmt.Errorf("the schema at %s: %w", pointer, err)
	}
	d.schemas[pointer] = s
	return s, nil
}

// validate holds a value to the schema at a pointer.
func (d *Document) validate(pointer string, v any) error {
	s, err := d.schema(pointer)
	if err != nil {
		return err
	}
	return s.Validate(v)
}

// ValidateAs holds a JSON text to the schema called name.
func (d *Document) ValidateAs(name string, text []byte) error {
	v, err := decode(text)
	if err != nil {
		return err
	}
	return d.validate(under("/components/schemas", name), v)
}

// Codes returns the codes that an error body may have, and the words of the
// description of its reasons.
func (d *Document) Codes() (codes []string, reasons string) {
	code, _ := d.object("/components/schemas/Problem/properties/code")
	list, _ := code["enum"].([]any)
	for _, v := range list {
		codes = append(codes, fmt.Sprint(v))
	}
	reason, _ := d.object("/components/schemas/Problem/properties/reason")
	return codes, fmt.Sprint(reason["description"])
}

// Operations lists all, by path and method.
func (d *Document) Operations() []Operation { return slices.Clone(d.operations) }

func (d *Document) listOperations() []Operation {
	var all []Operation
	paths, _ := d.object("/paths")
	for path, item := range paths {
		members, _ := item.(map[string]any)
		servers := map[string]string{}
		list, _ := members["servers"].([]any)
		for _, v := range list {
			server, _ := v.(map[string]any)
			servers[fmt.Sprint(server["description"])] = fmt.Sprint(server["url"])
		}
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE"} {
			if name := strings.ToLower(method); members[name] != nil {
				all = append(all, Operation{method, path, servers, under("/paths", path, name)})
			}
		}
	}
	slices.SortFunc(all, func(a, b Operation) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Method, b.Method))
	})
	return all
}

// operation finds the one that answers a method of a path, HEAD as GET. Where
// the path does not take the method, taken is false and the operation any other
// one of the path.
func (d *Document) operation(method, path string) (o Operation, taken bool, err error) {
	if method == "HEAD" {
		method = "GET"
	}
	for _, one := range d.operations {
		if one.Path != path {
			continue
		}
		if o = one; one.Method == method {
			return o, true, nil
		}
	}
	if o.Path == "" {
		return o, false, fmt.Errorf("the document has no path %s", path)
	}
	return o, false, nil
}

// Allow returns the methods of a path as a header lists them.
func (d *Document) Allow(path string) string {
	var all []string
	for _, o := range d.operations {
		if o.Path != path {
			continue
		}
		if all = append(all, o.Method); o.Method == "GET" {
			all = append(all, "HEAD")
		}
	}
	return strings.Join(append(all, "OPTIONS"), ", ")
}

// Parameter is one parameter of an operation.
type Parameter struct {
	Name, In string // In: "query", "path" or "header"
	Required bool
	Schema   map[string]any // where a reference leads; numbers are json.Number
}

// Parameters returns the parameters of an operation, in its order.
func (d *Document) Parameters(o *Operation) []Parameter {
	v, at := d.get(under(o.pointer, "parameters"))
	list, _ := v.([]any)
	all := make([]Parameter, 0, len(list))
	for i := range list {
		one, pointer := d.object(under(at, strconv.Itoa(i)))
		schema, _ := d.object(under(pointer, "schema"))
		all = append(all, Parameter{fmt.Sprint(one["name"]), fmt.Sprint(one["in"]), one["required"] == true, schema})
	}
	return all
}

// CheckRequest holds a body to what the operation describes.
func (d *Document) CheckRequest(o *Operation, body []byte) error {
	v, err := decode(body)
	if err != nil {
		return err
	}
	return d.validate(under(o.pointer, "requestBody", "content", mediaType, "schema"), v)
}

// RequestExamples returns the operation's examples of a body, by name.
func (d *Document) RequestExamples(o *Operation) (map[string][]byte, error) {
	out := map[string][]byte{}
	examples, at := d.object(under(o.pointer, "requestBody", "content", mediaType, "examples"))
	for name := range examples {
		example, _ := d.object(under(at, name))
		text, err := json.Marshal(example["value"])
		if err != nil {
			return nil, err
		}
		out[name] = text
	}
	return out, nil
}

// Check holds the document to itself: every reference leads somewhere, every
// schema compiles and is strict (its objects name their members, and take no
// other), every example matches its schema, and every component is used.
func (d *Document) Check() error {
	used := map[string]bool{}
	err := d.walk("", d.root, used)
	for _, kind := range []string{"schemas", "responses", "parameters", "headers", "examples"} {
		all, at := d.object(under("/components", kind))
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if !used[under(at, name)] {
				err = errors.Join(err, fmt.Errorf("%s is used nowhere", under(at, name)))
			}
		}
	}
	return err
}

func (d *Document) walk(pointer string, v any, used map[string]bool) error {
	var err error
	switch v := v.(type) {
	case []any:
		for i := range v {
			err = errors.Join(err, d.walk(under(pointer, strconv.Itoa(i)), v[i], used))
		}
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			target := strings.TrimPrefix(ref, "#")
			used[target] = true
			if there, _ := d.get(target); there == nil {
				err = fmt.Errorf("%s refers to %s, which is not there", pointer, ref)
			}
		}
		// Members that a schema describes may have any name.
		if _, ok := v["schema"]; ok && !strings.HasSuffix(pointer, "/properties") {
			err = errors.Join(err, d.examples(pointer, v))
		}
		// A member called properties stands in a list of members, which has no type.
		_, isSchema := v["type"].(string)
		if properties, ok := v["properties"].(map[string]any); ok && (isSchema || !strings.HasSuffix(pointer, "/properties")) {
			err = errors.Join(err, strict(pointer, v, properties))
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if name != "value" || !strings.HasPrefix(pointer, "/components/examples/") {
				err = errors.Join(err, d.walk(under(pointer, name), v[name], used))
			}
		}
	}
	return err
}

// examples holds the examples beside a schema to it.
func (d *Document) examples(pointer string, v map[string]any) error {
	schema := under(pointer, "schema")
	_, err := d.schema(schema)
	if example, ok := v["example"]; ok && err == nil {
		if bad := d.validate(schema, example); bad != nil {
			err = fmt.Errorf("the example at %s: %w", pointer, bad)
		}
	}
	all, at := d.object(under(pointer, "examples"))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		example, from := d.object(under(at, name))
		if bad := d.validate(schema, example["value"]); bad != nil {
			err = errors.Join(err, fmt.Errorf("the example %s at %s: %w", from, pointer, bad))
		}
	}
	return err
}

// strict reports an object's schema that does not close its members. A part of
// an allOf closes nothing: the part that lists them all does.
func strict(pointer string, v, properties map[string]any) error {
	if v["additionalProperties"] != false && !strings.Contains(pointer, "/allOf/") {
		return fmt.Errorf("%s takes any member", pointer)
	}
	required, _ := v["required"].([]any)
	for _, name := range required {
		if properties[fmt.Sprint(name)] == nil {
			return fmt.Errorf("%s requires %s, which it does not describe", pointer, name)
		}
	}
	return nil
}
