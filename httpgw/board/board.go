// Package board embeds the built pages: the board, the wallet page and the operators'
// page. make board builds them from src/ into dist/, which is committed, so that the
// program builds without Node.
//
// It has no logic and no state: Files returns the built files with their media types.
// Package site serves the board and the wallet page, package admin the operators' page,
// which is for the admin address only. A page loads nothing from another site, and its
// requests go to the service that served it.
package board

import (
	"embed"
	"path"
)

//go:embed dist
var dist embed.FS

// Page is the HTML file of the board. Wallet is the wallet page: an html/template for
// catalog.WalletFacts.
const (
	Page   = "board.html"
	Wallet = "wallet.html"
	// Desk is the operators' page and DeskScript its script: they are for the admin
	// address only.
	Desk       = "desk.html"
	DeskScript = "desk.js"
)

// mediaTypes has the Content-Type by file extension.
var mediaTypes = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".css": "text/css; charset=utf-8", ".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8",
}

// File is a built file. Body must not be changed.
type File struct {
	Name, Media string
	Body        []byte
}

// Files returns all files, sorted by name.
func Files() ([]File, error) { return Read(dist, "dist") }

// Read returns the files of a folder, sorted by name.
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
