package fixgw

import (
	"context"
	"errors"
	"io"

	"blockdesk/engine/event"
	"blockdesk/persist/projection"
)

// How the follower gets its events: by its own goroutine, or by whoever has
// given the engine a command and takes its turn.

// Run follows c until it ends or a store fails.
func (f *reporter) Run(ctx context.Context, c projection.Consumer) error {
	if err := f.startDesk(); err != nil {
		return err
	}
	f.consumer = c
	for {
		events, err := c.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return f.end(c.CompleteSeq())
		case err != nil:
			return errors.Join(err, f.end(0))
		}
		if err := f.process(events, c); err != nil {
			return err
		}
	}
}

// end commits what is left. Commands up to whole have been followed, also those
// without events, so that a restart begins with the snapshot that a clean stop
// takes.
func (f *reporter) end(whole uint64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if whole > 0 && whole >= f.next.seq {
		f.next = position{seq: whole + 1}
	}
	return f.commit()
}

// lent does what Run would, in its place, while it waits: engine.Engine.RunInline
// calls it.
func (f *reporter) runInline() {
	if err := f.process(f.consumer.Poll(), f.consumer); err != nil {
		f.gateway.Fail(err)
	}
}

// take follows events and what has come meanwhile, and sends what they cause.
func (f *reporter) process(events []event.Event, c projection.Consumer) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for ; len(events) > 0; events = c.Poll() {
		if err := errors.Join(f.follow(events), f.deliver()); err != nil {
			return err
		}
		c.Release(len(events))
	}
	if f.commitDue() {
		select {
		case f.wake <- struct{}{}:
		default:
		}
	}
	return nil
}
