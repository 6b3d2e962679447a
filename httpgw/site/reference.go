package site

import (
	"blockdesk/httpgw/reference"
	"blockdesk/httpgw/wire"
)

const (
	PathReference       = "/docs"
	PathReferenceFolder = PathReference + "/"
)

// ReferencePolicy is the Content-Security-Policy of the API reference (our choice). It is
// looser than that of the other pages in three points that Redoc needs: an empty style
// element, which Redoc fills and whose hash is given, so that no style with text is
// allowed; an icon in a data URL; and a search worker from a blob of its own text, which
// runs under the same policy.
const ReferencePolicy = "default-src 'none'; script-src 'self'; " +
	"style-src 'self' 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='; img-src 'self' data:; connect-src 'self'; worker-src blob:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// newReference returns the built files of the API reference.
func newReference() ([]download, error) {
	files, err := reference.Files()
	if err != nil {
		return nil, err
	}
	all := make([]download, 0, len(files))
	for _, f := range files {
		p := wire.NewPage(f.Body)
		p.Media = f.Media
		at := PathReferenceFolder + f.Name
		if f.Name == reference.Page {
			at, p.Policy = PathReference, []byte(ReferencePolicy)
		}
		all = append(all, download{path: at, page: p})
	}
	return all, nil
}
