package httpgw

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"blockdesk/catalog"
	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/httpgw/gatewaytest"
	marketapi "blockdesk/httpgw/market"
	rfqapi "blockdesk/httpgw/rfq"
	"blockdesk/httpgw/wire"
	"blockdesk/sdk"
)

// specificationFile is the path of the OpenAPI document in the source.
var specificationFile = filepath.Join("..", "sdk", filepath.FromSlash(sdk.Specification))

// TestExamplesAreAnswers: the example of each market document is the program's answer
// to fixed facts, and that of each adapter a gateway's answer. To update:
// UPDATE_GOLDEN=1 go test ./catalog and then ./httpgw -run Examples.
func TestExamplesAreAnswers(t *testing.T) {
	text, err := os.ReadFile(specificationFile)
	if err != nil {
		t.Fatal(err)
	}
	for path, answer := range answers(t) {
		name, err := exampleOf(text, path)
		if err != nil {
			t.Error(err)
			continue
		}
		start, end, err := exampleAt(text, name)
		if err != nil {
			t.Error(err)
			continue
		}
		var want bytes.Buffer
		if err := json.Indent(&want, bytes.TrimSpace(answer), "        ", "  "); err != nil {
			t.Fatal(err)
		}
		if os.Getenv("UPDATE_GOLDEN") != "" {
			text = bytes.Join([][]byte{text[:start], want.Bytes(), text[end:]}, nil)
		} else if !bytes.Equal(text[start:end], want.Bytes()) {
			t.Errorf("the example %s of %s is not what is answered:\n%s", name, path, want.Bytes())
		}
	}
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(specificationFile, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// answers are bodies by path.
func answers(t *testing.T) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	golden := func(path, name string) {
		body, err := os.ReadFile(filepath.Join("..", "catalog", "testdata", strings.ReplaceAll(name, "/", "-")+".json"))
		if err != nil {
			t.Fatal(err)
		}
		all[path] = body
	}
	for _, d := range catalog.Documents() {
		golden(marketapi.PathMarket+d.Name, d.Name+".live")
		for _, file := range d.Files {
			golden(file, d.Name+".live")
		}
		if d.Legacy != "" {
			golden(d.Legacy, d.Name+".live")
		}
	}
	for _, w := range catalog.WellKnowns() {
		golden(marketapi.PathWellKnown+w.File, strings.TrimSuffix(w.File, ".json"))
	}
	golden(marketapi.PathPools+marketapi.PoolSegment, "pool.live")
	b := gatewaytest.NewBooks(t)
	g := start(t, testOptions(b), b, testDependencies())
	for path, target := range map[string]string{
		marketapi.PathCoinGecko + "orderbook":                   "?ticker_id=SLUSD_USDC&depth=4",
		marketapi.PathCoinGecko + "historical_trades":           "?ticker_id=SLUSD_USDC&limit=2",
		marketapi.PathCoinMarketCap + "orderbook/{market_pair}": "92C_SLUSD",
		marketapi.PathCoinMarketCap + "trades/{market_pair}":    "92C_SLUSD?since=0",
		marketapi.PathDEXScreener + "latest-block":              "",
		marketapi.PathDEXScreener + "asset":                     "?id=SLUSDmint1111111111111111111111111111111111",
		marketapi.PathDEXScreener + "pair":                      "?id=SLUSD_USDC",
		marketapi.PathDEXScreener + "events":                    "?fromBlock=0&toBlock=9223372036854775807",
	} {
		below, _, _ := strings.Cut(path, "{")
		resp, body := gatewaytest.Do(t, g.BaseAddr(), "GET", below+target, "")
		if resp.StatusCode != 200 {
			t.Fatalf("%s%s: status %d: %s", below, target, resp.StatusCode, body)
		}
		all[path] = body
	}
	return all
}

// exampleOf returns the name of the only example of a GET's answer.
func exampleOf(text []byte, path string) (string, error) {
	var d struct {
		Paths map[string]struct {
			Get struct {
				Responses map[string]struct {
					Content map[string]struct {
						Examples map[string]struct {
							Ref string `json:"$ref"`
						} `json:"examples"`
					} `json:"content"`
				} `json:"responses"`
			} `json:"get"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return "", err
	}
	examples := d.Paths[path].Get.Responses["200"].Content["application/json"].Examples
	for name, example := range examples {
		if len(examples) == 1 && example.Ref == "#/components/examples/"+name {
			return name, nil
		}
	}
	return "", fmt.Errorf("%s has the examples %v, want one", path, examples)
}

// exampleAt returns the position of the value of a component.
func exampleAt(text []byte, name string) (start, end int, err error) {
	head := fmt.Appendf(nil, "\n      %q: {\n        \"value\": ", name)
	if n := bytes.Count(text, head); n != 1 {
		return 0, 0, fmt.Errorf("%d examples are called %s", n, name)
	}
	start = bytes.Index(text, head) + len(head)
	in := json.NewDecoder(bytes.NewReader(text[start:]))
	var value json.RawMessage
	if err := in.Decode(&value); err != nil {
		return 0, 0, err
	}
	return start, start + int(in.InputOffset()), nil
}

// requestIDMember matches the member that differs in each answer.
var requestIDMember = regexp.MustCompile(`"request_id": ?"[^"]*"`)

// TestErrorExamplesAreAnswers: the example of each error that a gateway can produce is
// its answer, except the request id. To update: UPDATE_GOLDEN=1.
func TestErrorExamplesAreAnswers(t *testing.T) {
	text, err := os.ReadFile(specificationFile)
	if err != nil {
		t.Fatal(err)
	}
	for name, answer := range errorAnswers(t) {
		start, end, err := errorExampleAt(text, name)
		if err != nil {
			t.Error(err)
			continue
		}
		var want bytes.Buffer
		if err := json.Indent(&want, bytes.TrimSpace(answer), "        ", "  "); err != nil {
			t.Fatal(err)
		}
		is := text[start:end]
		fresh := requestIDMember.ReplaceAll(want.Bytes(), requestIDMember.Find(is))
		if os.Getenv("UPDATE_GOLDEN") != "" {
			text = bytes.Join([][]byte{text[:start], fresh, text[end:]}, nil)
		} else if !bytes.Equal(is, fresh) {
			t.Errorf("the example %s is not what is answered:\n%s", name, fresh)
		}
	}
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(specificationFile, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// errorAnswers has the bodies of refusals by the name of their example.
func errorAnswers(t *testing.T) map[string][]byte {
	t.Helper()
	const quote, depth = rfqapi.PathRFQ + "quote", "/api/v1/market/depth"
	get := func(target, more string) string {
		return "GET " + target + " HTTP/1.1\r\nHost: test\r\n" + more + "\r\n"
	}
	chain := &fakeChain{verdict: desk.Verdict{Refused: event.ReasonPaymentMismatch, Mismatch: "amount_short"}}
	c := newConforming(t, chain, nil)
	hasty := newConforming(t, nil, func(o *Options) { o.ReadTimeout = 200 * time.Millisecond })
	narrow := newConforming(t, nil, func(o *Options) { o.Market = wire.Rate{PerMinute: 1, Burst: 1} })
	narrow.send(t, depth, get(depth+"?symbol=SLUSD/USDC", ""), 200)
	all := map[string][]byte{}
	for name, r := range map[string]struct {
		of        *conforming
		path, raw string
		status    int
	}{
		"RateLimited":          {narrow, depth, get(depth+"?symbol=SLUSD/USDC", ""), 429},
		"ChainUnavailable":     {narrow, rfqapi.PathModular, postText(rfqapi.PathModular, claimBody), 503},
		"VerifyUnavailable":    {narrow, rfqapi.PathNativeVerify, postText(rfqapi.PathNativeVerify, paymentBody), 503},
		"MissingSymbol":        {c, depth, get(depth, ""), 400},
		"UnknownSymbol":        {c, depth, get(depth+"?symbol=BTC/USD", ""), 400},
		"InvalidLimit":         {c, depth, get(depth+"?symbol=SLUSD/USDC&limit=101", ""), 400},
		"MethodNotAllowed":     {c, depth, "DELETE " + depth + " HTTP/1.1\r\nHost: test\r\n\r\n", 405},
		"HeadersTooLarge":      {c, depth, get(depth, "X: "+strings.Repeat("x", 64<<10)+"\r\n"), 431},
		"InvalidJSON":          {c, quote, postText(quote, "["+quoteBody+"]"), 400},
		"MissingField":         {c, quote, postText(quote, strings.Replace(quoteBody, `,"rail":"USDC"`, "", 1)), 400},
		"NotOnLadder":          {c, quote, postText(quote, strings.Replace(quoteBody, `"250"`, `"500"`, 1)), 400},
		"RequestTimeout":       {hasty, quote, "POST " + quote + " HTTP/1.1\r\nHost: test\r\nContent-Length: 9\r\n\r\n{", 408},
		"BodyTooLarge":         {c, quote, postText(quote, strings.Repeat(" ", 70_000)), 413},
		"UnsupportedMediaType": {c, quote, strings.Replace(postText(quote, quoteBody), "application/json", "application/x-www-form-urlencoded", 1), 415},
		"PaymentMismatch":      {c, rfqapi.PathNativeVerify, postText(rfqapi.PathNativeVerify, paymentBody), 422},
		"UnknownClaim":         {c, claimsPath + "{claim_id}", get(claimsPath+"C0000000000001", ""), 404},
	} {
		all[name] = r.of.send(t, r.path, r.raw, r.status).Body
	}
	_, all["UnknownRoute"] = gatewaytest.Do(t, c.g.BaseAddr(), "GET", "/api/v1/rfq/nothing", "")
	return all
}

// errorExampleAt is exampleAt for an example with a summary.
func errorExampleAt(text []byte, name string) (start, end int, err error) {
	head := regexp.MustCompile(`\n      "`+name+`": \{\n        "summary": .*\n        "value": `).FindAllIndex(text, -1)
	if len(head) != 1 {
		return 0, 0, fmt.Errorf("%d examples are called %s", len(head), name)
	}
	start = head[0][1]
	in := json.NewDecoder(bytes.NewReader(text[start:]))
	var value json.RawMessage
	if err := in.Decode(&value); err != nil {
		return 0, 0, err
	}
	return start, start + int(in.InputOffset()), nil
}
