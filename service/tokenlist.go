package service

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"blockdesk/catalog"
)

// tokenListFile holds the last published token list. The next version follows it.
const tokenListFile = "tokenlist.json"

// numberList returns the edition of these facts' token list, numbered after the
// stored one, and stores the list if it changed. With an error it also returns an edition to
// publish, the first one if the file cannot be read; the file stays unchanged for the
// operator to repair.
func numberList(files StateFiles, f *catalog.Facts) (catalog.Edition, error) {
	before, err := files.Read(tokenListFile)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		edition, _ := catalog.NextEdition(nil, f)
		return edition, err
	}
	edition, err := catalog.NextEdition(before, f)
	if err != nil {
		return edition, fmt.Errorf("%s: %w", files.Location(tokenListFile), err)
	}
	numbered := *f
	numbered.Service.TokenListEdition = edition
	list := append(catalog.Encode(catalog.TokenList(&numbered, "")), '\n')
	if bytes.Equal(list, before) {
		return edition, nil
	}
	return edition, files.Write(tokenListFile, list)
}
