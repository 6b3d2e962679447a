//go:build feed_goroutines

package simulation

import (
	"runtime"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// disk is the disk of a process. It has room, and it can end the process in the middle of an
// operation: virtual time moves only when everybody waits, so a kill by a clock would find
// everything done.
type disk struct {
	vfs.FS

	left   atomic.Int64 // operations until crash is called; not above 0: it is not
	before bool         // crash is called before the last one of them, not after
	crash  func()
}

// yields is how often the last operation lets others run before the crash, as a slow disk does:
// what they do before it is done must not need it.
const yields = 3000

// operate counts an operation, which comes before or after the crash.
func (d *disk) operate(operation func() error) error {
	left := d.left.Add(-1)
	if left == 0 && d.before {
		for range yields {
			runtime.Gosched()
		}
		d.crash()
	}
	err := operation()
	if left == 0 && !d.before {
		d.crash()
	}
	return err
}

func (*disk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: 1 << 39, TotalBytes: 1 << 40, UsedBytes: 1 << 39}, nil
}

// Unwrap implements vfs.FS.
func (d *disk) Unwrap() vfs.FS { return d.FS }

func (d *disk) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return d.counted(d.FS.Create(name, c))
}

func (d *disk) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	return d.counted(d.FS.OpenReadWrite(name, c, o...))
}

func (d *disk) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return d.counted(d.FS.ReuseForWrite(from, to, c))
}

func (d *disk) counted(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &file{f, d}, nil
}

// file is a file of a disk.
type file struct {
	vfs.File
	disk *disk
}

func (f *file) Write(b []byte) (n int, err error) {
	err = f.disk.operate(func() error {
		n, err = f.File.Write(b)
		return err
	})
	return n, err
}

func (f *file) WriteAt(b []byte, at int64) (n int, err error) {
	err = f.disk.operate(func() error {
		n, err = f.File.WriteAt(b, at)
		return err
	})
	return n, err
}

func (f *file) Sync() error     { return f.disk.operate(f.File.Sync) }
func (f *file) SyncData() error { return f.disk.operate(f.File.SyncData) }

func (f *file) SyncTo(length int64) (full bool, err error) {
	err = f.disk.operate(func() error {
		full, err = f.File.SyncTo(length)
		return err
	})
	return full, err
}
