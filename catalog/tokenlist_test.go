package catalog

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// TestListName: the name has only characters that the token-list schema allows.
func TestListName(t *testing.T) {
	for name, want := range map[string]string{
		"SLUSD market (demo)": "SLUSD market demo", strings.Repeat("x", 40): strings.Repeat("x", 30), "é": "",
	} {
		if got := listName(name); got != want {
			t.Errorf("%q is listed as %q, want %q", name, got, want)
		}
	}
}

// TestNextEdition: a list's version grows by the public rules, and only if its content has
// changed. An unchanged edition keeps its time.
func TestNextEdition(t *testing.T) {
	first, later := at("2026-11-19T08:00:00Z"), at("2026-11-21T08:00:00Z")
	for name, c := range map[string]struct {
		change func(f *Facts)
		want   Edition
	}{
		"nothing":  {func(*Facts) {}, Edition{ListVersion{3, 2, 1}, first}},
		"no mint":  {func(f *Facts) { f.Tokens = append(f.Tokens, Token{Symbol: "X"}) }, Edition{ListVersion{3, 2, 1}, first}},
		"come":     {func(f *Facts) { f.Tokens = append(f.Tokens, Token{Symbol: "X", Mint: "new"}) }, Edition{ListVersion{3, 3, 0}, later}},
		"gone":     {func(f *Facts) { f.Tokens = f.Tokens[1:] }, Edition{ListVersion{4, 0, 0}, later}},
		"swapped":  {func(f *Facts) { f.Tokens[0].Mint = "new" }, Edition{ListVersion{4, 0, 0}, later}},
		"changed":  {func(f *Facts) { f.Tokens[0].Name = "another" }, Edition{ListVersion{3, 2, 2}, later}},
		"order":    {func(f *Facts) { f.Tokens[0], f.Tokens[1] = f.Tokens[1], f.Tokens[0] }, Edition{ListVersion{3, 2, 2}, later}},
		"market":   {func(f *Facts) { f.Service.Market = "another" }, Edition{ListVersion{3, 2, 2}, later}},
		"set back": {func(f *Facts) { f.Tokens, f.Service.ConfiguredAt = f.Tokens[1:], first-1 }, Edition{ListVersion{4, 0, 0}, first}},
	} {
		f := live()
		f.Service.TokenListEdition = Edition{ListVersion{3, 2, 1}, first}
		before := Encode(TokenList(f, ""))
		f.Service.ConfiguredAt = later
		c.change(f)
		got, err := NextEdition(append(before, '\n'), f)
		if err != nil || got != c.want {
			t.Errorf("%s: %+v (%v), want %+v", name, got, err, c.want)
		}
		f.Service.TokenListEdition = got
		if again, err := NextEdition(Encode(TokenList(f, "")), f); err != nil || again != got {
			t.Errorf("%s: after a restart %+v (%v), want %+v", name, again, err, got)
		}
	}
	f := live()
	want := Edition{ListVersion{Major: 1}, f.Service.ConfiguredAt}
	if got, err := NextEdition(nil, f); err != nil || got != want {
		t.Errorf("the first edition is %+v (%v), want %+v", got, err, want)
	}
	text := string(Encode(TokenList(f, "")))
	for _, broken := range []string{
		"x", "[]", "{}", strings.Replace(text, `"major":1`, `"major":0`, 1), strings.Replace(text, `"minor":0`, `"minor":-1`, 1),
		strings.Replace(text, "2026-", "20x6-", 1), strings.Replace(text, `"tokens":[`, `"tokens":[7,`, 1),
	} {
		if got, err := NextEdition([]byte(broken), f); !errors.Is(err, ErrTokenList) || got != want {
			t.Errorf("%.60s: %+v (%v), want %v and the first edition", broken, got, err, ErrTokenList)
		}
	}
}

// TestListOfNoName: the schema requires a name.
func TestListOfNoName(t *testing.T) {
	f := live()
	f.Service.Market = "é"
	var list struct{ Name string }
	if err := json.Unmarshal(Encode(TokenList(f, "")), &list); err != nil || list.Name != "token list" {
		t.Errorf("the list is called %q (%v)", list.Name, err)
	}
}
