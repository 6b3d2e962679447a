package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"blockdesk/httpgw/catalog"
)

// tokenListFile has the token list that was published last, in the data folder:
// what the next one is numbered after.
const tokenListFile = "tokenlist.json"

// numberList returns the edition of the token list of these facts, after the one
// that the data folder has, and remembers the list where it is another one. An
// error comes with an edition that can be published, the first one where the file
// cannot be read; that file is left as it is, for whoever mends it.
func numberList(dataDir string, f *catalog.Facts) (catalog.Edition, error) {
	path := filepath.Join(dataDir, tokenListFile)
	before, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		edition, _ := catalog.NextEdition(nil, f)
		return edition, err
	}
	edition, err := catalog.NextEdition(before, f)
	if err != nil {
		return edition, fmt.Errorf("%s: %w", path, err)
	}
	numbered := *f
	numbered.Service.Listed = edition
	list := append(catalog.Encode(catalog.TokenList(&numbered, "")), '\n')
	if bytes.Equal(list, before) {
		return edition, nil
	}
	return edition, replaceFile(path, list)
}

// publishedFacts makes the facts book with the token list numbered.
func (s *service) publishedFacts() *factsBook {
	b := newFactsBook(s)
	edition, err := numberList(s.cfg.DataDir, &catalog.Facts{Service: b.service, Tokens: s.cfg.factsTokens()})
	if err != nil {
		s.log.Error("the token list's version may be one that its readers have seen before", "error", err)
	}
	b.service.Listed = edition
	return b
}
