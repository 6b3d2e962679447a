package httpgw

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// downloadsPath is where the files for integrators are; specificationPath, the
// one that is published with other URLs in it, is among them.
const downloadsPath = "/public-sdk/"

// MaxDownloads bounds the files of Options.Downloads: each is a route, and kept
// in memory.
const MaxDownloads = 256

// mediaTypes are those of downloads, by the ending of their name. What is not
// here is a binary.
var mediaTypes = map[string]string{
	".json": jsonType,
	".md":   "text/markdown; charset=utf-8",
	".xml":  "application/xml; charset=utf-8",
	".py":   "text/x-python; charset=utf-8",
	".ts":   "text/typescript; charset=utf-8",
	".cfg":  "text/plain; charset=utf-8",
	".cpp":  "text/plain; charset=utf-8",
	".mjs":  "text/javascript; charset=utf-8",
	".txt":  "text/plain; charset=utf-8", "": "text/plain; charset=utf-8", ".LICENSE": "text/plain; charset=utf-8",
}

// download is one file.
type download struct {
	path string // of its route
	page *page
}

// readDownloads reads all files of files, nil = none. The OpenAPI document is
// left out: publish serves it.
func readDownloads(files fs.FS) (all []download, err error) {
	if files == nil {
		return nil, nil
	}
	err = fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		at := downloadsPath + name
		if err != nil || entry.IsDir() || at == specificationPath {
			return err
		}
		if len(all) == MaxDownloads {
			return fmt.Errorf("more than %d files", MaxDownloads)
		}
		if strings.ContainsAny(name, "{}") {
			return fmt.Errorf("%s: a name in braces is no route", name)
		}
		body, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		media := mediaTypes[path.Ext(name)]
		if media == "" {
			media = "application/octet-stream"
		}
		p := hashPage(body)
		p.media = media
		all = append(all, download{at, p})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("httpgw: downloads: %w", err)
	}
	return all, nil
}

// downloadRoutes are a row for each file, on the addresses where the OpenAPI
// document is.
func (g *Gateway) downloadRoutes() []route {
	var table []route
	for _, d := range g.downloads {
		table = append(table, route{
			path: d.path, method: methodGet, surfaces: onBase | onAPI, cache: configData, limit: unlimited,
			read: func([]byte) (*page, *problem) { return d.page, nil },
		})
	}
	return table
}
