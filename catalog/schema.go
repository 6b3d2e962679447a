package catalog

import (
	"embed"
	"encoding/json"
	"io/fs"
	"strings"
)

// PoolSchema names the JSON Schema of the document that PoolByAddress returns.
const PoolSchema = "svc_market_pool_v1"

// schemaFiles are generated from the types by the tests, which also validate every
// document against them.
//
//go:embed schemas/*.json
var schemaFiles embed.FS

// schemaCatalog is the answer of market/schemas.
type schemaCatalog struct {
	OK      bool                       `json:"ok"`
	Schema  string                     `json:"schema"`
	Version string                     `json:"api_version"`
	Count   int                        `json:"count"`
	Schemas map[string]json.RawMessage `json:"schemas"` // by the name in a document's member schema
}

// SchemasSchema names the document of schemas, which has no schema itself.
const SchemasSchema = "svc_market_schemas_v1"

// Schemas returns the JSON Schemas (draft 2020-12) of all documents.
func Schemas() any {
	c := &schemaCatalog{OK: true, Schema: SchemasSchema, Version: APIVersion, Schemas: map[string]json.RawMessage{}}
	err := fs.WalkDir(schemaFiles, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := schemaFiles.ReadFile(path)
		c.Schemas[strings.TrimSuffix(entry.Name(), ".json")] = text
		return err
	})
	if err != nil {
		panic("catalog: read an embedded schema: " + err.Error())
	}
	c.Count = len(c.Schemas)
	return c
}
