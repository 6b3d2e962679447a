package service

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"blockdesk/catalog"
)

// tokenListFile holds the token list that was published last. The next one is
// numbered after it.
const tokenListFile = "tokenlist.json"

// numberList returns the edition of these facts' token list, numbered after the
// stored one, and stores the list if it changed. An error comes with an edition
// that can be published, which is the first one if the file cannot be read; the
// file stays as it is, for the operator to repair.
func numberList(kept StateFiles, f *catalog.Facts) (catalog.Edition, error) {
	before, err := kept.Read(tokenListFile)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		edition, _ := catalog.NextEdition(nil, f)
		return edition, err
	}
	edition, err := catalog.NextEdition(before, f)
	if err != nil {
		return edition, fmt.Errorf("%s: %w", kept.Location(tokenListFile), err)
	}
	numbered := *f
	numbered.Service.TokenListEdition = edition
	list := append(catalog.Encode(catalog.TokenList(&numbered, "")), '\n')
	if bytes.Equal(list, before) {
		return edition, nil
	}
	return edition, kept.Write(tokenListFile, list)
}
