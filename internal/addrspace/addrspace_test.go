package addrspace

import (
	"runtime"
	"testing"
)

func TestReserve(t *testing.T) {
	const size = 1 << 40 // more than any machine has
	mem := Reserve(size)
	if runtime.GOOS != "linux" {
		if mem != nil {
			t.Fatal("memory where none is promised")
		}
		return
	}
	if len(mem) != size {
		t.Fatalf("%d bytes, want %d", len(mem), size)
	}
	for _, at := range []int{0, size / 2, size - 1} {
		if mem[at] != 0 {
			t.Fatalf("byte %d is %d", at, mem[at])
		}
		mem[at] = 1
	}
	Drop(mem[:1<<16])
	if mem[size/2] != 1 || mem[size-1] != 1 {
		t.Fatal("Drop has dropped more than it should")
	}
	Release(mem)
	if again := Reserve(size); again == nil {
		t.Fatal("the address space has not come back")
	} else {
		Release(again)
	}
}
