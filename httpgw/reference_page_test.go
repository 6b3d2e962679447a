package httpgw

import (
	"net"
	"strings"
	"testing"

	"blockdesk/httpgw/gatewaytest"
	"blockdesk/httpgw/site"
	"blockdesk/httpgw/wire"
	"blockdesk/sdk"
)

// TestReferenceServed: the page and its files are on both addresses with ETags and
// gzip, and only the page has a policy. It loads the specification from its path.
func TestReferenceServed(t *testing.T) {
	g := withSpecification(t, nil)
	for path, media := range map[string]string{
		site.PathReference: wire.HTMLType, "/docs/docs.js": "text/javascript; charset=utf-8", "/docs/redoc.js": "text/javascript; charset=utf-8",
		"/docs/docs.css": "text/css; charset=utf-8", "/docs/licenses.txt": "text/plain; charset=utf-8",
	} {
		for _, addr := range []net.Addr{g.BaseAddr(), g.APIAddr()} {
			resp, body := gatewaytest.Do(t, addr, "GET", path, "")
			h := resp.Header
			if resp.StatusCode != 200 || h.Get("Content-Type") != media || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cache-Control") != "no-cache" {
				t.Fatalf("%s: status %d %v", path, resp.StatusCode, h)
			}
			if policy := h.Get("Content-Security-Policy"); (policy == string(site.ReferencePolicy)) != (path == site.PathReference) || path != site.PathReference && policy != "" {
				t.Errorf("%s: policy %q", path, policy)
			}
			if again, _ := gatewaytest.Do(t, addr, "GET", path, "If-None-Match: "+h.Get("ETag")+"\r\n"); again.StatusCode != 304 {
				t.Errorf("%s: again: status %d", path, again.StatusCode)
			}
			if path == "/docs/docs.js" && !strings.Contains(string(body), "'/public-sdk/"+sdk.Specification+"'") {
				t.Error("the page does not ask for the specification")
			}
		}
		if packed, small := gatewaytest.Do(t, g.BaseAddr(), "GET", path, "Accept-Encoding: gzip\r\n"); packed.Header.Get("Content-Encoding") == "gzip" && len(small) > 450<<10 {
			t.Errorf("%s: comes as %d bytes", path, len(small))
		}
		if resp, _ := gatewaytest.Do(t, g.WSAddr(), "GET", path, ""); resp.StatusCode != 404 {
			t.Errorf("%s on the ws address: status %d", path, resp.StatusCode)
		}
	}
	for _, path := range []string{"/docs/", "/docs/docs.html", "/docs/../docs"} {
		if resp, _ := gatewaytest.Do(t, g.BaseAddr(), "GET", path, ""); resp.StatusCode != 404 {
			t.Errorf("%s: status %d", path, resp.StatusCode)
		}
	}
	_, page := gatewaytest.Do(t, g.BaseAddr(), "GET", site.PathReference, "")
	if strings.Contains(string(page), "style=") || strings.Contains(string(page), "<style") || strings.Contains(string(page), "<script>") {
		t.Error("the page has a script or a style in it, which its policy forbids")
	}
}

// TestNoReference: without a specification there is no reference.
func TestNoReference(t *testing.T) {
	g := startDesk(t, nil)
	for _, path := range []string{site.PathReference, "/docs/redoc.js"} {
		if resp, _ := gatewaytest.Do(t, g.BaseAddr(), "GET", path, ""); resp.StatusCode != 404 {
			t.Errorf("%s: status %d", path, resp.StatusCode)
		}
	}
}
