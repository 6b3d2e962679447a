package settle

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"blockdesk/engine/rfq"
	"blockdesk/settle/cosign"
)

// workers do the jobs, each the next step of one claim.
type workers struct {
	*env
	jobs       *jobs
	deliveries *deliveries
	resumer    *resumer
	searches   *refundSearches
}

// work does one job after another. A worker takes a job only when it is free to do it,
// because a job that waits for a worker may be overtaken by the end of its claim.
func (w *workers) work(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		c, wait, ok := w.jobs.take(w.now())
		if ok {
			w.do(ctx, &c)
			if ctx.Err() != nil {
				return nil
			}
			continue
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-w.jobs.wake:
		case <-ctx.Done():
			return nil
		}
	}
}

func (w *workers) do(ctx context.Context, c *rfq.Claim) {
	err := w.step(ctx, c)
	isNew := w.jobs.done(c.ID, w.now(), err)
	if err == nil || errors.Is(err, errLater) || ctx.Err() != nil {
		return
	}
	level := slog.LevelDebug
	if isNew {
		level = slog.LevelWarn
	}
	w.log.Log(ctx, level, "claim delivery failed", "claim", claimText(c.ID), "state", c.State.Word(), "problem", problemOf(err), "error", err)
}

func (w *workers) step(ctx context.Context, c *rfq.Claim) error {
	switch c.State {
	case rfq.ClaimPaid:
		return w.deliveries.deliver(ctx, c)
	case rfq.ClaimDelivering:
		return w.resumer.resume(c, cosign.Deliver, 0)
	case rfq.ClaimCosigned:
		return w.resumer.tryAtomic(c)
	case rfq.ClaimRefundDue:
		return w.searches.run(ctx, c)
	}
	return nil
}
