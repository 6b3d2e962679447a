package sandbox

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// server has the server's source and, if make sandbox ran before the build, LiteSVM.
//
//go:embed server.mjs lib package.json package-lock.json runtime
var server embed.FS

const (
	runtimeArchive = "runtime/litesvm.tar.gz"
	// runtimeMark, in an unpacked folder, has the SHA-256 of the archive that was unpacked.
	runtimeMark = "node_modules/.litesvm"
	// maxUnpacked bounds the bytes of the archive's files.
	maxUnpacked = 256 << 20
)

// Complete reports whether this program contains LiteSVM, so that Unpack is all that the
// chain needs besides Node.
func Complete() bool {
	_, err := fs.Stat(server, runtimeArchive)
	return err == nil
}

// Unpack writes the server, and LiteSVM if the program contains it, to dir, which it
// creates. Files that are up to date are not written again.
func Unpack(dir string) error {
	err := fs.WalkDir(server, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Dir(name) == path.Dir(runtimeArchive) {
			return err
		}
		body, err := server.ReadFile(name)
		if err != nil {
			return err
		}
		return writeNew(filepath.Join(dir, filepath.FromSlash(name)), body)
	})
	if err == nil {
		err = unpackRuntime(dir)
	}
	if err != nil {
		return fmt.Errorf("sandbox: unpack to %s: %w", dir, err)
	}
	return nil
}

// writeNew writes a file unless it has this content.
func writeNew(file string, body []byte) error {
	if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, body) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, body, 0o644)
}

// unpackRuntime unpacks LiteSVM. The mark is written last, so that an interrupted
// attempt is repeated.
func unpackRuntime(dir string) error {
	archive, err := server.ReadFile(runtimeArchive)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	sum := sha256.Sum256(archive)
	mark := filepath.Join(dir, filepath.FromSlash(runtimeMark))
	if old, err := os.ReadFile(mark); err == nil && string(old) == hex.EncodeToString(sum[:]) {
		return nil
	}
	plain, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return err
	}
	files := tar.NewReader(io.LimitReader(plain, maxUnpacked))
	for {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return writeNew(mark, hex.AppendEncode(nil, sum[:]))
		} else if err != nil {
			return err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if !filepath.IsLocal(h.Name) {
			return fmt.Errorf("%s: %w", h.Name, fs.ErrInvalid)
		}
		body, err := io.ReadAll(files)
		if err == nil {
			err = writeNew(filepath.Join(dir, filepath.FromSlash(h.Name)), body)
		}
		if err != nil {
			return err
		}
	}
}
