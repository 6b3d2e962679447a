// Package runtest has helpers for tests of all packages, besides waiting
// (internal/await): components that run as long as a test, seeds, the command that runs
// one test again, and the two reasons for which a test may be skipped: a tool is
// missing, or the race detector finds nothing in it.
//
// Three environment variables change what tests do:
//
// - BLOCKDESK_SEED is the seed of every random test, to repeat a failure.
// - BLOCKDESK_TEST_ALL makes a missing tool a failure (make test-all).
// - BLOCKDESK_RACE_ALL runs tests under the race detector that call SkipUnderRace.
package runtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// HangTimeout ends a wait that hangs. It is not how long a wait should take: everything
// that tests wait for happens within seconds on an idle machine, and may take many on a
// loaded one.
const HangTimeout = 4 * time.Minute

// Start calls run in a goroutine, with a context that ends when stop is called, or
// after the test, among its other cleanups. stop returns when run has returned, and
// fails the test if run returned an error or hangs. Any goroutine may call it, also
// repeatedly.
func Start(t testing.TB, run func(context.Context) error) (stop func()) {
	t.Helper()
	// t.Context ends before the first cleanup, and cleanups still use the component.
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("Run: %v", err)
			}
		case <-time.After(HangTimeout):
			t.Errorf("Run has not returned %v after its context ended; %s", HangTimeout, RerunCommand(t))
		}
	})
	t.Cleanup(stop)
	return stop
}

// Seed returns a seed for the test's random choices: that of BLOCKDESK_SEED, or a new
// one. A test that fails logs it with the command that repeats it.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("BLOCKDESK_SEED"); text != "" {
		given, err := strconv.ParseUint(text, 0, 64)
		if err != nil {
			t.Fatalf("BLOCKDESK_SEED=%q is not a number", text)
		}
		seed = given
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d; run again: BLOCKDESK_SEED=%d %s", seed, seed, command(t))
		}
	})
	return seed
}

// RerunCommand returns "run again: " and the command that runs this test alone.
func RerunCommand(t testing.TB) string { return "run again: " + command(t) }

func command(t testing.TB) string {
	names := strings.Split(t.Name(), "/")
	for i, name := range names {
		names[i] = "^" + name + "$"
	}
	return fmt.Sprintf("go test %s -count=1 -run '%s'", packageDir(), strings.Join(names, "/"))
}

// packageDir returns the folder of the package under test as an argument of go test.
// A test runs in that folder unless it has changed it.
func packageDir() string {
	here, err := os.Getwd()
	if err != nil {
		return "."
	}
	root, err := ModuleRoot()
	if err != nil {
		return "."
	}
	rel, err := filepath.Rel(root, here)
	if err != nil {
		return "."
	}
	return "./" + filepath.ToSlash(rel)
}

// ModuleRoot returns the folder of go.mod at or above the current folder. It does not
// depend on the paths in the binary, which -trimpath removes.
func ModuleRoot() (string, error) {
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := here; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no go.mod at or above %s", here)
		}
	}
}

// SkipMissing skips the test because a tool is not installed, and names the command
// that installs it. With BLOCKDESK_TEST_ALL it fails the test instead.
func SkipMissing(t testing.TB, what, install string) {
	t.Helper()
	if os.Getenv("BLOCKDESK_TEST_ALL") != "" {
		t.Fatalf("%s is missing: %s", what, install)
	}
	t.Skipf("skipped: no %s here: %s", what, install)
}

// SkipUnderRace skips the test under the race detector. why is the reason why the detector
// would find nothing in it that a faster test does not show. BLOCKDESK_RACE_ALL runs the
// test anyway.
func SkipUnderRace(t testing.TB, why string) {
	t.Helper()
	if RaceEnabled && os.Getenv("BLOCKDESK_RACE_ALL") == "" {
		t.Skipf("skipped under the race detector: %s", why)
	}
}
