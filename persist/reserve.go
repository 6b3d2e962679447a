package persist

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// reserveFile, in Options.Dir, has no content: its blocks are allocated past its end.
const reserveFile = "reserve"

// ReleaseReserve deletes the reserve of a stopped store or node if less than
// o.ReserveBytes is free. Without it a start on a full disk could write nothing, and
// systemd would try again and again. A failure is logged: the start says what it lacks.
func ReleaseReserve(o Options) {
	o = o.withDefaults()
	usage, err := o.FS.GetDiskUsage(o.Dir)
	if oserror.IsNotExist(err) || errors.Is(err, vfs.ErrUnsupported) {
		return // a new folder, or a file system in memory
	}
	if err == nil {
		err = o.keepReserve(&usage, DiskLow)
	}
	if err != nil {
		o.Logger.Warn("the reserve of disk space cannot be checked", "error", err)
	}
}

// keepReserve deletes the reserve if less than ReserveBytes is free, or if there should be
// none, and creates it on a disk
// that is not short of space, with it neither. An existing one keeps its size.
func (o *Options) keepReserve(usage *vfs.DiskUsage, level DiskLevel) error {
	path := o.FS.PathJoin(o.Dir, reserveFile)
	_, err := o.FS.Stat(path)
	if err != nil && !oserror.IsNotExist(err) {
		return fmt.Errorf("reading the state of %s: %w", path, err)
	}
	switch exists := err == nil; {
	case exists && (usage.AvailBytes < o.ReserveBytes || o.ReserveBytes == 0):
		if err := o.FS.Remove(path); err != nil {
			return fmt.Errorf("deleting the reserve: %w", err)
		}
		if o.ReserveBytes > 0 {
			o.Logger.Error("disk is full: the reserve was deleted to make room", "bytes", o.ReserveBytes)
		}
	case !exists && level == DiskOK && o.ReserveBytes > 0:
		left := vfs.DiskUsage{AvailBytes: usage.AvailBytes - min(usage.AvailBytes, o.ReserveBytes), TotalBytes: usage.TotalBytes}
		if o.levelOf(freePercent(&left)) == DiskOK {
			return o.createReserve(path)
		}
	}
	return nil
}

func (o *Options) createReserve(path string) error {
	f, err := o.FS.Create(path, "blockdesk-reserve")
	if err != nil {
		return fmt.Errorf("creating the reserve: %w", err)
	}
	if err := errors.Join(f.Preallocate(0, int64(o.ReserveBytes)), f.Close()); err != nil {
		return errors.Join(fmt.Errorf("creating the reserve: %w", err), o.FS.Remove(path))
	}
	return nil
}
