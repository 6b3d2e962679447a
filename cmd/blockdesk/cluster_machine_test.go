package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"blockdesk/internal/atomicfile"
	"blockdesk/persist/quorum"
)

// onMachine in the environment of a node's process names the file that says how its
// machine is. A test writes it; the process looks at it all the time.
const onMachine = "RUN_ON_MACHINE"

// illness is what a machine's file says.
type illness struct {
	SlowMS int64 `json:"slow_ms"` // each sync takes so much longer
	Full   bool  `json:"full"`    // no write finds room
	SkewMS int64 `json:"skew_ms"` // the clock is so far ahead
	// SnapshotEvery is quorum.Options', of a node that starts; 0 = its default, which no
	// test reaches.
	SnapshotEvery uint64 `json:"snapshot_every"`
}

// sick is the machine of a node that tests hurt.
type sick struct{ now atomic.Pointer[illness] }

// testMachine is the machine of this process: sick where a test says how.
func testMachine() machine {
	path := os.Getenv(onMachine)
	if path == "" {
		return machine{}
	}
	m := &sick{}
	look := func() {
		var now illness
		if text, err := os.ReadFile(path); err == nil && json.Unmarshal(text, &now) == nil {
			m.now.Store(&now)
		}
	}
	m.now.Store(&illness{})
	look()
	go func() {
		for ; ; look() {
			time.Sleep(2 * time.Millisecond) // sleep: the pace at which the process looks at its file
		}
	}()
	return machine{
		disk: func(o *quorum.Options) {
			o.FS, o.SnapshotEvery = errorfs.Wrap(vfs.Default, m), m.now.Load().SnapshotEvery
			o.TrailingEntries = o.SnapshotEvery / 5
		},
		clock: func() int64 { return time.Now().UnixNano() + m.now.Load().SkewMS*int64(time.Millisecond) },
	}
}

// MaybeError implements errorfs.Injector.
func (m *sick) MaybeError(op errorfs.Op) error {
	now := m.now.Load()
	switch {
	case op.Kind.ReadOrWrite() != errorfs.OpIsWrite:
	case now.Full:
		return syscall.ENOSPC
	case op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo:
		time.Sleep(time.Duration(now.SlowMS) * time.Millisecond) // sleep: this is the slow disk
	}
	return nil
}

// String is for messages.
func (m *sick) String() string { return "a bad machine" }

// machineFile is what a node's machine is told by.
func (n *groupNode) machineFile() string { return filepath.Join(n.dir, "machine.json") }

// suffers changes a node's machine, also of one that is down.
func (n *groupNode) suffers(t testing.TB, now illness) {
	t.Helper()
	now.SnapshotEvery = n.snapshotEvery
	text, err := json.Marshal(now)
	if err == nil {
		err = atomicfile.Write(n.machineFile(), text)
	}
	if err != nil {
		t.Fatal(err)
	}
}
