package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"blockdesk/service/config"
)

// TestLogHasNoStackTrace: an error is one short text in both formats, also one of Pebble's that
// carries where it came from.
func TestLogHasNoStackTrace(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"text", "json"} {
		var out bytes.Buffer
		newLogger(config.Log{Level: "info", Format: format}, &out).Error("disk", "error", vfs.ErrUnsupported, "code", 7)
		text := out.String()
		if !strings.Contains(text, "not supported") || !strings.Contains(text, "7") || strings.Contains(text, "vfs.go") || strings.Contains(text, "stack") {
			t.Errorf("%s: %s", format, text)
		}
	}
}
