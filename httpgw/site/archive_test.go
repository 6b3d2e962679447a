package site

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"maps"
	"strings"
	"testing"
	"testing/fstest"
)

// A folder with a package manifest is served as one archive, other folders are not.
func TestDownloadArchive(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{
		"ts/package.json":     {Data: []byte(`{"name":"blockdesk"}`)},
		"ts/dist/a/index.js":  {Data: []byte("export {};\n")},
		"py/pyproject.toml":   {Data: []byte("[project]\n")},
		"fix/README.md":       {Data: []byte("# FIX\n")},
		"ts2/other/file.json": {Data: []byte("{}")},
	}
	all, err := ReadDownloads(files)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]map[string]string{}
	for _, d := range all.all {
		if name, ok := strings.CutSuffix(d.path, "/"+archiveName); ok {
			got[strings.TrimPrefix(name, downloadsPath)] = unpack(t, d.page.Body)
			if d.page.Media != "application/gzip" {
				t.Errorf("%s is %s", d.path, d.page.Media)
			}
		}
	}
	want := map[string]map[string]string{
		"ts": {"package/package.json": `{"name":"blockdesk"}`, "package/dist/a/index.js": "export {};\n"},
		"py": {"package/pyproject.toml": "[project]\n"},
	}
	if !maps.EqualFunc(got, want, maps.Equal) {
		t.Errorf("got %v, want %v", got, want)
	}
	once, err := packFolder(files, "ts")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := packFolder(files, "ts"); err != nil || !bytes.Equal(once, again) {
		t.Errorf("%d bytes, then %d: %v", len(once), len(again), err)
	}
	if _, err := packFolder(files, "none"); err == nil {
		t.Error("a folder that is not there was packed")
	}
}

// unpack returns the files of an archive by name.
func unpack(t *testing.T, packed []byte) map[string]string {
	t.Helper()
	plain, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	files, r := map[string]string{}, tar.NewReader(plain)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = string(body)
	}
}
