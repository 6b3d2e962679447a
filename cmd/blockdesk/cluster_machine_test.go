package main

import (
	"encoding/json"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"blockdesk/e2e/programtest"
	"blockdesk/persist/quorum"
)

// sick is the machine of a node that tests hurt.
type sick struct {
	now atomic.Pointer[programtest.Faults]
}

// testMachine is the machine of this process: sick where a test says how.
func testMachine() machine {
	path := os.Getenv(programtest.MachineFile)
	if path == "" {
		return machine{}
	}
	m := &sick{}
	look := func() {
		var now programtest.Faults
		if text, err := os.ReadFile(path); err == nil && json.Unmarshal(text, &now) == nil {
			m.now.Store(&now)
		}
	}
	m.now.Store(&programtest.Faults{})
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
