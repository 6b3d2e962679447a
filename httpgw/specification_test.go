package httpgw

import (
	"bytes"
	"compress/gzip"
	"io"
	"net"
	"strings"
	"testing"

	"blockdesk/catalog"
)

// withSpecification runs a gateway with every door of this room open.
func withSpecification(t *testing.T, mend func(*Options)) *Gateway {
	t.Helper()
	return startDesk(t, func(o *Options) {
		o.Specification = specification(t)
		if mend != nil {
			mend(o)
		}
	})
}

// TestSpecificationServed: both paths on both addresses give the same bytes with
// one ETag, plain, compressed and not at all to whom has them.
func TestSpecificationServed(t *testing.T) {
	g := withSpecification(t, func(o *Options) { o.URLs = catalog.URLs{Base: "https://desk.example", WS: "wss://ws.example/"} })
	want := publish(specification(t), &g.urls)
	for _, name := range []string{`"https://desk.example"`, `"http://` + g.APIAddr().String() + `"`, `"wss://ws.example"`} {
		if !bytes.Contains(want, []byte(`{"url":`+name)) {
			t.Errorf("no server %s", name)
		}
	}
	for _, of := range []string{DefaultBase, DefaultAPI, DefaultWS} {
		if bytes.Contains(want, []byte(of)) {
			t.Errorf("%s is still named", of)
		}
	}
	etag := ""
	for _, addr := range []net.Addr{g.BaseAddr(), g.APIAddr()} {
		for _, path := range []string{specificationPath, specificationAlias} {
			resp, body := ask(t, addr, "GET", path, "")
			if resp.StatusCode != 200 || !bytes.Equal(body, want) || resp.Header.Get("Content-Type") != jsonType {
				t.Fatalf("%s: status %d, %d bytes of %s", path, resp.StatusCode, len(body), resp.Header.Get("Content-Type"))
			}
			if etag == "" {
				etag = resp.Header.Get("ETag")
			}
			if got := resp.Header.Get("ETag"); got != etag || !strings.HasPrefix(got, `"`) || resp.Header.Get("Cache-Control") != "public, max-age=60" {
				t.Errorf("%s: headers %v", path, resp.Header)
			}
			if again, _ := ask(t, addr, "HEAD", path, "If-None-Match: "+etag+"\r\n"); again.StatusCode != 304 {
				t.Errorf("%s: again: status %d", path, again.StatusCode)
			}
			packed, small := ask(t, addr, "GET", path, "Accept-Encoding: gzip\r\n")
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
	if resp, _ := ask(t, g.WSAddr(), "GET", specificationPath, ""); resp.StatusCode != 404 {
		t.Errorf("on the ws address: status %d", resp.StatusCode)
	}
	_, about := ask(t, g.BaseAddr(), "GET", "/", "")
	if !bytes.Contains(about, []byte(`"GET https://desk.example`+specificationAlias+`"`)) || !bytes.Contains(about, []byte(`"specification_openapi":"`+specificationPath+`"`)) {
		t.Errorf("GET / does not say where it is: %s", about)
	}
}

// TestNoSpecification: without a document there are no such routes; what is no
// JSON is refused at the start.
func TestNoSpecification(t *testing.T) {
	g := startDesk(t, nil)
	for _, path := range []string{specificationPath, specificationAlias} {
		if resp, _ := ask(t, g.BaseAddr(), "GET", path, ""); resp.StatusCode != 404 {
			t.Errorf("%s: status %d", path, resp.StatusCode)
		}
	}
	o := testOptions(newBooks(t))
	if o.Specification = []byte("{"); o.Validate() == nil {
		t.Error("half a document is accepted")
	}
}
