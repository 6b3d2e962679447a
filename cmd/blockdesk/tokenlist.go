package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"blockdesk/catalog"
)

// tokenListFile is the note of the token list that was published last: what the
// next one is numbered after.
const tokenListFile = "tokenlist.json"

// numberList returns the edition of the token list of these facts, after the one
// that kept has, and keeps the list where it is another one. An error comes with
// an edition that can be published, the first one where the note cannot be read;
// that is left as it is, for whoever mends it.
func numberList(kept notes, f *catalog.Facts) (catalog.Edition, error) {
	before, err := kept.read(tokenListFile)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		edition, _ := catalog.NextEdition(nil, f)
		return edition, err
	}
	edition, err := catalog.NextEdition(before, f)
	if err != nil {
		return edition, fmt.Errorf("%s: %w", kept.where(tokenListFile), err)
	}
	numbered := *f
	numbered.Service.Listed = edition
	list := append(catalog.Encode(catalog.TokenList(&numbered, "")), '\n')
	if bytes.Equal(list, before) {
		return edition, nil
	}
	return edition, kept.write(tokenListFile, list)
}

// publishedFacts makes the facts book with the token list numbered.
func (s *service) publishedFacts() *factsBook {
	b := newFactsBook(s)
	edition, err := numberList(s.notes, &catalog.Facts{Service: b.service, Tokens: factsTokens(s.cfg)})
	if err != nil {
		s.log.Error("the token list's version may be one that its readers have seen before", "error", err)
	}
	b.service.Listed = edition
	return b
}
