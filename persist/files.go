package persist

import (
	"cmp"
	"errors"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// FS is the file system of a data folder.
type FS = vfs.FS

// ReadFile returns the content of a small file. A nil fs is the disk. Errors: fs.ErrNotExist.
func ReadFile(fs FS, path string) ([]byte, error) {
	file, err := cmp.Or(fs, vfs.Default).Open(path)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(file)
	return text, errors.Join(err, file.Close())
}

// ReplaceFile replaces a small file: after an error or a crash it has its old content or text.
// The folder is not synced, so the old content may return after a power failure. A nil fs is the
// disk. Concurrent calls for one path are not safe.
func ReplaceFile(fs FS, path string, text []byte) error {
	fs = cmp.Or(fs, vfs.Default)
	file, err := fs.Create(path+".new", "blockdesk-file")
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return fs.Rename(path+".new", path)
}
