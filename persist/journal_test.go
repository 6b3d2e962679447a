package persist

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"blockdesk/persist/journaltest"
)

// storeRig is a Store on a disk that loses what was not synced.
type storeRig struct {
	t     *testing.T
	o     Options
	disk  *vfs.MemFS
	store *Store
}

func (r *storeRig) MayRefuse() bool { return false }

func (r *storeRig) Open() journaltest.Journal {
	r.t.Helper()
	r.o.FS = r.disk
	s, err := Open(r.o)
	if err != nil {
		r.t.Fatal(err)
	}
	r.store = s
	return s
}

func (r *storeRig) Close() {
	if err := r.store.Close(); err != nil && !errors.Is(err, ErrFailed) {
		r.t.Fatal(err)
	}
}

func (r *storeRig) Kill(percent int) {
	disk := r.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(uint64(percent), 1))})
	_ = r.store.Close() // on the disk that is left behind
	r.disk = disk
}

// TestJournalSuite: a store in mode Sync keeps the promises of a journal.
func TestJournalSuite(t *testing.T) {
	journaltest.Run(t, func(t *testing.T) journaltest.Rig {
		o := testOptions(nil)
		o.Mode, o.State, o.SnapshotEvery = Sync, journaltest.State(), 500
		return &storeRig{t: t, o: o, disk: vfs.NewCrashableMem()}
	})
}
