package cosign

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// privateMode is the mode of every file that this package makes.
	privateMode = 0o600
	// sharedMode is the mode of a socket for several users.
	sharedMode = 0o660
	// othersMode are permissions that no file here may have.
	othersMode = 0o077
)

// HardenProcess forbids core dumps, and forbids other processes of the same user to
// trace this one or read its memory. A process calls it before it reads a key; it
// cannot be undone. Errors: those of the kernel.
func HardenProcess() error {
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("disabling core dumps: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("disabling tracing: %w", err)
	}
	return nil
}

// openPrivate opens a regular file that belongs to the user of this process and
// that no other user can read or write. It follows no symbolic link in the last
// element, and does not wait for a pipe. It checks the opened file, so the file
// cannot be exchanged between check and use. Errors: [ErrKeyFile], errors of the
// file system.
func openPrivate(path string, flag int) (*os.File, error) {
	f, err := os.OpenFile(path, flag|unix.O_NOFOLLOW|unix.O_NONBLOCK, privateMode)
	switch {
	case errors.Is(err, unix.ELOOP):
		return nil, fmt.Errorf("%w: %s is a symbolic link", ErrKeyFile, path)
	case err != nil:
		return nil, err
	}
	if err := checkPrivate(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("%w: %s: %w", ErrKeyFile, path, err)
	}
	return f, nil
}

func checkPrivate(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || !info.Mode().IsRegular():
		return errors.New("it is not a regular file")
	case stat.Uid != uint32(os.Geteuid()):
		return fmt.Errorf("it is owned by user %d, want %d", stat.Uid, os.Geteuid())
	case info.Mode().Perm()&othersMode != 0:
		return fmt.Errorf("its mode %#o lets other users read it: chmod 600", info.Mode().Perm())
	}
	return nil
}

// lockFile locks a file for this process, until it is closed. Errors:
// [ErrRecordInUse].
func lockFile(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrRecordInUse
	}
	return err
}

// maxSocketPath is the longest path of a socket that the kernel accepts.
const maxSocketPath = 107

// listenPrivate listens on a socket of this mode. The mode is set before the socket
// has a name, so no other user can connect early.
func listenPrivate(path string, mode os.FileMode) (net.Listener, error) {
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("the path of the socket, %s, has %d bytes: at most %d", path, len(path), maxSocketPath)
	}
	var failed error
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		err := c.Control(func(fd uintptr) { failed = unix.Fchmod(int(fd), uint32(mode)) })
		return errors.Join(err, failed)
	}}
	l, err := lc.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err
	}
	// The process's umask may have removed permissions.
	if err := os.Chmod(path, mode); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// peerUser returns the user of the other end, as the kernel reports it.
func peerUser(c net.Conn) (uint32, error) {
	socket, ok := c.(syscall.Conn)
	if !ok {
		return 0, errors.ErrUnsupported
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) { cred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err = errors.Join(err, failed); err != nil {
		return 0, err
	}
	return cred.Uid, nil
}
