package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"

	"blockdesk/persist"
)

// A part whose store has failed waits for the end, so that readers are served on.
func TestFailedStoreStopsNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		other, failed := errors.New("other"), fmt.Errorf("fix: %w", persist.ErrFailed)
		if err := awaitEndIfFailed(ctx, slog.New(slog.DiscardHandler), "fix", other); !errors.Is(err, other) {
			t.Errorf("another error: %v", err)
		}
		var ended error
		go func() { ended = awaitEndIfFailed(ctx, slog.New(slog.DiscardHandler), "fix", failed) }()
		synctest.Wait()
		if ended != nil {
			t.Errorf("it ends at once: %v", ended)
		}
		stop()
		synctest.Wait()
		if !errors.Is(ended, failed) {
			t.Errorf("at the end: %v", ended)
		}
	})
}
