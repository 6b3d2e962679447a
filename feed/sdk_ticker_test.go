package feed

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestSDKsHaveTheTicker: the SDKs' types of a ticker message, which are written by hand, have
// the members of the AsyncAPI document, and the TypeScript SDK checks the figures among them.
func TestSDKsHaveTheTicker(t *testing.T) {
	members, _ := readAsyncAPI(t).Components.Schemas["TickerUpdate"]["properties"].(map[string]any)
	if len(members) < 20 {
		t.Fatalf("the document has %d members of a ticker", len(members))
	}
	for _, c := range []struct {
		file, begin, end string
		without          []string
	}{
		{"python/blockdesk/feed.py", "class TickerEvent:", "@dataclass", []string{"channel", "type", "epoch", "engine_seq", "last_ts"}},
		{
			"typescript/src/messages.ts", "interface TickerMessage", "{}",
			[]string{"channel", "type", "symbol", "epoch", "seq", "engine_seq", "ts"},
		},
		{
			"typescript/src/messages.ts", "const optionalDecimals", "tickets:",
			[]string{"channel", "type", "symbol", "epoch", "seq", "engine_seq", "ts", "last_ts", "status"},
		},
	} {
		text, err := os.ReadFile(filepath.Join("..", "sdk", filepath.FromSlash(c.file)))
		if err != nil {
			t.Fatal(err)
		}
		_, part, found := strings.Cut(string(text), c.begin)
		part, _, ended := strings.Cut(part, c.end)
		if !found || !ended {
			t.Fatalf("%s has no text from %q to %q", c.file, c.begin, c.end)
		}
		for name := range members {
			has := regexp.MustCompile(`\b` + name + `\b`).MatchString(part)
			if !has && !slices.Contains(c.without, name) {
				t.Errorf("%s, after %q: the member %s is missing", c.file, c.begin, name)
			}
		}
	}
}
