package persist

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// DiskWatch checks the free space of a folder's disk. Safe for concurrent use.
type DiskWatch struct {
	o Options

	mu   sync.Mutex
	low  bool
	used int // per cent; the zero value means that nothing is wrong
}

// NewDiskWatch returns a watch configured by Dir, FS, DiskEvery, DiskLow,
// DiskLowPercent and Logger of o. Errors: those of Options.Validate.
func NewDiskWatch(o Options) (*DiskWatch, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return &DiskWatch{o: o.withDefaults()}, nil
}

// Run checks at once and then every DiskEvery, until ctx ends, and returns nil. If the
// free space cannot be read it logs that and keeps the last result.
func (d *DiskWatch) Run(ctx context.Context) error {
	return every(ctx, d.o.DiskEvery, func() error { d.check(); return nil })
}

// Read returns the last result: whether the free share is below DiskLowPercent, and
// that share; false and 100 before the first check. It never waits for the disk.
func (d *DiskWatch) Read() (low bool, freePercent int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.low, 100 - d.used
}

// FreePercent returns the share of a folder's disk that is free, in per cent.
func FreePercent(dir string) (int, error) {
	usage, err := vfs.Default.GetDiskUsage(dir)
	if err != nil {
		return 0, err
	}
	return freePercent(&usage), nil
}

func freePercent(u *vfs.DiskUsage) int { return int(u.AvailBytes / max(1, u.TotalBytes/100)) }

// check reads the free space and calls DiskLow when the answer changes.
func (d *DiskWatch) check() {
	usage, err := d.o.FS.GetDiskUsage(d.o.Dir)
	if err != nil || usage.TotalBytes == 0 {
		if err != nil {
			d.o.Logger.Warn("reading the free disk space failed", "error", err)
		}
		return
	}
	free := freePercent(&usage)
	low := free < d.o.DiskLowPercent
	d.mu.Lock()
	changed := low != d.low
	d.low, d.used = low, 100-min(free, 100)
	d.mu.Unlock()
	if !changed {
		return
	}
	attributes := []any{"free_percent", free, "limit_percent", d.o.DiskLowPercent, "free", fmt.Sprintf("%d MB", usage.AvailBytes>>20)}
	if low {
		d.o.Logger.Warn("free disk space is low", attributes...)
	} else {
		d.o.Logger.Info("free disk space is sufficient again", attributes...)
	}
	if d.o.DiskLow != nil {
		d.o.DiskLow(low)
	}
}

// every calls f at once and then every d, until ctx ends or f fails.
func every(ctx context.Context, d time.Duration, f func() error) error {
	t := time.NewTicker(d)
	defer t.Stop()
	for {
		if err := f(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}
