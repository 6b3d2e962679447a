package service

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"blockdesk/engine"
)

// What another surface has been told of by now is in the gateway's own view when its
// barrier is over: a claim is confirmed over FIX while the REST gateway's desk is behind.
func TestBarrierWaitsForTheView(t *testing.T) {
	t.Parallel()
	synctest.Test(t, barrierWaitsForTheView)
}

func barrierWaitsForTheView(t *testing.T) {
	s := &Service{storage: &Storage{Leading: &Leading{}}}
	var err error
	if s.eng, err = engine.New(engine.Options{}, engine.NewReplica(engine.StateOptions{})); err != nil {
		t.Fatal(err)
	}
	s.events.fix, s.events.desk = s.eng.Consumer("fix"), s.eng.Consumer("desk")
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.eng.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()

	events, err := s.events.fix.Next(ctx) // the epoch's beginning
	if err != nil {
		t.Fatal(err)
	}
	s.events.fix.Release(len(events))
	asked := 0
	s.storage.Leading.Confirm = func(context.Context) error { asked++; return nil }
	if err := s.barrier(s.events.fix, nil)(); err != nil || asked != 1 {
		t.Fatalf("FIX has followed: %v, after %d questions", err, asked)
	}
	over := make(chan error, 1)
	behind := s.barrier(s.events.desk, nil)
	go func() { over <- behind() }()
	synctest.Wait()
	select {
	case err := <-over:
		t.Fatalf("the desk has not followed: %v", err)
	default:
	}
	if events, err = s.events.desk.Next(ctx); err != nil {
		t.Fatal(err)
	}
	s.events.desk.Release(len(events))
	if err := <-over; err != nil {
		t.Fatal(err)
	}

	halfway := errors.New("not shown")
	if err := s.barrier(s.events.desk, func(context.Context) error { return halfway })(); !errors.Is(err, halfway) {
		t.Fatalf("it has been released and is not shown: %v", err)
	}

	deposed := errors.New("another node leads")
	s.storage.Leading.Confirm = func(context.Context) error { return deposed }
	if err := s.barrier(s.events.desk, nil)(); !errors.Is(err, deposed) {
		t.Fatalf("nobody has confirmed: %v", err)
	}
}
