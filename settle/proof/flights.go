package proof

import (
	"context"
	"sync"
)

// flights lets whoever asks for the same thing at the same time share one look at
// it. At most most things are looked at at once.
type sharedCalls[K comparable, V any] struct {
	most int

	mu    sync.Mutex
	under map[K]*sharedCall[V]
}

// flight is one look. value, err and left are written before done is closed.
type sharedCall[V any] struct {
	done  chan struct{}
	value V
	err   error
	// left: who looked went away before the end, so the error is his alone.
	left bool
}

func newSharedCalls[K comparable, V any](most int) *sharedCalls[K, V] {
	return &sharedCalls[K, V]{most: most, under: make(map[K]*sharedCall[V])}
}

// do returns what look returns, of this caller or of one who is looking already.
// Errors: [ErrBusy], the context's, those of look.
func (f *sharedCalls[K, V]) do(ctx context.Context, key K, look func() (V, error)) (v V, err error) {
	for {
		f.mu.Lock()
		other, shared := f.under[key]
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
	if len(f.under) >= f.most {
		f.mu.Unlock()
		return v, ErrBusy
	}
	// Until look has returned, it has not: a panic leaves no zero value behind.
	own := &sharedCall[V]{done: make(chan struct{}), left: true}
	f.under[key] = own
	f.mu.Unlock()
	defer f.finish(key, own)
	own.value, own.err = look()
	own.left = own.err != nil && ctx.Err() != nil
	return own.value, own.err
}

func (f *sharedCalls[K, V]) finish(key K, own *sharedCall[V]) {
	f.mu.Lock()
	delete(f.under, key)
	f.mu.Unlock()
	close(own.done)
}
