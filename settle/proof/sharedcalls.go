package proof

import (
	"context"
	"sync"
)

// sharedCalls lets callers with the same key share one call at a time. At most max
// calls run at once.
type sharedCalls[K comparable, V any] struct {
	max int

	mu      sync.Mutex
	running map[K]*sharedCall[V]
}

// sharedCall is one call. value, err and left are written before done is closed.
type sharedCall[V any] struct {
	done  chan struct{}
	value V
	err   error
	// left: the caller that made the call returned before the call ended, so only
	// that caller gets the error.
	left bool
}

func newSharedCalls[K comparable, V any](limit int) *sharedCalls[K, V] {
	return &sharedCalls[K, V]{max: limit, running: make(map[K]*sharedCall[V])}
}

// do returns the result of call, made by this caller or by another with the same key
// that is running. Errors: [ErrBusy], ctx.Err(), errors of call.
func (f *sharedCalls[K, V]) do(ctx context.Context, key K, call func() (V, error)) (v V, err error) {
	for {
		f.mu.Lock()
		other, shared := f.running[key]
		if !shared {
			break
		}
		f.mu.Unlock()
		select {
		case <-other.done:
			if !other.left {
				return other.value, other.err
			}
		case <-ctx.Done():
			return v, ctx.Err()
		}
	}
	if len(f.running) >= f.max {
		f.mu.Unlock()
		return v, ErrBusy
	}
	// left is set until call returns, so that after a panic others call for themselves.
	own := &sharedCall[V]{done: make(chan struct{}), left: true}
	f.running[key] = own
	f.mu.Unlock()
	defer f.finish(key, own)
	own.value, own.err = call()
	own.left = own.err != nil && ctx.Err() != nil
	return own.value, own.err
}

func (f *sharedCalls[K, V]) finish(key K, own *sharedCall[V]) {
	f.mu.Lock()
	delete(f.running, key)
	f.mu.Unlock()
	close(own.done)
}
