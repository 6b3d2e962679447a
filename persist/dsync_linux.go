package persist

import (
	"io"

	"golang.org/x/sys/unix"
)

// writeDSync writes p at the position of fd, with the durability of fdatasync for these
// bytes, and returns what is left of p. The error is an errors.ErrUnsupported on a kernel
// or file system without synced writes.
func writeDSync(fd uintptr, p []byte) (rest []byte, err error) {
	for len(p) > 0 {
		n, err := unix.Pwritev2(int(fd), [][]byte{p}, -1, unix.RWF_DSYNC)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return p, err
		case n <= 0:
			return p, io.ErrShortWrite
		}
		p = p[n:]
	}
	return nil, nil
}
