// Package reference embeds the built API reference: an HTML page that shows the OpenAPI
// document with Redoc, whose bundle is patched to load nothing from other sites. make docs
// builds it from src/ into dist/, which is committed, so that the program builds without
// Node.
//
// It has no logic and no state. Package site serves the files and their
// Content-Security-Policy. The page reads the document from the service that served it, so
// it always shows the document of the running version.
package reference

import (
	"embed"

	"blockdesk/httpgw/board"
)

//go:embed dist
var dist embed.FS

// Page is the HTML file of the reference.
const Page = "docs.html"

// Files returns all files, sorted by name.
func Files() ([]board.File, error) { return board.Read(dist, "dist") }
