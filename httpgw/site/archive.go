package site

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// archiveName is the archive of a package's folder, which npm and pip can install by URL
// (our choice).
const archiveName = "blockdesk.tgz"

// archiveRoot is the root folder of the archive. npm requires this name.
const archiveRoot = "package"

// isManifest reports whether a file of this name makes its folder a package.
func isManifest(name string) bool { return name == "package.json" || name == "pyproject.toml" }

// packFolder packs a folder into a .tgz. It is deterministic.
func packFolder(files fs.FS, folder string) ([]byte, error) {
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	tarred := tar.NewWriter(zipped)
	err := fs.WalkDir(files, folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		inside := path.Join(archiveRoot, strings.TrimPrefix(name, folder))
		if err := tarred.WriteHeader(&tar.Header{Name: inside, Mode: 0o644, Size: int64(len(body)), Format: tar.FormatUSTAR}); err != nil {
			return err
		}
		_, err = tarred.Write(body)
		return err
	})
	if err == nil {
		err = tarred.Close()
	}
	if err == nil {
		err = zipped.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path.Join(folder, archiveName), err)
	}
	return packed.Bytes(), nil
}
