package settle

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"blockdesk/engine/rfq"
	"blockdesk/market"
	"blockdesk/settle/broadcast"
	"blockdesk/settle/cosign"
	"blockdesk/settle/store"
)

// recovery finds the atomic transactions that the desk has signed and whose promise
// the journal has lost: in a crash in mode interval, or because it was restored from
// a backup. It makes the promise again if that is still possible, and in any case
// tracks the transaction to its end.
type recovery struct {
	desk       Desk
	store      *store.Store
	tracker    *broadcast.Tracker
	retryEvery time.Duration
	log        *slog.Logger

	// claims are still to be looked at. Start fills it, then run owns it.
	claims []market.ClaimID
}

// recovered enters a claim of the recovered state.
func (r *recovery) recovered(c *rfq.Claim) {
	if c.Mode == rfq.Atomic && (c.State == rfq.ClaimReserved || c.State == rfq.ClaimExpired) {
		r.claims = append(r.claims, c.ID)
	}
}

// run looks at each claim once, and again at those that failed. One that fails does
// not hold up the others.
func (r *recovery) run(ctx context.Context) error {
	for {
		r.claims = slices.DeleteFunc(r.claims, func(id market.ClaimID) bool {
			if ctx.Err() != nil {
				return false
			}
			err := r.recover(id)
			if err != nil {
				r.log.Warn("recovery of a signed transaction failed", "claim", claimText(id), "error", err)
			}
			return err == nil
		})
		if len(r.claims) == 0 || !sleep(ctx, r.retryEvery) {
			return nil
		}
	}
}

func (r *recovery) recover(id market.ClaimID) error {
	list, err := r.store.Transactions(id)
	if err != nil {
		return err
	}
	for i := range list {
		if list[i].Kind() != cosign.Cosign {
			continue
		}
		result, err := r.desk.Do(&rfq.CosignClaim{Claim: id, Proof: list[i].Hash()})
		if err != nil {
			return claimError(id, err)
		}
		r.log.Warn("signed transaction without its promise in the journal", "claim", claimText(id), "reason", result.Reason.String())
		if err := r.tracker.Track(list[i]); err != nil {
			return err
		}
	}
	return nil
}
