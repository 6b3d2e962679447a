package service

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"blockdesk/engine"
)

// After its barrier a gateway's view has every event that another gateway has published:
// a claim may be confirmed over FIX while the REST gateway's desk is behind.
func TestBarrierWaitsForTheView(t *testing.T) {
	t.Parallel()
	synctest.Test(t, barrierWaitsForTheView)
}

func barrierWaitsForTheView(t *testing.T) {
	eng, err := engine.New(engine.Options{}, engine.NewReplica(engine.StateOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	fix, desk := eng.Consumer("fix"), eng.Consumer("desk")
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- eng.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()

	events, err := fix.Next(ctx) // the epoch's beginning
	if err != nil {
		t.Fatal(err)
	}
	fix.Release(len(events))
	asked := 0
	confirm := func(context.Context) error { asked++; return nil }
	if err := barrier(eng, confirm, fix, nil)(); err != nil || asked != 1 {
		t.Fatalf("FIX has followed: %v, after %d questions", err, asked)
	}
	over := make(chan error, 1)
	behind := barrier(eng, confirm, desk, nil)
	go func() { over <- behind() }()
	synctest.Wait()
	select {
	case err := <-over:
		t.Fatalf("the desk has not followed: %v", err)
	default:
	}
	if events, err = desk.Next(ctx); err != nil {
		t.Fatal(err)
	}
	desk.Release(len(events))
	if err := <-over; err != nil {
		t.Fatal(err)
	}

	halfway := errors.New("not shown")
	if err := barrier(eng, confirm, desk, func(context.Context) error { return halfway })(); !errors.Is(err, halfway) {
		t.Fatalf("it has been released and is not shown: %v", err)
	}

	deposed := errors.New("another node leads")
	confirm = func(context.Context) error { return deposed }
	if err := barrier(eng, confirm, desk, nil)(); !errors.Is(err, deposed) {
		t.Fatalf("no node has confirmed: %v", err)
	}
}
