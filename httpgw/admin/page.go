package admin

import (
	"fmt"
	"net/http"

	"blockdesk/httpgw/board"
	"blockdesk/httpgw/wire"
)

// Paths of the operators' page (our choice). The page itself needs no token and shows
// nothing: it asks for the operator's token and sends that with its requests.
const (
	pathDeskPage  = "/desk"
	pathDeskFiles = "/desk-page/"
)

// deskPolicy allows the page its own files and requests to this address only.
const deskPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// registerPage adds the operators' page and its files.
func registerPage(mux *http.ServeMux, outer *outerHandler) error {
	files, err := board.Files()
	if err != nil {
		return fmt.Errorf("httpgw: operators' page: %w", err)
	}
	for _, f := range files {
		path := pathDeskFiles + f.Name
		switch f.Name {
		case board.Desk:
			path = pathDeskPage
		case board.DeskScript, "board.css", "icon.svg":
		default:
			continue
		}
		mux.Handle(path, outer.readOnly(servePage(f)))
	}
	return nil
}

func servePage(f board.File) http.Handler {
	etag := string(wire.NewPage(f.Body).ETag)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("ETag", etag)
		h.Set("Cache-Control", "no-cache")
		h.Set("Content-Type", f.Media)
		h.Set("Content-Security-Policy", deskPolicy)
		h.Set("X-Frame-Options", "DENY")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		if r.Header.Get("If-None-Match") == etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		if r.Method != http.MethodHead {
			_, _ = w.Write(f.Body) // an error means that the client is gone
		}
	})
}
