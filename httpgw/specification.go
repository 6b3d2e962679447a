package httpgw

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
)

// specificationAlias is the document's address among the market data (spec,
// 4.2).
const specificationAlias = "/api/v1/market/openapi.json"

// specificationStatic is its address among the static files.
const specificationStatic = "/openapi.json"

// specificationRoutes are the rows of the machine-readable description. There
// are none without one. It is rendered for the first who asks: the table is made
// before the ports are known, and no request comes earlier than they are.
func (g *Gateway) specificationRoutes() []route {
	if len(g.opts.Specification) == 0 {
		return nil
	}
	rendered := sync.OnceValue(func() *page { return hashPage(publish(g.opts.Specification, g.URLs())) })
	row := func(path string, limit limitClass, in group) route {
		return route{
			path: path, method: methodGet, surfaces: onBase | onAPI, cache: configData, limit: limit, group: in,
			read: func([]byte) (*page, *problem) { return rendered(), nil },
		}
	}
	return []route{
		row(specificationPath, unlimited, ""), // GET / names it by a member of its own
		row(specificationAlias, marketLimit, groupMarket),
		row(specificationStatic, marketLimit, ""),
	}
}

// publish renders a description, which must be JSON, for its readers: without
// white space, members in their order, and with this service's URLs in place of
// those of the default addresses. Examples name URLs as well as servers do, and
// both must work as they are printed, so the whole text is gone over.
func publish(document []byte, urls URLs) []byte {
	var compact bytes.Buffer
	if err := json.Compact(&compact, document); err != nil {
		panic("httpgw: a specification that is not JSON has passed Options.Validate: " + err.Error())
	}
	return []byte(strings.NewReplacer(
		"http://"+DefaultBase, insideText(urls.Base),
		"http://"+DefaultAPI, insideText(urls.API),
		"ws://"+DefaultWS, insideText(urls.WS),
	).Replace(compact.String()))
}

// insideText returns a text as it stands between the quotes of a JSON string.
func insideText(text string) string {
	quoted := appendText(nil, text)
	return string(quoted[1 : len(quoted)-1])
}
