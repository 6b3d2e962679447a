//go:build !linux

package addrspace

// Reserve returns nil.
func Reserve(int) []byte { return nil }

// Release does nothing.
func Release([]byte) {}

// Drop does nothing.
func Drop([]byte) {}
