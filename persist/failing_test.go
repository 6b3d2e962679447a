package persist

import (
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// failing is a disk whose writes, or syncs, of some files fail while on is set.
type failing struct {
	suffix string
	sync   bool
	err    error
	on     atomic.Bool
}

func (f *failing) wrap(fs vfs.FS) vfs.FS { return errorfs.Wrap(fs, f) }

func (f *failing) String() string { return "failing disk" }

func (f *failing) MaybeError(op errorfs.Op) error {
	if !f.on.Load() || !strings.HasSuffix(op.Path, f.suffix) {
		return nil
	}
	switch op.Kind {
	case errorfs.OpFileSync, errorfs.OpFileSyncData:
		if f.sync {
			return f.err
		}
	case errorfs.OpFileWrite, errorfs.OpFileWriteAt, errorfs.OpCreate, errorfs.OpFilePreallocate:
		if !f.sync {
			return f.err
		}
	}
	return nil
}
