package suggest

import "testing"

func TestSuffix(t *testing.T) {
	t.Parallel()
	keys := []string{"listen.api", "listen.base", "listen.fix", "listen.ws", "log", "rfq.enabled"}
	for name, want := range map[string]string{
		"listen.fxi": "listen.fix", "lisetn.api": "listen.api", "listenfix": "listen.fix", "lgo": "log", "rfq.enable": "rfq.enabled",
		"nothing-like-it": "", "": "",
	} {
		got := Suffix(name, keys)
		if want != "" {
			want = `: did you mean "` + want + `"?`
		}
		if got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"", "ab", 2}, {"fix", "fxi", 1}, {"kitten", "sitting", 3}, {"ab", "ba", 1}, {"abcd", "badc", 2}} {
		if got := distance(c.a, c.b); got != c.want || distance(c.b, c.a) != c.want {
			t.Errorf("%q, %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
