// Package addrspace reserves address space that takes memory only where it is touched, so that
// a large slice can grow without being copied. The garbage collector does not count it, and
// does not release it. On systems other than Linux there is none.
package addrspace
