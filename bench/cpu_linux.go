package bench

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ProcessCPU returns the user and system time that this process has used.
func ProcessCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// CPUOf returns the user and system time of another process's living threads,
// to the nanosecond.
func CPUOf(pid int) (time.Duration, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		return 0, err
	}
	var total time.Duration
	for _, name := range files {
		text, err := os.ReadFile(name)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			continue // a thread that has just ended
		}
		var ns int64
		if _, scanErr := fmt.Sscan(string(text), &ns); err != nil || scanErr != nil {
			return 0, fmt.Errorf("CPU time of process %d: %w", pid, errors.Join(err, scanErr))
		}
		total += time.Duration(ns)
	}
	if total == 0 {
		return 0, fmt.Errorf("process %d shows no CPU time in /proc: it is gone, or the kernel counts none", pid)
	}
	return total, nil
}

// ThreadCPU returns the user and system time of one thread of this process, to the
// nanosecond as far as the scheduler has counted.
func ThreadCPU(tid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/schedstat", tid))
	if err != nil {
		return 0, err
	}
	var ns int64
	if _, err := fmt.Sscan(string(text), &ns); err != nil {
		return 0, fmt.Errorf("CPU time of thread %d: %w", tid, err)
	}
	return time.Duration(ns), nil
}

// OwnThreadCPU returns the user and system time of the calling thread, to the nanosecond.
func OwnThreadCPU() time.Duration {
	var t unix.Timespec
	// It fails only for a clock that the kernel does not have.
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return time.Duration(t.Nano())
}

// MachineCPU returns the time that all cores together have been busy.
func MachineCPU() (time.Duration, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	var user, nice, system, idle, wait, irq, soft, steal int64
	if _, err := fmt.Sscanf(string(text), "cpu %d %d %d %d %d %d %d %d", &user, &nice, &system, &idle, &wait, &irq, &soft, &steal); err != nil {
		return 0, fmt.Errorf("CPU time of the machine: %w", err)
	}
	const ticksPerSecond = 100 // USER_HZ
	return time.Duration(user+nice+system+irq+soft+steal) * time.Second / ticksPerSecond, nil
}

// ResidentBytes returns the memory of another process that is in RAM.
func ResidentBytes(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	var kib int64
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		return 0, fmt.Errorf("memory of process %d: %w", pid, err)
	}
	return kib << 10, nil
}

// KernelBytes returns the memory that the kernel has for itself and cannot give back
// at once, sockets among it.
func KernelBytes() (int64, error) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), "SUnreclaim:")
	var kib int64
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		return 0, fmt.Errorf("memory of the kernel: %w", err)
	}
	return kib << 10, nil
}

// TwoCores returns two cores that this process may use: one for the server, one
// for its load.
func TwoCores() (server, load int, err error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return 0, 0, err
	}
	var cores []int
	for core := 0; core < 8*len(set)*8 && len(cores) < 2; core++ {
		if set.IsSet(core) {
			cores = append(cores, core)
		}
	}
	if len(cores) < 2 {
		return 0, 0, errors.New("two cores are needed: one for the server, one for its load")
	}
	return cores[0], cores[1], nil
}

// OnCore runs f on a thread of its own, bound to a core; negative = any.
func OnCore(core int, f func() error) error {
	done := make(chan error, 1)
	go func() {
		// Never unlocked: the thread ends with this goroutine, and its core with it.
		runtime.LockOSThread()
		var err error
		if core >= 0 {
			err = bindThread(core)
		}
		if err == nil {
			err = f()
		}
		done <- err
	}()
	return <-done
}

// bindThread binds the calling goroutine's thread to a core.
func bindThread(core int) error {
	var set unix.CPUSet
	set.Set(core)
	return unix.SchedSetaffinity(0, &set)
}

// HeapInUse is this process's heap and stacks in use, garbage aside.
func HeapInUse() float64 {
	runtime.GC()
	runtime.GC() // empties what pools kept at the first
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapInuse + m.StackInuse)
}
