package ladder

import "syscall"

// reserveMemory returns size bytes of zeros that take memory only where they are touched, or
// nil if the system has no address space to give. They are not the garbage collector's, which
// would count all of them as used.
func reserveMemory(size int) []byte {
	mem, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANONYMOUS|syscall.MAP_NORESERVE)
	if err != nil {
		return nil
	}
	return mem
}

// releaseMemory gives back what reserveMemory returned.
func releaseMemory(mem []byte) {
	if err := syscall.Munmap(mem); err != nil {
		panic("ladder: releasing memory: " + err.Error())
	}
}

// dropMemory gives the memory behind mem back to the system. mem is then undefined.
func dropMemory(mem []byte) { _ = syscall.Madvise(mem, syscall.MADV_DONTNEED) } // it may stay
