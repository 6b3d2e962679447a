package feed

import (
	"fmt"
	"strings"
	"testing"

	"blockdesk/internal/runtest"
	"pgregory.net/rapid"
)

// decoderAccepts reports whether the decoder accepts a request and everything in it.
func decoderAccepts(t testing.TB, text string) bool {
	r := parseRequest([]byte(text), testSet(t), testChannels)
	return r.errorMessage == nil && len(r.rejected) == 0
}

// TestRequestsAsDescribed: the decoder accepts exactly the requests that the document's
// schemas accept.
func TestRequestsAsDescribed(t *testing.T) {
	d := readAsyncAPI(t)
	subscribe := func(members string) string {
		return `{"action":"SUBSCRIBE_MARKET","channels":["l2"],"symbols":["SLUSD/USDC"]` + members + `}`
	}
	points := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"l2:X%d/Y":1`, i)
		}
		return subscribe(`,"resume":{"epoch":"e7"` + b.String() + `}`)
	}
	list := func(n int, one string) string { return strings.TrimSuffix(strings.Repeat(one+`,`, n), ",") }
	for _, c := range []struct {
		name, text string
		taken      bool
	}{
		{"ping", `{"action":"PING"}`, true},
		{"list", `{"action":"LIST_SUBSCRIPTIONS","id":7}`, true},
		{"subscribe", subscribe(`,"id":"1","depth":100,"heartbeat":true`), true},
		{"unsubscribe", `{"action":"UNSUBSCRIBE_MARKET","channels":["l2","tickets"],"symbols":["SLUSD/USDC","92C/SLUSD"]}`, true},
		{"resync", `{"action":"RESYNC","channels":["ticker"],"symbols":["SLUSD/USDC"]}`, true},
		{"resume", subscribe(`,"resume":{"epoch":"e7","l2:SLUSD/USDC":18446744073709551615}`), true},
		{"null is nothing", `{"action":"PING","id":null,"channels":null,"symbols":null,"depth":null,"heartbeat":null,"resume":null}`, true},
		{"members of others", `{"action":"PING","x":{"y":[1]},"channels":["l4"]}`, true},
		{"an escaped action", `{"action":"P\u0049NG"}`, true},
		{"8 channels", `{"action":"RESYNC","channels":[` + list(8, `"l2"`) + `],"symbols":["SLUSD/USDC"]}`, true},
		{"9 channels", `{"action":"RESYNC","channels":[` + list(9, `"l2"`) + `],"symbols":["SLUSD/USDC"]}`, false},
		{"100 symbols", `{"action":"RESYNC","channels":["l2"],"symbols":[` + list(100, `"SLUSD/USDC"`) + `]}`, true},
		{"101 symbols", `{"action":"RESYNC","channels":["l2"],"symbols":[` + list(101, `"SLUSD/USDC"`) + `]}`, false},
		{"500 points", points(500), true},
		{"501 points", points(501), false},
		{"an id of 64 bytes", `{"action":"PING","id":"` + strings.Repeat("x", 62) + `"}`, true},
		{"an id of 65 bytes", `{"action":"PING","id":"` + strings.Repeat("x", 63) + `"}`, false},
		{"nothing", `{}`, false},
		{"a list", `[]`, false},
		{"no action", `{"id":"1"}`, false},
		{"a null action", `{"action":null}`, false},
		{"another action", `{"action":"FLY"}`, false},
		{"an action in small letters", `{"action":"ping"}`, false},
		{"no channels", `{"action":"RESYNC","symbols":["SLUSD/USDC"]}`, false},
		{"null symbols", `{"action":"RESYNC","channels":["l2"],"symbols":null}`, false},
		{"empty channels", `{"action":"RESYNC","channels":[],"symbols":["SLUSD/USDC"]}`, false},
		{"another channel", `{"action":"RESYNC","channels":["l2","l4"],"symbols":["SLUSD/USDC"]}`, false},
		{"no symbol", `{"action":"RESYNC","channels":["l2"],"symbols":["slusd-usdc"]}`, false},
		{"a fraction as id", `{"action":"PING","id":1.5}`, false},
		{"an object as id", `{"action":"PING","id":{}}`, false},
		{"a depth that is not offered", subscribe(`,"depth":20`), false},
		{"a depth as text", subscribe(`,"depth":"50"`), false},
		{"a bad depth of no use", `{"action":"PING","depth":20}`, false},
		{"a number as heartbeat", subscribe(`,"heartbeat":1`), false},
		{"a negative seq", subscribe(`,"resume":{"epoch":"e7","l2:SLUSD/USDC":-1}`), false},
		{"2^64", subscribe(`,"resume":{"epoch":"e7","l2:SLUSD/USDC":18446744073709551616}`), false},
		{"a null seq", subscribe(`,"resume":{"epoch":"e7","l2:SLUSD/USDC":null}`), false},
		{"a number as epoch", subscribe(`,"resume":{"epoch":7}`), false},
		{"a stream without a name", subscribe(`,"resume":{"epoch":"e7","":1}`), false},
	} {
		if described := d.accepts(c.text); described != c.taken {
			t.Errorf("%s: the schemas take it: %v, want %v: %s", c.name, described, c.taken, c.text)
		}
		if done := decoderAccepts(t, c.text); done != c.taken {
			t.Errorf("%s: the decoder does it: %v, want %v: %s", c.name, done, c.taken, c.text)
		}
	}
	// The differences, and why.
	for _, c := range []struct {
		why, text string
		described bool
	}{
		{"a schema does not know what is listed", `{"action":"RESYNC","channels":["l2"],"symbols":["NO/SUCH"]}`, true},
		{"a schema counts letters, not bytes", `{"action":"PING","id":"` + strings.Repeat("é", 62) + `"}`, true},
		{"a schema does not see how a number is written", `{"action":"PING","id":1e2}`, true},
		{"without its epoch a resume is of no use", subscribe(`,"resume":{"l2:SLUSD/USDC":1}`), false},
	} {
		if described, done := d.accepts(c.text), decoderAccepts(t, c.text); described != c.described || done == c.described {
			t.Errorf("%s: described %v, done %v: %s", c.why, described, done, c.text)
		}
	}
}

// TestRequestsAsDescribedAtRandom does the same for random requests of valid and invalid
// members.
func TestRequestsAsDescribedAtRandom(t *testing.T) {
	d := readAsyncAPI(t)
	values := map[string][]string{
		"action":    {`"SUBSCRIBE_MARKET"`, `"UNSUBSCRIBE_MARKET"`, `"RESYNC"`, `"LIST_SUBSCRIPTIONS"`, `"PING"`, `"PONG"`, `null`, `1`, `["PING"]`},
		"id":        {`"a"`, `""`, `0`, `-12`, `null`, `true`, `1.5`, `[]`, `"\u00e9\n"`},
		"channels":  {`["l2"]`, `["ticker","trades","tickets"]`, `["l2","l2"]`, `[]`, `null`, `"l2"`, `["l4"]`, `[1]`, `[null]`, `{}`},
		"symbols":   {`["SLUSD/USDC"]`, `["92C/SLUSD","AAA/BBB"]`, `[]`, `null`, `["x"]`, `[["SLUSD/USDC"]]`, `7`},
		"depth":     {`10`, `25`, `50`, `100`, `null`, `0`, `11`, `-10`, `"10"`, `true`},
		"heartbeat": {`true`, `false`, `null`, `0`, `"true"`, `[]`},
		"resume":    {`{"epoch":"e7"}`, `{"epoch":"","l2:SLUSD/USDC":0}`, `null`, `{"epoch":null}`, `{"epoch":"e7","x":"1"}`, `{"epoch":"e7","x":-1}`, `[]`, `"e7"`},
		"other":     {`null`, `{"a":[{"b":1e99}]}`, `""`},
	}
	names := []string{"action", "id", "channels", "symbols", "depth", "heartbeat", "resume", "other"}
	seen := map[bool]int{}
	runtest.CheckUntil(t, func() bool { return len(seen) == 2 }, func(r *rapid.T) {
		var members []string
		for _, name := range rapid.Permutation(names).Draw(r, "order") {
			// Mostly valid members, otherwise no request would be valid.
			if i := rapid.IntRange(-2, 2*len(values[name])).Draw(r, name); i >= 0 {
				members = append(members, fmt.Sprintf("%q:%s", name, values[name][max(0, i-len(values[name])-1)]))
			}
		}
		text := "{" + strings.Join(members, ",") + "}"
		described, done := d.accepts(text), decoderAccepts(t, text)
		if described != done {
			r.Fatalf("described %v, done %v: %s", described, done, text)
		}
		seen[done]++
	})
}
