package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// uniswapSolana is the chain id of Solana in Uniswap's token lists.
const uniswapSolana = 501000101

// tokenList follows the public schema of Uniswap's token lists, which allows no other
// members.
type tokenList struct {
	Name      string        `json:"name"`
	Timestamp Time          `json:"timestamp"`
	Version   ListVersion   `json:"version"`
	Keywords  []string      `json:"keywords"`
	Logo      string        `json:"logoURI,omitempty"`
	Tokens    []listedToken `json:"tokens"`
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

// TokenList returns the tokens that have a mint. Without any, the list is empty, and the
// public schema refuses it.
func TokenList(f *Facts, _ string) any {
	edition := f.Service.edition()
	d := &tokenList{
		Name: listName(f.Service.Market), Timestamp: edition.At, Version: edition.Version,
		Keywords: []string{"solana", "rfq", "dvp"}, Tokens: []listedToken{},
	}
	if d.Name == "" {
		d.Name = "token list" // the market's name has no letter that the schema allows
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

// ErrTokenList means that the stored token list cannot be read.
var ErrTokenList = errors.New("catalog: the stored version of the token list cannot be read")

// NextEdition returns the edition of the facts' token list. before is the JSON of the
// list published before; empty if there was none. By the public rules a removed mint is a
// new major version, an added one a new minor version, any other change a patch; without a
// change the edition stays. Consumers ignore a version that is not above their own, so the
// content alone cannot determine it. Errors: ErrTokenList.
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
	switch {
	case lacksAny(next.Tokens, old.Tokens):
		v = ListVersion{Major: v.Major + 1}
	case lacksAny(old.Tokens, next.Tokens):
		v = ListVersion{Major: v.Major, Minor: v.Minor + 1}
	default:
		next.Version, next.Timestamp = v, same.At
		if bytes.Equal(Encode(next), bytes.TrimSpace(before)) {
			return same, nil
		}
		v.Patch++
	}
	// The later edition is never older, even if the clock was set back.
	return Edition{v, max(same.At, first.At)}, nil
}

// lacksAny reports whether a mint of tokens is missing in list.
func lacksAny(list, tokens []listedToken) bool {
	mints := make(map[string]bool, len(list))
	for i := range list {
		mints[list[i].Address] = true
	}
	return slices.ContainsFunc(tokens, func(t listedToken) bool { return !mints[t.Address] })
}

// listName reduces a name to the characters that the schema allows: letters, digits, "_"
// and spaces.
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
