package programtest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"blockdesk/bench/server"
	"blockdesk/internal/runtest"
)

// Get returns the body of a URL that answers 200.
func Get(t *testing.T, url string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), runtest.HangTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: status %d: %.300s", url, resp.StatusCode, body)
	}
	return string(body)
}

// GetJSON reads a URL's JSON into v.
func GetJSON(t *testing.T, url string, v any) {
	t.Helper()
	if err := json.NewDecoder(strings.NewReader(Get(t, url))).Decode(v); err != nil {
		t.Fatalf("%s: %v", url, err)
	}
}

// Do sends a GET with an ETag and returns the answer without its body.
func Do(t *testing.T, url, etag string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if etag != "" {
		req.Header.Set("If-None-Match", etag)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp
}

// Reply is an answer to a POST.
type Reply struct {
	Status int
	Header http.Header
	Body   string
	Fields struct {
		Code    string `json:"code"`
		Reason  string `json:"reason"`
		QuoteID string `json:"quote_id"`
		Price   string `json:"price_usd"`
	}
}

// Post sends a JSON body, with a key if it is not empty.
func Post(t *testing.T, url, key, body string) Reply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	r := Reply{Status: resp.StatusCode, Header: resp.Header, Body: string(text)}
	if err := json.Unmarshal(text, &r.Fields); err != nil {
		t.Fatalf("%s: %v: %s", url, err, text)
	}
	return r
}

// Status returns the status of the answer to a GET.
func Status(t *testing.T, url string) int {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

// Answered returns the status and the body of the answer to a GET; empty if there is none:
// a node that changes its role closes new connections.
func Answered(url string) string {
	resp, err := http.Get(url)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%d %s", resp.StatusCode, body)
}

// Ready reports whether a server reports that it is ready.
func Ready(s *server.Server) bool {
	return strings.HasPrefix(Answered(s.Addresses.Admin+"/readyz"), "200 ")
}

// Metric returns the value of a metric without labels.
func Metric(t *testing.T, s *server.Server, name string) float64 {
	t.Helper()
	for line := range strings.Lines(Get(t, s.Addresses.Admin+"/metrics")) {
		if text, ok := strings.CutPrefix(line, name+" "); ok {
			value, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return value
		}
	}
	t.Fatalf("/metrics has no %s", name)
	return 0
}

// Tickets returns the tickets as the public mirror publishes them.
func Tickets(t *testing.T, s *server.Server) string {
	t.Helper()
	var book struct {
		Tickets json.RawMessage `json:"tickets"`
	}
	GetJSON(t, s.Addresses.Base+"/api/v1/rfq/market-tickets", &book)
	return string(book.Tickets)
}

// Depth is a book as REST returns it.
type Depth struct {
	Epoch      string `json:"epoch"`
	Seq        uint64 `json:"seq"`
	Bids, Asks [][2]string
}

// DocumentPath is where the OpenAPI document is published.
const DocumentPath = "/public-sdk/openapi/svc_public_api_v1.json"
