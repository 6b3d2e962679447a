package ladder

import "golang.org/x/sys/unix"

// reserveMemory returns size bytes of zeros that take memory only where they are touched, or
// nil if the system has no address space to give. They are not the garbage collector's, which
// would count all of them as used.
func reserveMemory(size int) []byte {
	mem, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil
	}
	return mem
}

// releaseMemory gives back what reserveMemory returned.
func releaseMemory(mem []byte) {
	if err := unix.Munmap(mem); err != nil {
		panic("ladder: releasing memory: " + err.Error())
	}
}

// dropMemory gives the memory behind mem back to the system. mem is then undefined.
func dropMemory(mem []byte) { _ = unix.Madvise(mem, unix.MADV_DONTNEED) } // it may stay
