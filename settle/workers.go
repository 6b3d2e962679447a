package settle

import (
	"context"
	"errors"
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
	audits     *audits
}

func (w *workers) dispatch(ctx context.Context, due chan<- rfq.Claim) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		c, wait, ok := w.jobs.take(w.now())
		if ok {
			select {
			case due <- c:
				continue
			case <-ctx.Done():
				return nil
			}
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

func (w *workers) work(ctx context.Context, due <-chan rfq.Claim) error {
	for {
		select {
		case c := <-due:
			err := w.step(ctx, &c)
			if err != nil && !errors.Is(err, errLater) && ctx.Err() == nil {
				w.log.Debug("claim's job failed", "claim", claimText(c.ID), "state", int(c.State), "error", err)
			}
			w.jobs.done(c.ID, w.now(), err)
		case <-ctx.Done():
			return nil
		}
	}
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
		return w.audits.audit(ctx, c)
	}
	return nil
}
