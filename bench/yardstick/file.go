package yardstick

import (
	"fmt"
	"hash/crc32"
	"os"
	"syscall"
)

// File is a plain append-only log: a file written once over its whole length
// beforehand, so that an append changes no metadata; each append is a checksum,
// one write and one fdatasync.
type File struct {
	f       *os.File
	offset  int64
	size    int64
	scratch []byte
	table   *crc32.Table
}

// NewFile makes the file at path, size bytes long, and syncs it.
func NewFile(path string, size int64) (*File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	zeros := make([]byte, 1<<20)
	for at := int64(0); at < size; at += int64(len(zeros)) {
		if _, err := f.WriteAt(zeros[:min(int64(len(zeros)), size-at)], at); err != nil {
			f.Close()
			return nil, err
		}
	}
	if err := f.Sync(); err != nil {
		f.Close()
		return nil, err
	}
	return &File{f: f, size: size, table: crc32.MakeTable(crc32.Castagnoli)}, nil
}

// Append writes one record and returns when it is on disk. At the end of the
// file it starts again at the beginning.
func (l *File) Append(record []byte) error {
	sum := crc32.Checksum(record, l.table)
	l.scratch = append(append(l.scratch[:0], byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24)), record...)
	n := int64(len(l.scratch))
	if n > l.size {
		return fmt.Errorf("record of %d bytes, file of %d", n, l.size)
	}
	if l.offset+n > l.size {
		l.offset = 0
	}
	if _, err := l.f.WriteAt(l.scratch, l.offset); err != nil {
		return err
	}
	l.offset += n
	return syscall.Fdatasync(int(l.f.Fd()))
}

// Close closes the file.
func (l *File) Close() error { return l.f.Close() }
