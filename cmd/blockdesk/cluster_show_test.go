package main

import (
	"strings"
	"testing"

	"blockdesk/httpgw/admin"
	"blockdesk/service/operator"
)

// TestPrintGroup: the sentence, a line for each node, whether it answers or not, and a
// line about differences only if there are any.
func TestPrintGroup(t *testing.T) {
	t.Parallel()
	v := &operator.Group{Text: "the sentence", ConfigOf: "a", Nodes: []operator.Node{
		{ID: "a", Voter: true, Status: &admin.ClusterStatus{ID: "a", ContactMS: -1}},
		{ID: "b", Voter: true, Problem: "does not answer"},
		{ID: "c", Status: &admin.ClusterStatus{ID: "c"}},
	}}
	shown := func() string {
		var out strings.Builder
		if err := printGroup(&out, v); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	text := shown()
	if strings.Count(text, "\n") != len(v.Nodes)+3 || !strings.HasPrefix(text, "the sentence\n\n") || strings.Contains(text, "configured") ||
		!strings.Contains(text, "does not answer") {
		t.Errorf("%s", text)
	}
	v.ConfigDiffers = map[string][]string{"b": {"new", "risk"}}
	if text := shown(); !strings.Contains(text, "\nconfigured differently from a: b (new, risk)\n\n") {
		t.Errorf("%s", text)
	}
}
