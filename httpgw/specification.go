package httpgw

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"

	"blockdesk/catalog"
)

// specificationAlias is the document's address among the market data (spec,
// 4.2).
const specificationAlias = "/api/v1/market/openapi.json"

// specificationStatic is its address among the static files.
const specificationStatic = "/openapi.json"

// specificationRoutes are the rows of the machine-readable description, and of the
// page that shows it. There are none without one. It is rendered for the first
// request: no start waits for it.
func (e *siteEndpoints) specificationRoutes() []route {
	if len(e.o.Specification) == 0 {
		return nil
	}
	rendered := sync.OnceValue(func() *page { return hashPage(publish(e.o.Specification, &e.o.URLs)) })
	row := func(path string, limit limitClass, in group) route {
		return route{
			path: path, method: methodGet, surfaces: onBase | onAPI, cache: configData, limit: limit, group: in,
			read: func([]byte) (*page, *problem) { return rendered(), nil },
		}
	}
	return append(fileRoutes(e.reference),
		row(specificationPath, unlimited, ""), // GET / names it by a member of its own
		row(specificationAlias, marketLimit, groupMarket),
		row(specificationStatic, marketLimit, ""),
	)
}

// publish renders a description, which must be JSON, for its readers: without
// white space, members in their order, and with this service's URLs in place of
// those of the default addresses. Examples name URLs as well as servers do, and
// both must work as they are printed, so the whole text is gone over. A server of
// an AsyncAPI document names host and protocol in two members, one behind the
// other.
func publish(document []byte, urls *catalog.URLs) []byte {
	var compact bytes.Buffer
	if err := json.Compact(&compact, document); err != nil {
		panic("httpgw: a specification that is not JSON has passed Options.Validate: " + err.Error())
	}
	return []byte(strings.NewReplacer(
		"http://"+DefaultBase, insideText(urls.Base),
		"http://"+DefaultAPI, insideText(urls.API),
		"ws://"+DefaultWS, insideText(urls.WS),
		asyncServer("ws://"+DefaultWS), asyncServer(urls.WS),
		asyncServer("ws://"+DefaultBase), asyncServer("ws"+strings.TrimPrefix(urls.Base, "http")),
		asyncServer("http://"+DefaultBase), asyncServer(urls.Base),
		asyncServer("http://"+DefaultAPI), asyncServer(urls.API),
	).Replace(compact.String()))
}

// insideText returns a text as it stands between the quotes of a JSON string.
func insideText(text string) string {
	quoted := appendText(nil, text)
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
