//go:build !linux || (!amd64 && !arm64)

package feed

import "syscall"

// send writes p to the socket fd, which does not block. Errors: EAGAIN if the socket is
// full; those of the connection.
func send(fd uintptr, p []byte) (int, error) { return syscall.Write(int(fd), p) }
