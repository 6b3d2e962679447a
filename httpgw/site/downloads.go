package site

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"blockdesk/httpgw/wire"
)

// downloadsPath has the files for integrators. Two of them are published with this
// service's URLs: wire.SpecificationPath and channelsPath, the AsyncAPI document.
const (
	downloadsPath = "/public-sdk/"
	channelsPath  = downloadsPath + "asyncapi/svc_ws_v1.json"
)

// MaxDownloads bounds the files of Options.Downloads. Each is a route and is held in
// memory.
const MaxDownloads = 256

// mediaTypes has the Content-Type of downloads by file extension. All others are binary.
var mediaTypes = map[string]string{
	".json": wire.JSONType,
	".md":   "text/markdown; charset=utf-8",
	".xml":  "application/xml; charset=utf-8",
	".py":   "text/x-python; charset=utf-8",
	".toml": "application/toml",
	".ts":   "text/typescript; charset=utf-8",
	".cfg":  "text/plain; charset=utf-8",
	".cpp":  "text/plain; charset=utf-8",
	".js":   "text/javascript; charset=utf-8", ".mjs": "text/javascript; charset=utf-8",
	".tgz": "application/gzip",
	".txt": "text/plain; charset=utf-8", "": "text/plain; charset=utf-8", ".LICENSE": "text/plain; charset=utf-8",
}

// download is one file.
type download struct {
	path string     // of its route
	page *wire.Page // nil: text is published on the first request
	text []byte     // JSON
}

// Downloads are the files below /public-sdk/, read, packed and hashed. Successive gateways
// of a process share them. They are immutable.
type Downloads struct{ all []download }

// ReadDownloads reads all of files, at most MaxDownloads, and packs the packages among
// them. A file's path is its path below /public-sdk/. The OpenAPI document is left out,
// because Options.Specification is served instead.
func ReadDownloads(files fs.FS) (*Downloads, error) {
	var all []download
	add := func(name string, body []byte) error {
		if len(all) == MaxDownloads {
			return fmt.Errorf("downloads: more than %d files", MaxDownloads)
		}
		if strings.ContainsAny(name, "{}") {
			return fmt.Errorf("downloads: %s: a file name must not contain braces", name)
		}
		media := mediaTypes[path.Ext(name)]
		if media == "" {
			media = "application/octet-stream"
		}
		if downloadsPath+name == channelsPath {
			if !json.Valid(body) {
				return fmt.Errorf("downloads: %s is not JSON", name)
			}
			all = append(all, download{path: channelsPath, text: body})
			return nil
		}
		p := wire.NewPage(body)
		p.Media = media
		all = append(all, download{path: downloadsPath + name, page: p})
		return nil
	}
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || downloadsPath+name == wire.SpecificationPath {
			return err
		}
		body, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		if isManifest(path.Base(name)) {
			packed, err := packFolder(files, path.Dir(name))
			if err != nil {
				return err
			}
			if err := add(path.Join(path.Dir(name), archiveName), packed); err != nil {
				return err
			}
		}
		return add(name, body)
	})
	if err != nil {
		return nil, fmt.Errorf("httpgw: downloads: %w", err)
	}
	return &Downloads{all}, nil
}

// folderIndex is the body of a folder of downloads (our choice).
type folderIndex struct {
	OK      bool         `json:"ok"`
	Path    string       `json:"path"`
	Folders []string     `json:"folders"`
	Files   []folderFile `json:"files"`
}

// folderFile is a file with its size and hash. They are null for the OpenAPI and the
// AsyncAPI document, which contain the URLs of each service.
type folderFile struct {
	Path  string  `json:"path"`
	Media string  `json:"content_type"`
	Bytes *int    `json:"bytes"`
	Hash  *string `json:"sha256"` // hexadecimal
}

// indexDownloads returns an index of each folder, sorted by path. specified means that the
// OpenAPI document is listed too.
func indexDownloads(files []download, specified bool) []download {
	folders := map[string]*folderIndex{}
	var folder func(at string) *folderIndex
	folder = func(at string) *folderIndex {
		if folders[at] == nil {
			folders[at] = &folderIndex{OK: true, Path: at, Folders: []string{}, Files: []folderFile{}}
			if at != downloadsPath {
				above := folder(path.Dir(strings.TrimSuffix(at, "/")) + "/")
				above.Folders = append(above.Folders, at)
			}
		}
		return folders[at]
	}
	add := func(f folderFile) {
		in := folder(path.Dir(f.Path) + "/")
		in.Files = append(in.Files, f)
	}
	for i := range files {
		if files[i].page == nil {
			add(folderFile{Path: files[i].path, Media: wire.JSONType})
			continue
		}
		sum := sha256.Sum256(files[i].page.Body)
		size, hash := len(files[i].page.Body), hex.EncodeToString(sum[:])
		add(folderFile{files[i].path, files[i].page.Media, &size, &hash})
	}
	if specified {
		add(folderFile{Path: wire.SpecificationPath, Media: wire.JSONType})
	}
	var all []download
	for at, f := range folders {
		slices.Sort(f.Folders)
		slices.SortFunc(f.Files, func(a, b folderFile) int { return strings.Compare(a.Path, b.Path) })
		all = append(all, download{path: at, page: wire.NewPage(marshal(f))})
	}
	slices.SortFunc(all, func(a, b download) int { return cmp.Compare(a.path, b.path) })
	return all
}

// downloadRoutes returns a route for each file and folder.
func (e *Endpoints) downloadRoutes() []wire.Route {
	var table []wire.Route
	for _, d := range e.downloads {
		read := d.page.Serve
		if d.page == nil {
			read = published(d.text, &e.o.URLs)
		}
		table = append(table, wire.Get(d.path, wire.OnREST, wire.ConfigData, wire.Unlimited, "", read))
	}
	return table
}
