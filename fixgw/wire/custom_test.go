package wire

import (
	"bytes"
	"strings"
	"testing"

	"blockdesk/fixgw/wire/wiretest"
)

// TestWithoutCustom: what was made for a session with custom fields is plain FIX
// 4.4 when it comes again to one without.
func TestWithoutCustom(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                              "",
		"7":                             "7",
		"7|11=a|58=x":                   "7|11=a|58=x",
		"7|5600=Y|11=a|5601=100|58=x":   "7|11=a|58=x",
		"7|11=a|5616=1":                 "7|11=a",
		"7|5601=1":                      "7",
		"7|5601=1|5612=":                "7",
		"5601=1|11=a|5599=1|5617=2|5=5": "5601=1|11=a|5599=1|5617=2|5=5", // a client's id comes first
	} {
		fields := []byte(strings.ReplaceAll(in, "|", "\x01"))
		before := bytes.Clone(fields)
		if got := wiretest.Show(WithoutCustom(fields)); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
		if !bytes.Equal(fields, before) {
			t.Errorf("%q was changed to %q", before, fields)
		}
	}
}

// FuzzWithoutCustom: whatever the fields, none of ours is left, and nothing is
// added.
func FuzzWithoutCustom(f *testing.F) {
	f.Add([]byte("7\x015601=1\x0111=a\x015616=\x01"))
	f.Fuzz(func(t *testing.T, fields []byte) {
		stripped := WithoutCustom(fields)
		if again := WithoutCustom(stripped); !bytes.Equal(again, stripped) {
			t.Fatalf("%q becomes %q and then %q", fields, stripped, again)
		}
		if len(stripped) > len(fields) {
			t.Fatalf("%q grows to %q", fields, stripped)
		}
	})
}
