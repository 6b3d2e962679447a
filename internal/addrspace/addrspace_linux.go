package addrspace

import "syscall"

// Reserve returns size bytes of zeros, or nil if the system has no address space to give.
func Reserve(size int) []byte {
	mem, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANONYMOUS|syscall.MAP_NORESERVE)
	if err != nil {
		return nil
	}
	return mem
}

// Release gives back what Reserve returned. It may not be used any more.
func Release(mem []byte) {
	if err := syscall.Munmap(mem); err != nil {
		panic("addrspace: releasing memory: " + err.Error())
	}
}

// Drop gives the memory of whole pages back to the system, but not their addresses. Their
// content is then undefined. An error means only that the memory stays.
func Drop(pages []byte) { _ = syscall.Madvise(pages, syscall.MADV_DONTNEED) }
