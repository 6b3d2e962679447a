package catalog

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	generate "github.com/google/jsonschema-go/jsonschema"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// described returns all documents by the name of their schema.
func described(f *Facts) map[string]any {
	all := map[string]any{}
	for _, d := range Documents() {
		all[d.Schema] = d.Render(f, d.Schema)
	}
	for _, w := range WellKnowns() {
		all[w.Schema] = w.Render(f)
	}
	if pool, ok := PoolByAddress(live(), PoolSchema, "PooLSLUSDUSDC1111111111111111111111111111111"); ok {
		all[PoolSchema] = pool
	}
	return all
}

// schemaOf generates the schema of a document's type. Every member without omitempty is
// required, and no other members are allowed.
func schemaOf(t *testing.T, name string, document any) []byte {
	t.Helper()
	decimal := &generate.Schema{Type: "string", Pattern: `^(0|[1-9][0-9]*)(\.[0-9]+)?$`}
	s, err := generate.ForType(reflect.TypeOf(document).Elem(), &generate.ForOptions{TypeSchemas: map[reflect.Type]*generate.Schema{
		reflect.TypeFor[Decimal](): decimal,
		reflect.TypeFor[Time](): {
			Types: []string{"string", "null"}, Pattern: `^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$`,
		},
		reflect.TypeFor[Epoch]():      {Type: "string", Pattern: "^e[0-9]+$"},
		reflect.TypeFor[Percent]():    {Type: "number"},
		reflect.TypeFor[rate]():       {Type: "number"},
		reflect.TypeFor[consumable](): {Enum: []any{true, false, "partially"}},
	}})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	plainLists(s)
	s.Schema, s.ID = "https://json-schema.org/draft/2020-12/schema", "urn:blockdesk:"+name
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(text, '\n')
}

// plainLists makes arrays not nullable, because no list of ours is null.
func plainLists(s *generate.Schema) {
	if s == nil {
		return
	}
	if slices.Equal(s.Types, []string{"null", "array"}) {
		s.Types, s.Type = nil, "array"
	}
	plainLists(s.Items)
	plainLists(s.AdditionalProperties)
	for _, member := range s.Properties {
		plainLists(member)
	}
}

// TestSchemasAreOfTheTypes: the schema files equal those generated from the types. After
// an intended change: UPDATE_GOLDEN=1 go test ./catalog
func TestSchemasAreOfTheTypes(t *testing.T) {
	wanted := map[string]bool{}
	for name, document := range described(live()) {
		file := filepath.Join("schemas", name+".json")
		want := schemaOf(t, name, document)
		wanted[filepath.Base(file)] = true
		if os.Getenv("UPDATE_GOLDEN") != "" {
			if err := os.WriteFile(file, want, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s differs from its type", file)
		}
	}
	files, err := os.ReadDir("schemas")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !wanted[file.Name()] {
			t.Errorf("%s has no document", file.Name())
		}
	}
}

// TestDocumentsMatchTheirSchemas validates all documents with a chain, without one, and of
// empty facts, with another library than the one that generated the schemas.
func TestDocumentsMatchTheirSchemas(t *testing.T) {
	text, err := json.Marshal(Schemas())
	if err != nil {
		t.Fatal(err)
	}
	var served struct {
		Count   int
		Schemas map[string]json.RawMessage
	}
	if err := json.Unmarshal(text, &served); err != nil || served.Count != len(served.Schemas) || served.Count < 30 {
		t.Fatalf("%d schemas, count says %d: %v", len(served.Schemas), served.Count, err)
	}
	for state, f := range map[string]*Facts{"nothing": {}, "bare": bare(), "live": live()} {
		for name, document := range described(f) {
			if err := matches(served.Schemas[name], Encode(document)); err != nil {
				t.Errorf("%s, %s: %v", name, state, err)
			}
		}
	}
	if matches(served.Schemas[PoolSchema], []byte(`{"ok":true}`)) == nil {
		t.Error("a schema takes anything")
	}
}

func matches(schema, document []byte) error {
	s, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return err
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("https://schema.test/", s); err != nil {
		return err
	}
	compiled, err := c.Compile("https://schema.test/")
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return err
	}
	return compiled.Validate(v)
}

// TestTokenListSchema validates the list against Uniswap's published schema (npm
// @uniswap/token-lists 1.0.0-beta.35, MIT), which consumers use.
func TestTokenListSchema(t *testing.T) {
	schema, err := os.ReadFile(filepath.Join("testdata", "uniswap", "tokenlist.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	f := live()
	f.Service.Network = strings.Repeat("n", maxExtension+1)
	if err := matches(schema, Encode(TokenList(f, ""))); err != nil {
		t.Error(err)
	}
	f.Tokens[0].LogoURI = "not a URI"
	if matches(schema, Encode(TokenList(f, ""))) == nil {
		t.Error("the published schema takes what is no URI")
	}
}
