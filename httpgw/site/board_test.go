package site

import "testing"

// TestPolicyOrigins: a URL that is more than an origin is left out of a policy.
func TestPolicyOrigins(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "desk.example": "", "http://": "", "http://a b": "", "http://a;script-src *": "", "http://a'b": "", "http://a,b": "",
		"http://desk.example:8080/x?y": "http://desk.example:8080", "ws://[::1]:8081": "ws://[::1]:8081",
	} {
		if got := originOf(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
