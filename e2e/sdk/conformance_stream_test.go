package sdk

import (
	"bufio"
	"net/http"
	"strings"

	"blockdesk/e2e/programtest"
	"blockdesk/sdk/openapitest"
)

const streamPath = "/api/v1/market/stream"

// stream drives the route of server-sent events: it opens, and refuses what it
// does not understand.
func (c *conformance) stream(o *openapitest.Operation, address string) {
	c.methods(o, address, o.Path)
	c.send("HEAD", address, o.Path, o.Path, "")
	for _, query := range []string{
		"", "?symbols=" + programtest.Symbol, "?symbol=92C%2fSLUSD&channels=l2,trades&depth=100", "?channels=tickets&other=1",
		"?symbols=" + programtest.Symbol + "&channels=l3", "?last_event_id=e1-1", "?last_event_id=nothing",
	} {
		c.opens(o, address, query)
	}
	for query, want := range map[string][2]string{
		"?symbols=":                              {"MISSING_FIELD", "empty"},
		"?channels=":                             {"MISSING_FIELD", "empty"},
		"?symbols=A/B":                           {"UNKNOWN_SYMBOL", "unknown_symbol"},
		"?symbols=" + programtest.Symbol + ",":   {"UNKNOWN_SYMBOL", "unknown_symbol"},
		"?symbol=slusd/usdc":                     {"UNKNOWN_SYMBOL", "unknown_symbol"},
		"?channels=l9":                           {"INVALID_FIELD", "unknown_channel"},
		"?depth=20":                              {"INVALID_FIELD", "unknown_depth"},
		"?depth=10&depth=10":                     {"INVALID_FIELD", "repeated"},
		"?symbol=A/B&symbols=A/B":                {"INVALID_FIELD", "repeated"},
		"?symbols=A" + strings.Repeat(",A", 100): {"INVALID_FIELD", "too_many"},
	} {
		c.expect(400, want[0], want[1], "GET", address, o.Path, o.Path+query, "")
	}
}

// opens reads a stream up to its first id, which comes when all snapshots have.
func (c *conformance) opens(o *openapitest.Operation, address, query string) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), "GET", address+o.Path+query, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	var body strings.Builder
	lines := bufio.NewReader(resp.Body)
	for !strings.Contains(body.String(), "\nid: ") {
		line, err := lines.ReadString('\n')
		body.WriteString(line)
		if err != nil {
			c.t.Fatalf("GET %s%s%s: %v after %s", address, o.Path, query, err, body.String())
		}
	}
	a := &openapitest.Answer{Method: "GET", Path: o.Path, Status: resp.StatusCode, Header: resp.Header, Body: []byte(body.String())}
	if err := c.d.CheckAnswer(a); err != nil {
		c.t.Errorf("GET %s%s%s: %v", address, o.Path, query, err)
	}
	c.done["GET "+o.Path] = true
}
