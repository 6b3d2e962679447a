// Package board has the pages for people, as they are sent: the board, and what
// the wallet page needs. They are built from src/ by make board; dist/ is
// committed, so that the program builds without Node.
package board

import (
	"embed"
	"path"
)

//go:embed dist
var dist embed.FS

// Page is the file that the board begins with; Wallet is the wallet page, a
// template of html/template over catalog.WalletFacts.
const (
	Page   = "board.html"
	Wallet = "wallet.html"
)

// mediaTypes are those of the files, by the ending of their name.
var mediaTypes = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".css": "text/css; charset=utf-8", ".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8",
}

// File is one of the files. Nobody changes Body.
type File struct {
	Name, Media string
	Body        []byte
}

// Files returns all files, by name.
func Files() ([]File, error) { return Read(dist, "dist") }

// Read returns the files of a folder of a tree, by name.
func Read(tree embed.FS, folder string) ([]File, error) {
	entries, err := tree.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	files := make([]File, 0, len(entries))
	for _, e := range entries {
		body, err := tree.ReadFile(folder + "/" + e.Name())
		if err != nil {
			return nil, err
		}
		files = append(files, File{e.Name(), mediaTypes[path.Ext(e.Name())], body})
	}
	return files, nil
}
