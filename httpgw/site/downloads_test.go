package site

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"blockdesk/sdk"
)

// TestDownloadsRefused: files that cannot be routes are an error at the start.
func TestDownloadsRefused(t *testing.T) {
	t.Parallel()
	full := fstest.MapFS{}
	for i := range MaxDownloads {
		full[fmt.Sprint("f", i)] = &fstest.MapFile{}
	}
	if files, err := ReadDownloads(full); err != nil || len(files.all) != MaxDownloads {
		t.Errorf("at the limit: %v", err)
	}
	if indexDownloads(nil, false) != nil {
		t.Error("nothing has an index")
	}
	full["one/more"] = &fstest.MapFile{}
	if _, err := ReadDownloads(full); err == nil || !strings.Contains(err.Error(), "more than 256 files") {
		t.Errorf("one above the limit: %v", err)
	}
	if _, err := ReadDownloads(fstest.MapFS{"{x}": &fstest.MapFile{}}); err == nil {
		t.Error("a name in braces passed")
	}
	if _, err := ReadDownloads(fstest.MapFS{sdk.Channels: &fstest.MapFile{Data: []byte("{")}}); err == nil {
		t.Error("half an AsyncAPI document passed")
	}
	if all, err := ReadDownloads(fstest.MapFS{"a.bin": &fstest.MapFile{Data: []byte{0}}}); err != nil || all.all[0].page.Media != "application/octet-stream" {
		t.Errorf("a binary: %v, %v", all, err)
	}
}
