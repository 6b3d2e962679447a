// Package atomicfile replaces small files whole or not at all: it writes and syncs a new
// file beside the old one and renames it. A crash leaves the old content or the new one.
//
// The folder is not synced: after a power failure the old content may return. So it is for
// files that can be written again, such as addresses, tokens of a demo and test
// certificates; what must survive belongs into the journal or a store. Files are readable
// by their owner only.
package atomicfile

import (
	"errors"
	"os"
)

// Write replaces the file at path with text, readable by its owner only. After an
// error or a crash the file has either its old content or the new one. Write syncs
// the file, not its folder. Concurrent calls for one path are not safe.
func Write(path string, text []byte) (err error) {
	file, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
