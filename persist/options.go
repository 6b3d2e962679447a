package persist

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"blockdesk/engine"
)

// Mode says when a command is acknowledged.
type Mode uint8

const (
	// Sync: when it is on disk.
	Sync Mode = 1
	// Interval: when the operating system has it. The death of the process loses nothing.
	// If the machine dies, the commands of at most Options.Interval are lost. Their Seqs and TradeIDs come again with other
	// content, in another epoch. Epochs are never lost, so (epoch, Seq) and (epoch,
	// TradeID) stay unique.
	Interval Mode = 2
	// Quorum: when it is on the disks of a majority. Only persist/quorum reports this
	// mode; Store refuses it.
	Quorum Mode = 3
)

// String returns the configuration value.
func (m Mode) String() string {
	if m < Sync || m > Quorum {
		return "mode?"
	}
	return [...]string{Sync: "sync", Interval: "interval", Quorum: "quorum"}[m]
}

// Limits of Options.
const (
	MinInterval      = time.Millisecond
	MaxInterval      = 10 * time.Second
	MinMemTableBytes = 64 << 10
	MaxMemTableBytes = 1 << 30
	MaxKeepSnapshots = 100
	MaxSpareLogs     = 16
	MaxReserveBytes  = 1 << 40
)

// NewestSnapshot, as the floor of Recover, means the newest snapshot.
const NewestSnapshot uint64 = math.MaxUint64

// Options are the options of a Store. The zero value of each field but Dir means its
// default.
type Options struct {
	// Dir is the store's own folder; Open creates it.
	Dir string
	// FS is the file system of Dir; nil is the disk.
	FS vfs.FS
	// Mode is Sync by default.
	Mode Mode
	// Interval, in mode Interval, is the time between syncs: 10 ms by default.
	Interval time.Duration
	// HighWaterMarkInterval is how long the synced high-water mark may lag behind what is
	// durable: 5 ms by default. The package documentation says what that means after a
	// crash.
	HighWaterMarkInterval time.Duration
	// SyncHighWaterMark syncs the high-water mark before each acknowledgement. It closes
	// the last gap and costs a second sync a frame.
	SyncHighWaterMark bool
	// SnapshotEvery is the number of commands between snapshots: 1,000,000 by
	// default.
	SnapshotEvery uint64
	// MaxBytes bounds the frames in the journal, before Pebble's own overhead: a snapshot
	// is due earlier if KeepSnapshots + 1 spans of frames would otherwise take more. A
	// consumer that is behind still keeps what it needs. 0 = no bound.
	MaxBytes uint64
	// KeepSnapshots is the number of snapshots to keep: 3 by default.
	KeepSnapshots int
	// CloseWithin bounds the time that Close spends to take a last snapshot: 1 s by
	// default, so that a stop under load stays short.
	CloseWithin time.Duration
	// MemTableBytes is Pebble's write buffer and the size of a log file: 16 MB
	// by default. Four of them may be in memory.
	MemTableBytes int
	// SpareLogs is how many log files Open writes ahead, so that the first syncs are as
	// fast as later ones: 8 by default, none if negative. Pebble's first buffer is 256
	// KB and each next one twice as large. Pebble first flushes, and then has a log to
	// recycle, when its buffers together hold half of MemTableBytes. From 256 KB to 16
	// MB that takes 8 logs.
	SpareLogs int
	// DiskEvery is the interval between checks of the free space: 1 s by default.
	DiskEvery time.Duration
	// Progress, if set, is called by Recover about every 65,536 replayed commands. Its
	// error ends Recover, which returns it.
	Progress func(done, total uint64) error
	// DiskChanged, if set, is called by Run's goroutine when the level of the free space
	// changes.
	DiskChanged func(DiskLevel)
	// DiskShedPercent, DiskLowPercent and DiskCriticalPercent are the free shares below
	// which a DiskLevel begins: 20, 10 and 5 by default.
	DiskShedPercent, DiskLowPercent, DiskCriticalPercent int
	// ReserveBytes is the size of a file that keeps room on the disk. It is deleted when
	// less than that is free, so that the last cancels and payments can be written, and a
	// store on a full disk can be opened; it is created while the level is DiskOK. 0 =
	// none.
	ReserveBytes uint64
	// State configures replicas.
	State engine.StateOptions
	// Logger is slog's default by default.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	o.FS = cmp.Or(o.FS, vfs.Default)
	o.Mode = cmp.Or(o.Mode, Sync)
	o.Interval = cmp.Or(o.Interval, 10*time.Millisecond)
	o.HighWaterMarkInterval = cmp.Or(o.HighWaterMarkInterval, 5*time.Millisecond)
	o.CloseWithin = cmp.Or(o.CloseWithin, time.Second)
	o.DiskEvery = cmp.Or(o.DiskEvery, time.Second)
	o.SnapshotEvery = cmp.Or(o.SnapshotEvery, 1_000_000)
	o.KeepSnapshots = cmp.Or(o.KeepSnapshots, 3)
	o.MemTableBytes = cmp.Or(o.MemTableBytes, 16<<20)
	o.SpareLogs = cmp.Or(o.SpareLogs, 8)
	o.DiskShedPercent = cmp.Or(o.DiskShedPercent, 20)
	o.DiskLowPercent = cmp.Or(o.DiskLowPercent, 10)
	o.DiskCriticalPercent = cmp.Or(o.DiskCriticalPercent, 5)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	return o
}

// Validate returns an error for the first option that is out of range. Zero values are
// in range: they mean the defaults.
func (o *Options) Validate() error {
	d := o.withDefaults()
	span := func(name string, v time.Duration) error {
		if v < MinInterval || v > MaxInterval {
			return fmt.Errorf("%s %v: must be %v to %v", name, v, MinInterval, MaxInterval)
		}
		return nil
	}
	switch {
	case d.Dir == "":
		return errors.New("the journal's directory is missing")
	case d.Mode != Sync && d.Mode != Interval:
		return fmt.Errorf("durability mode %d: must be sync or interval", d.Mode)
	case d.KeepSnapshots < 1 || d.KeepSnapshots > MaxKeepSnapshots:
		return fmt.Errorf("keep_snapshots %d: must be 1 to %d", d.KeepSnapshots, MaxKeepSnapshots)
	case d.MemTableBytes < MinMemTableBytes || d.MemTableBytes > MaxMemTableBytes:
		return fmt.Errorf("mem_table_bytes %d: must be %d to %d", d.MemTableBytes, MinMemTableBytes, MaxMemTableBytes)
	case d.SpareLogs > MaxSpareLogs:
		return fmt.Errorf("spare_logs %d: at most %d", d.SpareLogs, MaxSpareLogs)
	case d.ReserveBytes > MaxReserveBytes:
		return fmt.Errorf("reserve of %d bytes: at most %d", d.ReserveBytes, uint64(MaxReserveBytes))
	}
	for name, v := range map[string]int{
		"disk_shed_percent": d.DiskShedPercent, "disk_low_percent": d.DiskLowPercent, "disk_critical_percent": d.DiskCriticalPercent,
	} {
		if v < 1 || v > 99 {
			return fmt.Errorf("%s %d: must be 1 to 99", name, v)
		}
	}
	return errors.Join(span("interval", d.Interval), span("mark interval", d.HighWaterMarkInterval), span("disk interval", d.DiskEvery))
}
