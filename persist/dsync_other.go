//go:build !linux

package persist

import "errors"

// writeDSync reports that this system has no synced writes.
func writeDSync(_ uintptr, p []byte) (rest []byte, err error) { return p, errors.ErrUnsupported }
