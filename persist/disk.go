package persist

import (
	"context"
	"fmt"
	"sync"
)

// DiskWatch looks at the free space of the disk that a folder is on. Safe for
// concurrent use.
type DiskWatch struct {
	o Options

	mu   sync.Mutex
	low  bool
	used int // per cent, so that the zero value is "nothing wrong"
}

// NewDiskWatch prepares a watch by Dir, FS, DiskEvery, DiskLow, DiskLowPercent and
// Logger of o. Errors: those of Options.Validate.
func NewDiskWatch(o Options) (*DiskWatch, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return &DiskWatch{o: o.withDefaults()}, nil
}

// Run looks at once and then every DiskEvery, until ctx ends. It returns nil: what
// cannot be looked at is logged, and what was found before stands.
func (d *DiskWatch) Run(ctx context.Context) error {
	return every(ctx, d.o.DiskEvery, func() error { d.look(); return nil })
}

// Read returns what the last look found: whether the free share is below
// DiskLowPercent, and that share; false and 100 before the first. It never waits
// for the disk.
func (d *DiskWatch) Read() (low bool, freePercent int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.low, 100 - d.used
}

// look reads the free space and tells DiskLow when the answer changes.
func (d *DiskWatch) look() {
	usage, err := d.o.FS.GetDiskUsage(d.o.Dir)
	if err != nil || usage.TotalBytes == 0 {
		if err != nil {
			d.o.Logger.Warn("cannot tell the free space", "error", err)
		}
		return
	}
	free := int(usage.AvailBytes / max(1, usage.TotalBytes/100))
	low := free < d.o.DiskLowPercent
	d.mu.Lock()
	changed := low != d.low
	d.low, d.used = low, 100-min(free, 100)
	d.mu.Unlock()
	if !changed {
		return
	}
	d.o.Logger.Warn("free disk space", "low", low, "free_percent", free, "limit_percent", d.o.DiskLowPercent,
		"free", fmt.Sprintf("%d MB", usage.AvailBytes>>20))
	if d.o.DiskLow != nil {
		d.o.DiskLow(low)
	}
}
