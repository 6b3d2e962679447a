package persist

import (
	"errors"
	"math"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// pebbleOptions returns the options that the journal and KV share: the newest format,
// whose sync chunks distinguish damage inside a log from its end; no delay between
// syncs, because that would delay every frame; and errors that are latched in the fault.
//
// Pebble's own write stall on compactions is off, because only a compaction ends it. A
// KV waits by itself; the journal need not, because its tables never overlap.
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
	// Frames are compact already. Compression would cost more time, at every flush and
	// replay, than the space is worth.
	o.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionNone })
	o.Experimental.CompactionScheduler = haltingScheduler{
		ConcurrencyLimitScheduler: pebble.NewConcurrencyLimitSchedulerWithNoPeriodicGrantingForTest(), fault: f,
	}
	// A queued excise reads tables later; if it cannot, Pebble retries for ever. So an
	// excise waits for the flushes before it and returns its error to the caller.
	o.Experimental.DisableIngestAsFlushable = func() bool { return true }
	return o, spared
}

// haltingScheduler starts compactions only while the store works. After a failure Pebble
// would retry a failing compaction without pause and without end, and a working one
// would fill the memory. Because the limit only falls, no periodic check is needed.
type haltingScheduler struct {
	*pebble.ConcurrencyLimitScheduler
	fault *fault
}

// Register puts the limit between the scheduler and the database.
func (c haltingScheduler) Register(perCompaction int, db pebble.DBForCompaction) {
	c.ConcurrencyLimitScheduler.Register(perCompaction, haltingDB{DBForCompaction: db, fault: c.fault})
}

type haltingDB struct {
	pebble.DBForCompaction
	fault *fault
}

// GetAllowedWithoutPermission returns how many compactions may run at a time.
func (d haltingDB) GetAllowedWithoutPermission() int {
	if d.fault.latched() {
		return 0
	}
	return d.DBForCompaction.GetAllowedWithoutPermission()
}

// logFolder is the folder of Pebble's logs inside its own.
const logFolder = "log"

// createPebble creates a database and closes it. The first log of a database is started
// before its format is raised; without a second Open it would lack the sync chunks, and
// damage in its middle would look like its end.
func createPebble(dir string, o *pebble.Options, f *fault) error {
	o.ErrorIfExists = true
	db, err := pebble.Open(dir, o)
	if err != nil {
		return err
	}
	return errors.Join(db.Close(), f.err())
}
