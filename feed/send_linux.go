//go:build linux && (amd64 || arm64)

package feed

import (
	"syscall"
	"unsafe"
)

// send writes p to the socket fd without waiting. It is a raw system call, because the
// scheduler's bookkeeping around one that may block costs a sixth of a delivery, and this
// one takes microseconds. Errors: EAGAIN if the socket is full; those of the connection.
func send(fd uintptr, p []byte) (int, error) {
	n, _, err := syscall.RawSyscall6(syscall.SYS_SENDTO, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)),
		syscall.MSG_DONTWAIT|syscall.MSG_NOSIGNAL, 0, 0)
	if err != 0 {
		return -1, err
	}
	return int(n), nil
}
