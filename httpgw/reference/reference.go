// Package reference has the page that shows the OpenAPI document to people, as it
// is sent: Redoc's bundle, with what it would fetch from elsewhere taken out, and
// what lays the document out with it. It is built from src/ by make docs; dist/ is
// committed, so that the program builds without Node.
package reference

import (
	"embed"

	"blockdesk/httpgw/board"
)

//go:embed dist
var dist embed.FS

// Page is the file that the page begins with.
const Page = "docs.html"

// Files returns all files, by name.
func Files() ([]board.File, error) { return board.Read(dist, "dist") }
