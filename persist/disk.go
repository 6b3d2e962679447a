package persist

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// DiskLevel says how full a disk is, and so what may still be written. Each level
// includes the restrictions of those before it.
type DiskLevel uint8

const (
	// DiskOK: nothing is restricted.
	DiskOK DiskLevel = 1
	// DiskShed: less than Options.DiskShedPercent is free. Old market data is deleted.
	DiskShed DiskLevel = 2
	// DiskLow: less than Options.DiskLowPercent is free. Only cancels and what ends
	// business that has begun are admitted.
	DiskLow DiskLevel = 3
	// DiskCritical: less than Options.DiskCriticalPercent is free. The rest is kept for
	// cancels and settlement: what can be done without is not written.
	DiskCritical DiskLevel = 4
)

// String returns the level's word in logs.
func (l DiskLevel) String() string {
	if l < DiskOK || l > DiskCritical {
		return "level?"
	}
	return [...]string{DiskOK: "ok", DiskShed: "shed", DiskLow: "low", DiskCritical: "critical"}[l]
}

// DiskWatch checks the free space of a folder's disk. Safe for concurrent use.
type DiskWatch struct {
	o Options

	mu    sync.Mutex
	level DiskLevel
	used  int // per cent; the zero value means that nothing is wrong

	reserveFailed bool // logged once; check's goroutine only
}

// NewDiskWatch returns a watch configured by Dir, FS, Disk… and Logger of o. Errors:
// those of Options.Validate.
func NewDiskWatch(o Options) (*DiskWatch, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return newDiskWatch(o.withDefaults()), nil
}

func newDiskWatch(o Options) *DiskWatch { return &DiskWatch{o: o, level: DiskOK} }

// Run checks at once and then every DiskEvery, until ctx ends, and returns nil. If the
// free space cannot be read it logs that and keeps the last result.
func (d *DiskWatch) Run(ctx context.Context) error {
	return every(ctx, d.o.DiskEvery, func() error { d.check(); return nil })
}

// Read returns the last result: the level and the free share; DiskOK and 100 before the
// first check. It never waits for the disk.
func (d *DiskWatch) Read() (level DiskLevel, freePercent int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.level, 100 - d.used
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

// levelOf returns the level of a free share. A limit counts at least as much as the one
// after it, so that a limit that was raised alone takes the weaker ones along.
func (o *Options) levelOf(free int) DiskLevel {
	switch {
	case free < min(o.DiskCriticalPercent, o.DiskLowPercent):
		return DiskCritical
	case free < o.DiskLowPercent:
		return DiskLow
	case free < o.DiskShedPercent:
		return DiskShed
	default:
		return DiskOK
	}
}

// check reads the free space and calls DiskChanged when the level changes.
func (d *DiskWatch) check() {
	usage, err := d.o.FS.GetDiskUsage(d.o.Dir)
	if err != nil || usage.TotalBytes == 0 {
		if err != nil {
			d.o.Logger.Warn("reading the free disk space failed", "error", err)
		}
		return
	}
	free := freePercent(&usage)
	level := d.o.levelOf(free)
	d.mu.Lock()
	before := d.level
	d.level, d.used = level, 100-min(free, 100)
	d.mu.Unlock()
	if err := d.o.keepReserve(&usage, level); err != nil && !d.reserveFailed {
		d.reserveFailed = true
		d.o.Logger.Warn("the reserve of disk space cannot be kept", "error", err)
	}
	if level == before {
		return
	}
	attributes := []any{"level", level.String(), "before", before.String(), "free_percent", free, "free", fmt.Sprintf("%d MB", usage.AvailBytes>>20)}
	switch {
	case level < before:
		d.o.Logger.Info("free disk space has grown", attributes...)
	case level == DiskShed:
		d.o.Logger.Warn("free disk space is short: old market data is deleted", attributes...)
	case level == DiskLow:
		d.o.Logger.Warn("free disk space is low: only cancels are admitted", attributes...)
	default:
		d.o.Logger.Error("free disk space is nearly used up: the rest is kept for cancels and settlement", attributes...)
	}
	if d.o.DiskChanged != nil {
		d.o.DiskChanged(level)
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
