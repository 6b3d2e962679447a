package cosign

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// harden in the environment makes the test's own binary a process that hardens
// itself: it cannot be undone in the one that runs the tests.
const harden = "COSIGN_TEST_HARDEN"

func TestMain(m *testing.M) {
	if os.Getenv(harden) != "" {
		os.Exit(hardened())
	}
	goleak.VerifyTestMain(m)
}

// hardened returns 0 if the process keeps to itself what it has in memory.
func hardened() int {
	if err := HardenProcess(); err != nil {
		return 2
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &limit); err != nil || limit != (unix.Rlimit{}) {
		return 3
	}
	if dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); err != nil || dumpable != 0 {
		return 4
	}
	return 0
}

func TestHardenProcess(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(exe, "-test.run=^$")
	c.Env = append(os.Environ(), harden+"=1")
	c.WaitDelay = 10 * time.Second
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); err != nil || dumpable == 0 {
		t.Skipf("skipped: this process is not dumpable either (%d, %v): the test proves nothing", dumpable, err)
	}
}
