package docs

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"blockdesk/e2e/programtest"
	"blockdesk/internal/runtest"
)

// unlimited are settings of a service that a test may read as fast as it can.
var unlimited = []string{"--set", "http.market_data_per_minute=0", "--set", "http.partner_per_minute=0"}

// matchedOnly are settings of a service that only matches orders: no desk, no chain.
var matchedOnly = []string{"--set", "rfq.enabled=false"}

// TestLinks: in each kind of deployment every link of every discovery document answers as
// it is printed. A link to a route that takes a POST is known by its answer, 405.
func TestLinks(t *testing.T) {
	t.Run("demo", func(t *testing.T) {
		t.Parallel()
		d := programtest.StartDemo(t, unlimited...)
		walkLinks(t, d.At.Base, d.At.API)
	})
	t.Run("matched only", func(t *testing.T) {
		t.Parallel()
		d := programtest.StartDemoOn(t, t.TempDir(), slices.Concat(unlimited, matchedOnly)...)
		walkLinks(t, d.At.Base, d.At.API)
	})
}

// walkLinks reads every discovery document of a service, and every link in them.
func walkLinks(t *testing.T, base, api string) {
	t.Helper()
	var manifest struct {
		Documents []struct{ URL string }
	}
	programtest.GetJSON(t, base+"/api/v1/market/integration-manifest", &manifest)
	pages := []string{
		base + "/", base + "/.well-known/svc.json", base + "/.well-known/svc-discovery.json", base + "/.well-known/svc-program.json",
		base + "/.well-known/svc-ecosystem.json", base + "/.well-known/svc-wallets.json", base + "/.well-known/svc-integrators.json",
	}
	for _, d := range manifest.Documents {
		pages = append(pages, d.URL)
	}
	for _, optional := range []string{"/.well-known/svc-rfq.json", "/api/v1/rfq/robot-manifest", "/api/v1/rfq/status"} {
		if status, _ := read(t, base+optional); status == http.StatusOK {
			pages = append(pages, base+optional)
		}
	}
	from := map[string]string{}
	for _, page := range pages {
		var v any
		if err := json.Unmarshal([]byte(programtest.Get(t, page)), &v); err != nil {
			t.Errorf("%s: %v", page, err)
		}
		for _, link := range linksOf(v, base) {
			if strings.Contains(link, "{") {
				continue // a template
			}
			if strings.HasPrefix(link, base+"/") || strings.HasPrefix(link, api+"/") {
				from[link] = page
			}
		}
	}
	if len(from) < 60 {
		t.Errorf("only %d links were found", len(from))
	}
	for link, page := range from {
		status, allow := read(t, link)
		if status != http.StatusOK && !(status == http.StatusMethodNotAllowed && strings.Contains(allow, http.MethodPost)) {
			t.Errorf("%s: %s: status %d", page, link, status)
		}
	}
}

// embeddedURL finds the URL in a command line.
var embeddedURL = regexp.MustCompile(`https?://[^\s'"]+`)

// linksOf returns the URLs in a document's texts, and those of its paths "GET /…".
func linksOf(v any, base string) (all []string) {
	switch v := v.(type) {
	case map[string]any:
		for _, member := range v {
			all = append(all, linksOf(member, base)...)
		}
	case []any:
		for _, element := range v {
			all = append(all, linksOf(element, base)...)
		}
	case string:
		if path, ok := strings.CutPrefix(v, "GET /"); ok {
			return []string{base + "/" + path}
		}
		if strings.HasPrefix(v, "POST ") {
			return nil
		}
		return embeddedURL.FindAllString(v, -1)
	}
	return all
}

// read gets a URL and returns the status and the header Allow. A stream is not read.
func read(t *testing.T, url string) (status int, allow string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), runtest.HangTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Errorf("%s: %v", url, err)
		return 0, ""
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Errorf("%s: %v", url, err)
		return 0, ""
	}
	defer resp.Body.Close()
	return resp.StatusCode, resp.Header.Get("Allow")
}
