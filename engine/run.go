package engine

import (
	"context"
)

// Run runs the engine until ctx ends. It then refuses new commands, applies and journals
// those in the ring, publishes their events and returns nil. Consumers may continue to read
// until Next returns io.EOF.
//
// When the journal fails, the engine becomes read-only until ctx ends: it refuses commands
// and publishes nothing more, durable events remain readable, and Stats has the error. Run
// then returns ErrJournal. Its other error is ErrDrainTimeout. A second call panics.
func (e *Engine) Run(ctx context.Context) error {
	if !e.running.CompareAndSwap(false, true) {
		panic("engine: Run was called twice")
	}
	if e.follower != nil {
		return e.runFollower(ctx)
	}
	matched, journaled, ticked := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() { defer close(matched); e.matcher.run() }()
	go func() { defer close(journaled); e.runJournaler() }()
	go func() { defer close(ticked); e.runTicker(ctx) }()
	<-ctx.Done()
	e.close(tailStopped)
	err := e.drain(matched)
	e.matcherDone.Store(true)
	e.journalWait.wake()
	<-journaled
	<-ticked
	e.end()
	if failure := e.failed(); failure != nil {
		return failure
	}
	return err
}
