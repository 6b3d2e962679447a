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

// downloadsPath is where the files for integrators are. Two among them are
// published with this service's URLs in them: SpecificationPath and channelsPath.
const (
	downloadsPath = "/public-sdk/"
	channelsPath  = downloadsPath + "asyncapi/svc_ws_v1.json"
)

// MaxDownloads bounds the files of Options.Downloads: each is a route, and kept
// in memory.
const MaxDownloads = 256

// mediaTypes are those of downloads, by the ending of their name. What is not
// here is a binary.
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
	page *wire.Page // nil: what is published of text, made for the first who asks
	text []byte     // JSON
}

// Downloads are the files below /public-sdk/, read, packed and hashed: the gateways
// that a process has one after the other share them. The nil value has none.
// Immutable.
type Downloads struct{ all []download }

// ReadDownloads reads all files of files, by their path below /public-sdk/, at most
// MaxDownloads, and packs the packages among them. The OpenAPI document is left out:
// Options.Specification is served in its place.
func ReadDownloads(files fs.FS) (*Downloads, error) {
	var all []download
	add := func(name string, body []byte) error {
		if len(all) == MaxDownloads {
			return fmt.Errorf("more than %d files", MaxDownloads)
		}
		if strings.ContainsAny(name, "{}") {
			return fmt.Errorf("%s: a name in braces is no route", name)
		}
		media := mediaTypes[path.Ext(name)]
		if media == "" {
			media = "application/octet-stream"
		}
		if downloadsPath+name == channelsPath {
			if !json.Valid(body) {
				return fmt.Errorf("%s is not JSON", name)
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

// folderIndex is what a folder of downloads answers (our choice).
type folderIndex struct {
	OK      bool         `json:"ok"`
	Path    string       `json:"path"`
	Folders []string     `json:"folders"`
	Files   []folderFile `json:"files"`
}

// folderFile is a file with what its reader can hold a copy to; null of the
// OpenAPI and the AsyncAPI document, in which each service has its own addresses.
type folderFile struct {
	Path  string  `json:"path"`
	Media string  `json:"content_type"`
	Bytes *int    `json:"bytes"`
	Hash  *string `json:"sha256"` // hexadecimal
}

// indexDownloads makes an index of each folder that downloads are in, by name.
// specified: the OpenAPI document is among them.
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
		body, err := json.Marshal(f)
		if err != nil {
			panic("httpgw: an index that cannot be encoded: " + err.Error())
		}
		all = append(all, download{path: at, page: wire.NewPage(body)})
	}
	slices.SortFunc(all, func(a, b download) int { return cmp.Compare(a.path, b.path) })
	return all
}

// downloadRoutes are a row for each file and folder, on the addresses where the
// OpenAPI document is.
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
