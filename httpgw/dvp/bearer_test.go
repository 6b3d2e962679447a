package dvp

import (
	"regexp"
	"testing"

	"github.com/valyala/fasthttp"
)

// FuzzBearer: an accepted token conforms to the grammar of RFC 6750 and is everything
// after the scheme.
func FuzzBearer(f *testing.F) {
	for _, seed := range []string{
		"Bearer dvp_9qTGGRF9uBCzqxsvlxWuT0e6ChK82p5Uduhkz15bzYI", "bearer x", "Bearer  x==", "Bearer", "Bearer =", "Basic x", "Bearer x y", "Bearer \x00", "Bearer \xff", "Bearer a=b",
	} {
		f.Add(seed)
	}
	grammar := regexp.MustCompile(`^(?i:bearer) +([A-Za-z0-9._~+/-]+=*)$`)
	f.Fuzz(func(t *testing.T, value string) {
		h := &fasthttp.RequestHeader{}
		h.Set("Authorization", value)
		seen := string(h.Peek("Authorization")) // without line breaks
		token, reason := bearerToken(h)
		want := grammar.FindStringSubmatch(seen)
		if legal := want != nil && len(want[1]) <= MaxToken; legal != (reason == "") {
			t.Fatalf("%q: %q %q", seen, token, reason)
		}
		if reason == "" && string(token) != want[1] {
			t.Fatalf("%q gives %q", seen, token)
		}
	})
}
