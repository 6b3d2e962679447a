// Package addrspace reserves address space that takes memory only where it is touched, so
// that a large slice can grow without being copied: a copy of millions of orders would
// pause the matcher.
//
// The garbage collector does not count the memory, does not look into it, and does not
// release it; so it may hold no pointers, and its owner calls Release. Drop returns the
// memory of pages that are no longer used. On systems other than Linux Reserve returns nil
// and the caller allocates as usual.
package addrspace
