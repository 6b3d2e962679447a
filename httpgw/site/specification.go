package site

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"

	"blockdesk/catalog"
	"blockdesk/httpgw/wire"
)

// SpecificationAlias is the document's address among the market data (spec,
// 4.2).
const SpecificationAlias = "/api/v1/market/openapi.json"

// specificationStatic is its address among the static files.
const specificationStatic = "/openapi.json"

// specificationRoutes are the rows of the machine-readable description, and of the
// page that shows it. There are none without one. It is rendered for the first
// request: no start waits for it.
func (e *Endpoints) specificationRoutes() []wire.Route {
	if len(e.o.Specification) == 0 {
		return nil
	}
	read := published(e.o.Specification, &e.o.URLs)
	row := func(path string, limit wire.LimitClass, in wire.Group) wire.Route {
		return wire.Get(path, wire.OnREST, wire.ConfigData, limit, in, read)
	}
	return append(fileRoutes(e.reference),
		row(wire.SpecificationPath, wire.Unlimited, ""), // GET / names it by a member of its own
		row(SpecificationAlias, wire.MarketLimit, wire.GroupMarket),
		row(specificationStatic, wire.MarketLimit, ""),
	)
}

// published returns the reader of a description, which is rendered for the first
// request: no start waits for it.
func published(document []byte, urls *catalog.URLs) wire.Reader {
	rendered := sync.OnceValue(func() *wire.Page { return wire.NewPage(Publish(document, urls)) })
	return func([]byte) (*wire.Page, *wire.Problem) { return rendered(), nil }
}

// Publish renders a description, which must be JSON, for its readers: without
// white space, members in their order, and with this service's URLs in place of
// those of the default addresses. Examples name URLs as well as servers do, and
// both must work as they are printed, so the whole text is gone over. A server of
// an AsyncAPI document names host and protocol in two members, one behind the
// other.
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

// insideText returns a text as it stands between the quotes of a JSON string.
func insideText(text string) string {
	quoted := wire.AppendText(nil, text)
	return string(quoted[1 : len(quoted)-1])
}

// asyncServer returns the members by which an AsyncAPI document names the server
// at a URL.
func asyncServer(address string) string {
	protocol, rest, _ := strings.Cut(address, "://")
	host, path, below := strings.Cut(rest, "/")
	members := `"host":"` + insideText(host) + `","protocol":"` + insideText(protocol) + `"`
	if below && path != "" {
		members += `,"pathname":"/` + insideText(path) + `"`
	}
	return members
}
