// Package runtest runs a part of the service for as long as a test.
package runtest

import (
	"context"
	"sync"
	"testing"
	"time"
)

// patience is how long what runs may take to end. It is not how long it should
// take: a test that holds it to a time measures that itself.
const patience = time.Minute

// Start calls run in a goroutine of its own, with a context that ends when stop is
// called or else the test is over: as its other cleanups are, after those that come
// later. stop returns when run has, and fails the test where that is with an error
// or takes a minute. It may be called again, and by any goroutine.
func Start(t testing.TB, run func(context.Context) error) (stop func()) {
	t.Helper()
	// t.Context has ended before the first cleanup, which may still want what runs.
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
		case <-time.After(patience):
			t.Errorf("Run has not ended %v after its context", patience)
		}
	})
	t.Cleanup(stop)
	return stop
}
