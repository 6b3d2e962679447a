package site

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"

	"blockdesk/catalog"
	"blockdesk/httpgw/wire"
)

// Other paths of the OpenAPI document (docs/specification.md 4.2).
const (
	SpecificationAlias  = "/api/v1/market/openapi.json"
	specificationStatic = "/openapi.json"
)

// specificationRoutes returns the routes of the OpenAPI document and the API reference.
func (e *Endpoints) specificationRoutes() []wire.Route {
	if len(e.o.Specification) == 0 {
		return nil
	}
	read := published(e.o.Specification, &e.o.URLs)
	row := func(path string, limit wire.LimitClass, in wire.Group) wire.Route {
		return wire.Get(path, wire.OnREST, wire.ConfigData, limit, in, read)
	}
	return append(fileRoutes(e.reference),
		row(wire.SpecificationPath, wire.Unlimited, ""), // GET / has a member for it
		row(SpecificationAlias, wire.MarketLimit, wire.GroupMarket),
		row(specificationStatic, wire.MarketLimit, ""),
	)
}

// published returns the reader of an API document. It is rendered on the first request, so
// that it does not delay the start.
func published(document []byte, urls *catalog.URLs) wire.Reader {
	rendered := sync.OnceValue(func() *wire.Page { return wire.NewPage(Publish(document, urls)) })
	return func([]byte) (*wire.Page, *wire.Problem) { return rendered(), nil }
}

// Publish returns an API document, which must be JSON, without white space and with this
// service's URLs instead of the default addresses. It replaces them in the whole text,
// because the URLs of servers and of examples must both work. A server of an AsyncAPI
// document has host and protocol in two consecutive members.
func Publish(document []byte, urls *catalog.URLs) []byte {
	var compact bytes.Buffer
	if err := json.Compact(&compact, document); err != nil {
		panic("httpgw: a specification that is not JSON has passed Options.Validate: " + err.Error())
	}
	return []byte(strings.NewReplacer(
		"http://"+wire.DefaultBase, insideText(urls.Base),
		"http://"+wire.DefaultAPI, insideText(urls.API),
		"ws://"+wire.DefaultWS, insideText(urls.WS),
		asyncServer("ws://"+wire.DefaultWS), asyncServer(urls.WS),
		asyncServer("ws://"+wire.DefaultBase), asyncServer("ws"+strings.TrimPrefix(urls.Base, "http")),
		asyncServer("http://"+wire.DefaultBase), asyncServer(urls.Base),
		asyncServer("http://"+wire.DefaultAPI), asyncServer(urls.API),
	).Replace(compact.String()))
}

// insideText returns text escaped for the inside of a JSON string.
func insideText(text string) string {
	quoted := wire.AppendText(nil, text)
	return string(quoted[1 : len(quoted)-1])
}

// asyncServer returns the members of a server at address in an AsyncAPI document.
func asyncServer(address string) string {
	protocol, rest, _ := strings.Cut(address, "://")
	host, path, below := strings.Cut(rest, "/")
	members := `"host":"` + insideText(host) + `","protocol":"` + insideText(protocol) + `"`
	if below && path != "" {
		members += `,"pathname":"/` + insideText(path) + `"`
	}
	return members
}
