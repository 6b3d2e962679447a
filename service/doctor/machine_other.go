//go:build !linux

package doctor

import "errors"

var errNotLinux = errors.New("only known on Linux")

func readClock() clockState { return clockState{err: errNotLinux} }

func openFileLimit() (uint64, error) { return 0, errNotLinux }
