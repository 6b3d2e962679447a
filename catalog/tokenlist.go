package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// uniswapSolana is the chain id of Solana in Uniswap's token lists.
const uniswapSolana = 501000101

// tokenList is a list by the public schema of Uniswap's token lists: no member
// more, or it does not validate.
type tokenList struct {
	Name      string        `json:"name"`
	Timestamp Time          `json:"timestamp"`
	Version   ListVersion   `json:"version"`
	Keywords  []string      `json:"keywords"`
	Logo      string        `json:"logoURI,omitempty"`
	Tokens    []listedToken `json:"tokens"`
}

// ListVersion is a list's semantic version.
type ListVersion struct {
	Major int `json:"major"`
	Minor int `json:"minor"`
	Patch int `json:"patch"`
}

// Edition is the version of a token list and since when it stands. Both change
// when the list does and stay over restarts that change nothing.
type Edition struct {
	Version ListVersion
	At      Time
}

type listedToken struct {
	Chain      int               `json:"chainId"`
	Address    string            `json:"address"`
	Decimals   uint8             `json:"decimals"`
	Name       string            `json:"name"`
	Symbol     string            `json:"symbol"`
	Logo       string            `json:"logoURI,omitempty"`
	Extensions map[string]string `json:"extensions,omitempty"`
}

// Limits of the schema, in characters.
const (
	maxListName  = 30
	maxExtension = 42
)

// TokenList returns the tokens that have a mint. Where none has, the list is
// empty, which the public schema does not take.
func TokenList(f *Facts, _ string) any {
	edition := f.Service.edition()
	d := &tokenList{
		Name: listName(f.Service.Market), Timestamp: edition.At, Version: edition.Version,
		Keywords: []string{"solana", "rfq", "dvp"}, Tokens: []listedToken{},
	}
	if d.Name == "" {
		d.Name = "token list" // the market's name has no letter that a list's may have
	}
	for i := range f.Tokens {
		t := &f.Tokens[i]
		if t.Mint == "" {
			continue
		}
		d.Tokens = append(d.Tokens, listedToken{
			Chain: uniswapSolana, Address: t.Mint, Decimals: t.Decimals, Name: t.Name, Symbol: t.Symbol, Logo: t.LogoURI,
			Extensions: map[string]string{"role": t.Role.String(), "network": cut(f.Service.Network, maxExtension)},
		})
	}
	return d
}

func (s *Service) edition() Edition {
	if s.TokenListEdition == (Edition{}) {
		return Edition{ListVersion{Major: 1}, s.ConfiguredAt}
	}
	return s.TokenListEdition
}

// ErrTokenList says that what should be a token list of ours is none.
var ErrTokenList = errors.New("catalog: not a token list")

// NextEdition returns the edition of the list that these facts make, where the
// list before it is the JSON that TokenList made then; empty = there was none. By
// the public rules a token that is gone, by its mint, is a new major version, one
// that has come a new minor version, and any other change a patch; nothing changed
// is the same edition. Consumers ignore a version that is not above the one they
// have, so that it cannot be made of the content alone. It fails with ErrTokenList.
func NextEdition(before []byte, f *Facts) (Edition, error) {
	first := Edition{ListVersion{Major: 1}, f.Service.ConfiguredAt}
	if len(before) == 0 {
		return first, nil
	}
	var old struct {
		tokenList
		Timestamp time.Time `json:"timestamp"`
	}
	if err := json.Unmarshal(before, &old); err != nil {
		return first, fmt.Errorf("%w: %w", ErrTokenList, err)
	}
	v := old.Version
	if v.Major < 1 || v.Minor < 0 || v.Patch < 0 || old.Timestamp.IsZero() {
		return first, fmt.Errorf("%w: version %+v of %v", ErrTokenList, v, old.Timestamp)
	}
	same := Edition{v, Time(old.Timestamp.UnixNano())}
	next, _ := TokenList(f, "").(*tokenList)
	gone, come := tokensBut(old.Tokens, next.Tokens), tokensBut(next.Tokens, old.Tokens)
	switch {
	case gone:
		v = ListVersion{Major: v.Major + 1}
	case come:
		v = ListVersion{Major: v.Major, Minor: v.Minor + 1}
	default:
		next.Version, next.Timestamp = v, same.At
		if bytes.Equal(Encode(next), bytes.TrimSpace(before)) {
			return same, nil
		}
		v.Patch++
	}
	// A clock that was set back does not make the later edition the older one.
	return Edition{v, max(same.At, first.At)}, nil
}

// tokensBut reports whether all has a mint that is not in others.
func tokensBut(all, others []listedToken) bool {
	known := make(map[string]bool, len(others))
	for i := range others {
		known[others[i].Address] = true
	}
	for i := range all {
		if !known[all[i].Address] {
			return true
		}
	}
	return false
}

// listName keeps what the schema allows in a name: letters, digits, "_" and
// spaces.
func listName(name string) string {
	var out []byte
	for _, c := range []byte(name) {
		word := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
		if !word {
			c = ' '
		}
		out = append(out, c)
	}
	return strings.TrimSpace(cut(strings.Join(strings.Fields(string(out)), " "), maxListName))
}

func cut(text string, most int) string { return text[:min(len(text), most)] }
