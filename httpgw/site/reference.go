package site

import "blockdesk/httpgw/wire"

import "blockdesk/httpgw/reference"

const (
	PathReference       = "/docs"
	PathReferenceFolder = PathReference + "/"
)

// ReferencePolicy is the policy of the page that shows the specification (our
// choice). It is looser than that of the other pages in three things that Redoc
// does: it writes its styles into an empty style element, whose hash is the one
// that is named here, so that no style with a text is allowed; it draws an icon
// from a URL that has the picture in it; and it searches in a worker that it makes
// of its own text, under this same policy.
const ReferencePolicy = "default-src 'none'; script-src 'self'; " +
	"style-src 'self' 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='; img-src 'self' data:; connect-src 'self'; worker-src blob:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// newReference reads the built files.
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
