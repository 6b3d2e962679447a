package httpgw

import (
	"bytes"
	"compress/gzip"
	"io"
	"net"
	"strings"
	"testing"

	"blockdesk/catalog"
	"blockdesk/httpgw/gatewaytest"
	"blockdesk/httpgw/site"
	"blockdesk/httpgw/wire"
)

// withSpecification runs a gateway with all dependencies.
func withSpecification(t *testing.T, mend func(*Options)) *Gateway {
	t.Helper()
	return startDesk(t, func(o *Options) {
		o.Specification = gatewaytest.Specification(t)
		if mend != nil {
			mend(o)
		}
	})
}

// TestSpecificationServed: both paths on both addresses have the same bytes and ETag,
// plain and compressed, and 304.
func TestSpecificationServed(t *testing.T) {
	g := withSpecification(t, func(o *Options) { o.URLs = catalog.URLs{Base: "https://desk.example", WS: "wss://ws.example/"} })
	want := site.Publish(gatewaytest.Specification(t), &g.urls)
	for _, name := range []string{`"https://desk.example"`, `"http://` + g.APIAddr().String() + `"`, `"wss://ws.example"`} {
		if !bytes.Contains(want, []byte(`{"url":`+name)) {
			t.Errorf("no server %s", name)
		}
	}
	for _, of := range []string{wire.DefaultBase, wire.DefaultAPI, wire.DefaultWS} {
		if bytes.Contains(want, []byte(of)) {
			t.Errorf("%s is still named", of)
		}
	}
	etag := ""
	for _, addr := range []net.Addr{g.BaseAddr(), g.APIAddr()} {
		for _, path := range []string{wire.SpecificationPath, site.SpecificationAlias} {
			resp, body := gatewaytest.Do(t, addr, "GET", path, "")
			if resp.StatusCode != 200 || !bytes.Equal(body, want) || resp.Header.Get("Content-Type") != wire.JSONType {
				t.Fatalf("%s: status %d, %d bytes of %s", path, resp.StatusCode, len(body), resp.Header.Get("Content-Type"))
			}
			if etag == "" {
				etag = resp.Header.Get("ETag")
			}
			if got := resp.Header.Get("ETag"); got != etag || !strings.HasPrefix(got, `"`) || resp.Header.Get("Cache-Control") != "public, max-age=60" {
				t.Errorf("%s: headers %v", path, resp.Header)
			}
			if again, _ := gatewaytest.Do(t, addr, "HEAD", path, "If-None-Match: "+etag+"\r\n"); again.StatusCode != 304 {
				t.Errorf("%s: again: status %d", path, again.StatusCode)
			}
			packed, small := gatewaytest.Do(t, addr, "GET", path, "Accept-Encoding: gzip\r\n")
			z, err := gzip.NewReader(bytes.NewReader(small))
			if err != nil {
				t.Fatal(err)
			}
			plain, err := io.ReadAll(z)
			if err != nil || !bytes.Equal(plain, want) || packed.Header.Get("ETag") == etag || len(small)*3 > len(want) {
				t.Errorf("%s: compressed to %d bytes: %v", path, len(small), err)
			}
		}
	}
	if resp, _ := gatewaytest.Do(t, g.WSAddr(), "GET", wire.SpecificationPath, ""); resp.StatusCode != 404 {
		t.Errorf("on the ws address: status %d", resp.StatusCode)
	}
	_, about := gatewaytest.Do(t, g.BaseAddr(), "GET", "/", "")
	if !bytes.Contains(about, []byte(`"GET https://desk.example`+site.SpecificationAlias+`"`)) || !bytes.Contains(about, []byte(`"specification_openapi":"`+wire.SpecificationPath+`"`)) {
		t.Errorf("GET / does not say where it is: %s", about)
	}
}

// TestNoSpecification: without a document its routes do not exist; invalid JSON is
// refused at the start.
func TestNoSpecification(t *testing.T) {
	g := startDesk(t, nil)
	for _, path := range []string{wire.SpecificationPath, site.SpecificationAlias} {
		if resp, _ := gatewaytest.Do(t, g.BaseAddr(), "GET", path, ""); resp.StatusCode != 404 {
			t.Errorf("%s: status %d", path, resp.StatusCode)
		}
	}
	o := testOptions(gatewaytest.NewBooks(t))
	if o.Specification = []byte("{"); o.Validate() == nil {
		t.Error("half a document is accepted")
	}
}
