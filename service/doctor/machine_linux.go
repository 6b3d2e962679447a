package doctor

import (
	"fmt"
	"syscall"
	"time"
)

const unsynchronised = 0x40 // STA_UNSYNC of adjtimex(2)

// readClock asks the kernel for the state of the clock.
func readClock() clockState {
	var t syscall.Timex
	if _, err := syscall.Adjtimex(&t); err != nil {
		return clockState{err: fmt.Errorf("adjtimex: %w", err)}
	}
	return clockState{synchronised: t.Status&unsynchronised == 0, maxError: time.Duration(t.Maxerror) * time.Microsecond}
}

// openFileLimit returns the most files that this process may open.
func openFileLimit() (uint64, error) {
	var r syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r)
	return r.Cur, err
}
