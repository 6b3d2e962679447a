package catalog

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
)

// header begins the documents whose layout is our choice.
type header struct {
	OK      bool   `json:"ok"`
	Schema  string `json:"schema"`
	Version string `json:"api_version"`
	At      Time   `json:"timestamp_exact"`
	Network string `json:"execution_network"`
}

func newHeader(f *Facts, schema string) header {
	return header{OK: true, Schema: schema, Version: APIVersion, At: f.At, Network: f.Service.Network}
}

// configHeader returns the header of a document that depends on the configuration only.
func configHeader(f *Facts, schema string) header {
	h := newHeader(f, schema)
	h.At = f.Service.ConfiguredAt
	return h
}

// records returns a record of each element of list; never nil, so that JSON has [].
func records[T, R any](f *Facts, list []T, record func(*Facts, *T) R) []R {
	all := make([]R, 0, len(list))
	for i := range list {
		all = append(all, record(f, &list[i]))
	}
	return all
}

// Encode returns the JSON of a document on one line, without HTML escapes. It panics
// if the value cannot be encoded.
func Encode(value any) []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		panic("catalog: encode a document: " + err.Error())
	}
	return bytes.TrimSuffix(out.Bytes(), []byte{'\n'})
}

// hashOf returns "sha256:" and the hash of a value's JSON, members in the order
// of the type.
func hashOf(value any) string {
	sum := sha256.Sum256(Encode(value))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// nullable returns a pointer to text; nil, JSON's null, if text is empty.
func nullable(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func cut(text string, most int) string { return text[:min(len(text), most)] }

// readPath returns the path of a read below /api/v1/market/, or of UDF, with the query that it
// requires, for the canonical pair, so that every published link answers. ok is false if
// there is nothing to read now.
func (f *Facts) readPath(name string) (path string, ok bool) {
	p := f.canonical()
	path = marketPath(name)
	switch name {
	case "ticker", "depth", "klines", "trades":
		path += "?symbol=" + strings.ReplaceAll(p.Symbol, "/", "%2F")
	case "pools/{pool_address}":
		i := slices.IndexFunc(f.Pairs, func(p Pair) bool { return p.Pool.wasRead() })
		if i < 0 {
			return "", false
		}
		path = marketPath("pools/" + f.Pairs[i].Pool.Address)
	case "adapters/coingecko/orderbook", "adapters/coingecko/historical_trades":
		path += "?ticker_id=" + Ticker(p.Symbol)
	case "adapters/dexscreener/asset":
		path += "?id=" + f.token(p.Base).asset()
	case "adapters/dexscreener/pair":
		path += "?id=" + Ticker(p.Symbol)
	case "udf/config", "udf/search", "udf/time":
		path = "/" + name
	case "udf/symbols":
		path = "/" + name + "?symbol=" + strings.ReplaceAll(p.Symbol, "/", "%2F")
	case "udf/history":
		path = "/" + name + "?symbol=" + strings.ReplaceAll(p.Symbol, "/", "%2F") + "&resolution=60&countback=24"
	case "adapters/dexscreener/events":
		path += "?fromBlock=0&toBlock=0"
	}
	return strings.ReplaceAll(path, "{market_pair}", Ticker(p.Symbol)), true
}

func marketPath(name string) string { return "/api/v1/market/" + name }

// files returns the URLs of files; never nil.
func (u *URLs) files(paths ...string) []string {
	all := make([]string, 0, len(paths))
	for _, path := range paths {
		all = append(all, u.Base+path)
	}
	return all
}

// ageAt returns the age of then at Facts.At in whole seconds; nil if then is none.
func ageAt(f *Facts, then Time) *int64 {
	if then == 0 {
		return nil
	}
	age := seconds(then, f.At)
	return &age
}

// dataMode returns data_mode. Its values are our choice.
func dataMode(f *Facts) string {
	switch {
	case !f.Chain.Configured:
		return "engine_live"
	case f.Chain.Synced:
		return "engine_and_chain_live"
	default:
		return "engine_live_chain_last_known"
	}
}

// proofScope returns proof_scope. Its values are our choice.
func proofScope(f *Facts) string {
	if !f.Chain.Configured {
		return "matched_books"
	}
	return "matched_books_and_finalized_chain_reads"
}

// chainFallback reports whether the chain's figures are not live: they are the last
// known ones, or there are none.
func chainFallback(f *Facts) bool { return !f.Chain.Configured || !f.Chain.Synced }

// source returns the member source. Its values are our choice.
func (p *Pair) source() string {
	if p.NoBook {
		return "mirrored_pool"
	}
	return p.Source.String() + "_book"
}

// Paths of the OpenAPI document and of the SDK (docs/specification.md 2.4 and 4.2).
const (
	specificationFile = "/public-sdk/openapi/svc_public_api_v1.json"
	sdkFolder         = "/public-sdk/"
)
