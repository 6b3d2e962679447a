package httpgw

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"maps"
	"net"
	"slices"
	"testing"
	"testing/fstest"

	"blockdesk/httpgw/gatewaytest"
	"blockdesk/httpgw/site"
	"blockdesk/httpgw/wire"
	"blockdesk/sdk"
)

func downloadsOf(t *testing.T, files fs.FS) *site.Downloads {
	t.Helper()
	all, err := site.ReadDownloads(files)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestDownloads: every file is served unchanged, and the OpenAPI document with the
// service's URLs.
func TestDownloads(t *testing.T) {
	t.Parallel()
	g := withSpecification(t, func(o *Options) { o.Downloads = downloadsOf(t, sdk.Files) })
	files := 0
	if err := fs.WalkDir(sdk.Files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files++
		want, err := fs.ReadFile(sdk.Files, name)
		if err != nil {
			return err
		}
		if name == sdk.Specification || name == sdk.Channels {
			want = site.Publish(want, &g.urls)
		}
		for _, addr := range []net.Addr{g.BaseAddr(), g.APIAddr()} {
			resp, body := gatewaytest.Do(t, addr, "GET", "/public-sdk/"+name, "")
			if resp.StatusCode != 200 || !bytes.Equal(body, want) {
				t.Errorf("%s: status %d, %d bytes", name, resp.StatusCode, len(body))
			}
			if again, _ := gatewaytest.Do(t, addr, "GET", "/public-sdk/"+name, "If-None-Match: "+resp.Header.Get("ETag")+"\r\n"); again.StatusCode != 304 {
				t.Errorf("%s: again: status %d", name, again.StatusCode)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if files < 2 {
		t.Errorf("%d files", files)
	}
	for path, media := range map[string]string{
		"fix/FIX44-blockdesk.xml": "application/xml; charset=utf-8",
		"fix/FIX44.LICENSE":       "text/plain; charset=utf-8",
		sdk.Specification:         wire.JSONType,
		sdk.Channels:              wire.JSONType,
	} {
		if resp, _ := gatewaytest.Do(t, g.BaseAddr(), "HEAD", "/public-sdk/"+path, ""); resp.Header.Get("Content-Type") != media {
			t.Errorf("%s: %q, want %q", path, resp.Header.Get("Content-Type"), media)
		}
	}
	for _, path := range []string{"/public-sdk", "/public-sdk/fix/NO.xml", "/public-sdk/no/", "/public-sdk/../sdk.go", "/public-sdk/fix"} {
		if resp, _ := gatewaytest.Do(t, g.BaseAddr(), "GET", path, ""); resp.StatusCode != 404 {
			t.Errorf("%s: status %d", path, resp.StatusCode)
		}
	}
}

// TestFolders: every folder lists exactly its content.
func TestFolders(t *testing.T) {
	t.Parallel()
	g := withSpecification(t, func(o *Options) {
		o.Downloads = downloadsOf(t, fstest.MapFS{
			"README.md": {Data: []byte("read")}, "a/b/c.txt": {Data: []byte("c")}, "a/d.txt": {}, sdk.Specification: {Data: []byte("{}")},
			sdk.Channels: {Data: []byte("{}")},
		})
	})
	listed := map[string]bool{}
	var read func(at string)
	read = func(at string) {
		var index struct {
			OK      bool
			Path    string
			Folders []string
			Files   []struct {
				Path  string
				Media string `json:"content_type"`
				Bytes *int
				Hash  *string `json:"sha256"`
			}
		}
		resp, body := gatewaytest.Do(t, g.APIAddr(), "GET", at, "")
		if err := json.Unmarshal(body, &index); err != nil || resp.Header.Get("Content-Type") != wire.JSONType || index.Path != at || !index.OK {
			t.Fatalf("%s: %v: %s", at, err, body)
		}
		for _, file := range index.Files {
			resp, body := gatewaytest.Do(t, g.BaseAddr(), "GET", file.Path, "")
			sum := sha256.Sum256(body)
			published := file.Path == wire.SpecificationPath || file.Path == "/public-sdk/"+sdk.Channels
			same := published && file.Bytes == nil && file.Hash == nil ||
				file.Bytes != nil && *file.Bytes == len(body) && *file.Hash == hex.EncodeToString(sum[:])
			if resp.StatusCode != 200 || file.Media != resp.Header.Get("Content-Type") || !same {
				t.Errorf("%s: status %d %s, listed as %+v", file.Path, resp.StatusCode, resp.Header.Get("Content-Type"), file)
			}
			listed[file.Path] = true
		}
		for _, folder := range index.Folders {
			read(folder)
		}
	}
	read("/public-sdk/")
	want := []string{"/public-sdk/README.md", "/public-sdk/a/b/c.txt", "/public-sdk/a/d.txt", "/public-sdk/" + sdk.Channels, wire.SpecificationPath}
	if got := slices.Sorted(maps.Keys(listed)); !slices.Equal(got, want) {
		t.Errorf("listed are %v, want %v", got, want)
	}
}
