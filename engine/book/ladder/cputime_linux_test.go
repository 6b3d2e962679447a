package ladder

import (
	"syscall"
	"time"
)

// threadTime returns the CPU time of the calling thread.
func threadTime() time.Duration {
	const thread = 1 // RUSAGE_THREAD
	var r syscall.Rusage
	if err := syscall.Getrusage(thread, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
