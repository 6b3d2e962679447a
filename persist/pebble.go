package persist

import (
	"errors"
	"math"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// pebbleOptions is what journal and KV share: the newest format, whose log has
// the sync chunks that tell damage from an end; no delay between syncs, which
// would be a delay of every frame; and errors that reach the fault.
//
// Pebble's own wait for compactions, when reads would have to merge too many
// tables, is off: nothing but a compaction ends it. A KV waits by itself; the
// journal need not, since its tables never overlap.
func pebbleOptions(fs vfs.FS, dir string, memTable int, f *fault) (*pebble.Options, *logFS) {
	log := pebbleLogger{fault: f}
	logs := fs.PathJoin(dir, logFolder)
	guarded := &guardFS{FS: fs, dirs: []string{dir, logs}, fault: f, memory: vfs.NewMem()}
	spared := &logFS{FS: guarded, dir: logs}
	o := &pebble.Options{
		FS:                          spared,
		WALDir:                      pebble.MakeStoreRelativePath(fs, logFolder),
		FormatMajorVersion:          pebble.FormatNewest,
		MemTableSize:                uint64(memTable),
		MemTableStopWritesThreshold: 4,
		L0StopWritesThreshold:       math.MaxInt32,
		WALBytesPerSync:             512 << 10,
		CacheSize:                   8 << 20,
		Logger:                      log,
		EventListener:               log.events(),
	}
	// Frames are compact already; packing them costs more time, at every flush
	// and every replay, than the space is worth.
	o.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionNone })
	o.Experimental.CompactionScheduler = haltingScheduler{
		ConcurrencyLimitScheduler: pebble.NewConcurrencyLimitSchedulerWithNoPeriodicGrantingForTest(), fault: f,
	}
	// An excise that is queued as a flush reads tables when its turn comes; if it
	// could not, Pebble would try for ever. So it waits for the flushes before it
	// and fails where it was asked for.
	o.Experimental.DisableIngestAsFlushable = func() bool { return true }
	return o, spared
}

// calm lets compactions begin only while the store works: one that failed would
// be tried again at once and for ever, and one that does not would fill the
// memory. The limit never rises, so nothing need look for that now and then.
type haltingScheduler struct {
	*pebble.ConcurrencyLimitScheduler
	fault *fault
}

// Register puts calm between the scheduler and the database.
func (c haltingScheduler) Register(perCompaction int, db pebble.DBForCompaction) {
	c.ConcurrencyLimitScheduler.Register(perCompaction, haltingDB{DBForCompaction: db, fault: c.fault})
}

type haltingDB struct {
	pebble.DBForCompaction
	fault *fault
}

// GetAllowedWithoutPermission is how many compactions may run at a time.
func (d haltingDB) GetAllowedWithoutPermission() int {
	if d.fault.latched() {
		return 0
	}
	return d.DBForCompaction.GetAllowedWithoutPermission()
}

// logFolder is where Pebble keeps its logs, in its own folder.
const logFolder = "log"

// createPebble makes a new database. The first log of a database is begun
// before its format is raised, so without a second Open it would lack the sync
// chunks, and damage in the middle of it would pass for its end.
func createPebble(dir string, o *pebble.Options, f *fault) error {
	o.ErrorIfExists = true
	db, err := pebble.Open(dir, o)
	if err != nil {
		return err
	}
	return errors.Join(db.Close(), f.err())
}
