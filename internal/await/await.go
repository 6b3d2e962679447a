// Package await waits in tests for a condition that the program reports, never for a
// fixed time. A wait ends as soon as its condition holds. Its deadline
// (runtest.HangTimeout) only ends a hang; the failure prints what was expected, what
// was there instead, and the command that runs the test again.
//
// Inside a testing/synctest bubble the polls sleep in virtual time.
//
// All functions but Poll end the test on failure, so only the test's own goroutine may
// call them.
package await

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"blockdesk/internal/runtest"
)

// The pause between two polls grows from firstPause to lastPause: short waits end at
// once, long ones leave the processors to the program.
const (
	firstPause = 100 * time.Microsecond
	lastPause  = 10 * time.Millisecond
)

// True waits until holds returns true.
func True(t testing.TB, what string, holds func() bool) {
	t.Helper()
	if err := poll(context.Background(), holds); err != nil {
		t.Fatalf("waited for %s: %v; %s", what, err, runtest.RerunCommand(t))
	}
}

// Value waits until read returns a value that ok accepts, and returns it. A failure
// prints the last value.
func Value[T any](t testing.TB, what string, read func() T, ok func(T) bool) T {
	t.Helper()
	var last T
	err := poll(context.Background(), func() bool {
		last = read()
		return ok(last)
	})
	if err != nil {
		t.Fatalf("waited for %s: %v; last was %+v; %s", what, err, last, runtest.RerunCommand(t))
	}
	return last
}

// Equal waits until read returns want.
func Equal[T comparable](t testing.TB, what string, want T, read func() T) {
	t.Helper()
	Value(t, fmt.Sprintf("%s to be %v", what, want), read, func(got T) bool { return got == want })
}

// NoError waits until try returns no error. A failure prints the last error.
func NoError(t testing.TB, what string, try func() error) {
	t.Helper()
	_ = Value(t, what, try, func(err error) bool { return err == nil })
}

// Receive waits for a value from ch and returns it. A closed channel fails the test.
func Receive[T any](t testing.TB, what string, ch <-chan T) T {
	t.Helper()
	timer := time.NewTimer(runtest.HangTimeout)
	defer timer.Stop()
	select {
	case v, ok := <-ch:
		if !ok {
			t.Fatalf("waited for %s: the channel is closed; %s", what, runtest.RerunCommand(t))
		}
		return v
	case <-timer.C:
		t.Fatalf("waited for %s: nothing came in %v; %s", what, runtest.HangTimeout, runtest.RerunCommand(t))
	}
	panic("unreachable")
}

// Closed waits until ch is closed, or a value comes from it.
func Closed[T any](t testing.TB, what string, ch <-chan T) {
	t.Helper()
	timer := time.NewTimer(runtest.HangTimeout)
	defer timer.Stop()
	select {
	case <-ch:
	case <-timer.C:
		t.Fatalf("waited for %s: not in %v; %s", what, runtest.HangTimeout, runtest.RerunCommand(t))
	}
}

// Poll waits until holds returns true. Any goroutine may call it. It returns an error
// if ctx ends first or the wait hangs.
func Poll(ctx context.Context, what string, holds func() bool) error {
	if err := poll(ctx, holds); err != nil {
		return fmt.Errorf("waited for %s: %w", what, err)
	}
	return nil
}

var errHangs = errors.New("not in " + runtest.HangTimeout.String())

func poll(ctx context.Context, holds func() bool) error {
	deadline := time.Now().Add(runtest.HangTimeout)
	for pause := firstPause; !holds(); pause = min(2*pause, lastPause) {
		if time.Now().After(deadline) {
			return errHangs
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
	return nil
}

// VirtualSleep lets virtual time pass in a testing/synctest bubble. Outside of a bubble
// it fails the test, because there it would be a real sleep that is too short on some
// machine.
func VirtualSleep(t testing.TB, d time.Duration) {
	t.Helper()
	if time.Now().Year() > bubbleYear {
		t.Fatal("VirtualSleep outside of a synctest bubble: wait for a condition instead")
	}
	time.Sleep(d)
}

// A bubble's clock starts at the beginning of the year 2000.
const bubbleYear = 2010
