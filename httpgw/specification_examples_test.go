package httpgw

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"blockdesk/httpgw/catalog"
	"blockdesk/sdk"
)

// specificationFile is where the specification is in the source.
var specificationFile = filepath.Join("..", "sdk", filepath.FromSlash(sdk.Specification))

// TestExamplesAreAnswers: the example of each market document is what the program
// answers to fixed facts, and that of each adapter with a query what a gateway
// answers. After a change that is meant: UPDATE_GOLDEN=1 go test ./httpgw/catalog
// and then the same of ./httpgw -run Examples.
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
		body, err := os.ReadFile(filepath.Join("catalog", "testdata", strings.ReplaceAll(name, "/", "-")+".json"))
		if err != nil {
			t.Fatal(err)
		}
		all[path] = body
	}
	for _, d := range catalog.Documents() {
		golden(pathMarket+d.Name, d.Name+".live")
		for _, file := range d.Files {
			golden(file, d.Name+".live")
		}
		if d.Legacy != "" {
			golden(d.Legacy, d.Name+".live")
		}
	}
	for _, w := range catalog.WellKnowns() {
		golden(pathWellKnown+w.File, strings.TrimSuffix(w.File, ".json"))
	}
	golden(pathPools+poolSegment, "pool.live")
	b := newBooks(t)
	g := start(t, testOptions(b), b, testDoors())
	for path, target := range map[string]string{
		pathGecko + "orderbook":             "?ticker_id=SLUSD_USDC&depth=4",
		pathGecko + "historical_trades":     "?ticker_id=SLUSD_USDC&limit=2",
		pathCap + "orderbook/{market_pair}": "92C_SLUSD",
		pathCap + "trades/{market_pair}":    "92C_SLUSD",
		pathScreener + "latest-block":       "",
		pathScreener + "asset":              "?id=SLUSDmint1111111111111111111111111111111111",
		pathScreener + "pair":               "?id=SLUSD_USDC",
		pathScreener + "events":             "?fromBlock=0&toBlock=9223372036854775807",
	} {
		below, _, _ := strings.Cut(path, "{")
		resp, body := ask(t, g.BaseAddr(), "GET", below+target, "")
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

// exampleAt returns where the value of a component stands. Those of schemas begin
// otherwise.
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
