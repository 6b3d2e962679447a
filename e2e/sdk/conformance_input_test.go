package sdk

import (
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"blockdesk/e2e/programtest"
	"blockdesk/sdk/openapitest"
)

// The document says what each parameter may be. This part asks every route with
// every parameter at the ends of its range, and with everything beyond it that a
// client may send by mistake or on purpose.

// rightParameters are values of parameters that must be there.
var rightParameters = map[string]string{
	"symbol": programtest.Symbol, "ticker_id": "SLUSD_USDC", "fromBlock": "0", "toBlock": "9223372036854775807",
	"resolution": "60",
}

// udfPath begins the paths of TradingView's Universal Data Feed.
const udfPath = "/udf/"

// hostile are values that no parameter takes; some are only ever sent escaped.
var hostile = []string{
	"%00", "%ff", "%C3%28", "%E2%80%AE", "%0d%0aX-Injected:%201", "<script>", "%27%20OR%201=1--", "..%2f..%2f", "%", "%4", "%zz", "%25%32%30",
	"💥", strings.Repeat("x", 97), strings.Repeat("9", 4000), "null", "{}", "[]", "undefined", "NaN", "-0", "0x10", "1e3", "%D9%A3",
}

// parameters asks a read with right and wrong values of each query parameter.
func (c *conformance) parameters(o *openapitest.Operation, address string) {
	if o.Method != "GET" || o.Path == streamPath || strings.HasPrefix(o.Path, udfPath) {
		return // the stream's own test has its refusals
	}
	all, path := c.d.Parameters(o), segments.Replace(o.Path)
	for _, p := range all {
		if p.In != "query" {
			continue
		}
		base := url.Values{}
		for _, other := range all {
			if other.In == "query" && other.Required && other.Name != p.Name {
				base.Set(other.Name, c.rightValue(o, other.Name))
			}
		}
		for _, value := range rightValues(&p) {
			c.expect(200, "", "", "GET", address, o.Path, withParameter(path, base, p.Name, value), "")
		}
		wrong := map[string]string{} // value to code
		for _, value := range append(wrongValues(&p), hostile...) {
			wrong[value] = codeOf(&p, value)
		}
		for value, code := range wrong {
			c.refused(o, address, withParameter(path, base, p.Name, value), code, p.Name)
		}
		right := c.rightValue(o, p.Name)
		twice := withParameter(path, base, p.Name, right) + "&" + p.Name + "=" + right
		c.refused(o, address, twice, repeatedCode(p.Name), p.Name)
		if p.Required {
			c.refused(o, address, path+"?"+base.Encode(), "MISSING_FIELD", p.Name)
		}
	}
}

// rightValue is a value that a parameter may have.
func (c *conformance) rightValue(o *openapitest.Operation, name string) string {
	switch {
	case name == "id" && strings.HasSuffix(o.Path, "/pair"):
		return "SLUSD_USDC"
	case name == "id":
		return "92C"
	case rightParameters[name] != "":
		return rightParameters[name]
	case name == "type":
		return "buy"
	case name == "interval" || name == "timeframe":
		return "1h"
	default:
		return "1"
	}
}

func withParameter(path string, base url.Values, name, value string) string {
	query := base.Encode()
	if query != "" {
		query += "&"
	}
	return path + "?" + query + name + "=" + value
}

// rightValues are all words of a list, or both ends of a range; and a digit that is
// escaped, as RFC 3986 lets a client send any.
func rightValues(p *openapitest.Parameter) (all []string) {
	if words, ok := p.Schema["enum"].([]any); ok {
		for _, word := range words {
			all = append(all, fmt.Sprint(word))
		}
	}
	for _, end := range []string{"minimum", "maximum"} {
		if n, ok := p.Schema[end].(json.Number); ok {
			all = append(all, n.String())
		}
	}
	if p.Schema["type"] == "integer" {
		all = append(all, "%31")
	}
	return all
}

// wrongValues lie next to what is right.
func wrongValues(p *openapitest.Parameter) []string {
	all := []string{"", "%20", "x"}
	if p.Schema["type"] == "integer" {
		all = append(all, "-1", "+1", "1.0", "%201", "1%20", "%2B1", "%2d1", "1%2e0", "%C3%97", "%3", "1%3", "%g1", "%D9%A1", "1,000", "18446744073709551616", "9223372036854775808")
		if low, err := strconv.ParseInt(fmt.Sprint(p.Schema["minimum"]), 10, 64); err == nil {
			all = append(all, strconv.FormatInt(low-1, 10))
		}
		if high, err := strconv.ParseInt(fmt.Sprint(p.Schema["maximum"]), 10, 64); err == nil && high < math.MaxInt64 {
			all = append(all, strconv.FormatInt(high+1, 10))
		}
	}
	for _, value := range rightValues(p) {
		if upper := strings.ToUpper(value); upper != value {
			all = append(all, upper, value+"%00")
		}
	}
	return all
}

// naming are parameters that name something: what they do not name is unknown.
var naming = []string{"symbol", "ticker_id", "id"}

func codeOf(p *openapitest.Parameter, value string) string {
	switch {
	case value == "" && slices.Contains(naming, p.Name):
		return "MISSING_FIELD"
	case slices.Contains(naming, p.Name):
		return "UNKNOWN_SYMBOL"
	case p.Name == "limit":
		return "INVALID_LIMIT"
	default:
		return "INVALID_FIELD"
	}
}

func repeatedCode(name string) string {
	if name == "limit" {
		return "INVALID_LIMIT"
	}
	return "INVALID_FIELD"
}

// refused: a GET gets this code, which names the parameter; a HEAD gets the same
// without a body, and the method is judged before the parameter is.
func (c *conformance) refused(o *openapitest.Operation, address, target, code, field string) {
	c.t.Helper()
	a := c.send("GET", address, o.Path, target, "")
	var got struct{ Code, Field string }
	if err := json.Unmarshal(a.Body, &got); err != nil || a.Status != 400 || got.Code != code || got.Field != field {
		c.t.Errorf("GET %s%.120s: status %d %s of %s (%v), want 400 %s of %s", address, target, a.Status, got.Code, got.Field, err, code, field)
	}
	if head := c.send("HEAD", address, o.Path, target, ""); head.Status != 400 || len(head.Body) > 0 {
		c.t.Errorf("HEAD %s%.120s: status %d with %d bytes", address, target, head.Status, len(head.Body))
	}
	for method, want := range map[string]int{"POST": 405, "OPTIONS": 204} {
		if other := c.send(method, address, o.Path, target, ""); other.Status != want {
			c.t.Errorf("%s %s%.120s: status %d, want %d", method, address, target, other.Status, want)
		}
	}
}
