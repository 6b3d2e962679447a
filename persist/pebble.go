package persist

import (
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// pebbleOptions is what journal and KV share: the newest format, whose log has
// the sync chunks that tell damage from an end; no delay between syncs, which
// would be a delay of every frame; and errors that reach the fault.
//
// The logs are in a folder of their own, so that logFS can tell their folder's
// syncs from the tables'.
func pebbleOptions(fs vfs.FS, dir string, memTable int, f *fault) (*pebble.Options, *logFS) {
	log := pebbleLogger{fault: f}
	guarded := &logFS{FS: fs, dir: fs.PathJoin(dir, logFolder), fault: f}
	o := &pebble.Options{
		FS:                          guarded,
		WALDir:                      pebble.MakeStoreRelativePath(fs, logFolder),
		FormatMajorVersion:          pebble.FormatNewest,
		MemTableSize:                uint64(memTable),
		MemTableStopWritesThreshold: 4,
		L0StopWritesThreshold:       64,
		WALBytesPerSync:             512 << 10,
		CacheSize:                   8 << 20,
		Logger:                      log,
		EventListener:               log.events(),
	}
	// Frames are compact already; packing them costs more time, at every flush
	// and every replay, than the space is worth.
	o.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionNone })
	return o, guarded
}

// logFolder is where Pebble keeps its logs, in its own folder.
const logFolder = "log"

// createPebble makes a new database. The first log of a database is begun
// before its format is raised, so without a second Open it would lack the sync
// chunks, and damage in the middle of it would pass for its end.
func createPebble(dir string, o *pebble.Options) error {
	o.ErrorIfExists = true
	db, err := pebble.Open(dir, o)
	if err != nil {
		return err
	}
	return db.Close()
}
