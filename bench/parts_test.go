package bench

import (
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"blockdesk/internal/await"
)

func TestClosersEndTheLastFirst(t *testing.T) {
	t.Parallel()
	var c Closers
	var order []int
	broken := errors.New("broken")
	for i := range 3 {
		c.Add(func() error {
			order = append(order, i)
			if i == 1 {
				return broken
			}
			return nil
		})
	}
	if err := c.Close(); !errors.Is(err, broken) || !slices.Equal(order, []int{2, 1, 0}) {
		t.Errorf("%v, in order %v", err, order)
	}
}

func TestOwnCPUAndMemory(t *testing.T) {
	await.True(t, "CPU time enough to be counted", func() bool { // the polls themselves take some
		spent, err := CPUOf(os.Getpid())
		return err != nil || spent > 0
	})
	cpu, err := CPUOf(os.Getpid())
	if err != nil || cpu <= 0 || cpu > time.Hour {
		t.Errorf("CPU %v, %v", cpu, err)
	}
	if n, err := ResidentBytes(os.Getpid()); err != nil || n < 1<<20 {
		t.Errorf("memory %d, %v", n, err)
	}
	if busy, err := MachineCPU(); err != nil || busy < cpu-time.Second {
		t.Errorf("machine %v, this process %v, %v", busy, cpu, err)
	}
}
