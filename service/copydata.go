package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"blockdesk/persist"
)

// storeFolders are the folders of the stores.
var storeFolders = []string{FIXFolder, deskFolder, settleFolder, historyFolder, mirrorFolder}

// CopyData copies a stopped service's data folder: the stores file by file, then the
// journal at o.Dir with copyJournal. Nothing may have them open. The journal comes last,
// because a folder without a journal is not a data folder: a copy that a kill or a power
// cut has interrupted is not mistaken for a complete one. After an error or the end of ctx
// CopyData removes its files. step runs each of the two steps with a function that receives
// the progress in bytes.
func CopyData(ctx context.Context, o persist.ToolOptions, target string, copyJournal func(persist.ToolOptions, string) error,
	step func(name string, work func(progress func(done, total uint64) error) error) error,
) error {
	from := filepath.Dir(o.Dir)
	if _, err := os.Stat(o.Dir); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s", persist.ErrNoStore, o.Dir)
	}
	made, err := reserve(target)
	if err != nil {
		return err
	}
	err = step("stores", func(progress func(done, total uint64) error) error { return copyStores(ctx, from, target, progress) })
	if err == nil {
		err = step("journal", func(progress func(done, total uint64) error) error {
			o.Progress = progress
			return copyJournal(o, filepath.Join(target, JournalFolder))
		})
	}
	if err == nil {
		err = copyFiles(from, target)
	}
	if err != nil {
		err = errors.Join(err, made.undo())
	}
	return err
}

// reserved is the target of a copy.
type reserved struct {
	dir string
	own bool // created by reserve
}

// reserve creates the target, and fails if it has a journal or a store.
func reserve(dir string) (reserved, error) {
	_, err := os.Stat(dir)
	r := reserved{dir, errors.Is(err, fs.ErrNotExist)}
	if err := persist.MakeDir(nil, dir, 0o700); err != nil {
		return r, err
	}
	for _, folder := range append([]string{JournalFolder}, storeFolders...) {
		if _, err := os.Lstat(filepath.Join(dir, folder)); !errors.Is(err, fs.ErrNotExist) {
			return r, errors.Join(fmt.Errorf("%w: %s is there already", persist.ErrNotEmpty, filepath.Join(dir, folder)), err)
		}
	}
	return r, nil
}

// undo removes the copied files, and nothing else.
func (r *reserved) undo() error {
	var errs []error
	for _, name := range append(append([]string{JournalFolder}, storeFolders...), copiedFiles...) {
		errs = append(errs, os.RemoveAll(filepath.Join(r.dir, name)))
	}
	if r.own {
		errs = append(errs, os.Remove(r.dir))
	}
	return errors.Join(errs...)
}

// copyStores copies the stores that exist; an older version has fewer.
func copyStores(ctx context.Context, from, to string, progress func(done, total uint64) error) error {
	var done, total uint64
	var files []string // below from
	for _, folder := range storeFolders {
		err := filepath.WalkDir(filepath.Join(from, folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			name, err := filepath.Rel(from, path)
			if err != nil {
				return err
			}
			if entry.IsDir() {
				return os.MkdirAll(filepath.Join(to, name), 0o700)
			}
			info, err := entry.Info()
			if err != nil {
				return err
			}
			files, total = append(files, name), total+uint64(info.Size())
			return nil
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	count := func(n int) error {
		done += uint64(n)
		return progress(done, total)
	}
	for _, name := range files {
		if err := copyOne(filepath.Join(from, name), filepath.Join(to, name), count); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return ctx.Err()
}

// copyOne copies and syncs a file, and passes the bytes written to count.
func copyOne(from, to string, count func(int) error) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if _, err := io.Copy(countingWriter{out, count}, in); err != nil {
		return err
	}
	return out.Sync()
}

// countingWriter passes the bytes of each write to count.
type countingWriter struct {
	to    io.Writer
	count func(int) error
}

func (w countingWriter) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	if err == nil {
		err = w.count(n)
	}
	return n, err
}
