package programtest

import (
	"encoding/json"
	"os"
	"testing"

	"blockdesk/internal/atomicfile"
)

// Variables of the environment of a NodeBinary's process.
const (
	// AsProgram makes it the program.
	AsProgram = "RUN_AS_PROGRAM"
	// MachineFile is the path of a file with Faults, which the process reads again all
	// the time.
	MachineFile = "RUN_ON_MACHINE"
)

// Faults has the simulated faults of a machine.
type Faults struct {
	SlowMS int64 `json:"slow_ms"` // each sync takes so much longer
	Full   bool  `json:"full"`    // the disk is full: every write fails
	SkewMS int64 `json:"skew_ms"` // the clock is so far ahead
	// SnapshotEvery is quorum.Options', of a node that starts; 0 = its default, which no
	// test reaches.
	SnapshotEvery uint64 `json:"snapshot_every"`
}

// Write replaces the faults in the file.
func (f Faults) Write(t testing.TB, file string) {
	t.Helper()
	text, err := json.Marshal(f)
	if err == nil {
		err = atomicfile.Write(file, text)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Environment returns the environment of a process of NodeBinary that has the faults in
// the file.
func Environment(machineFile string) []string {
	return append(os.Environ(), AsProgram+"=1", MachineFile+"="+machineFile)
}
