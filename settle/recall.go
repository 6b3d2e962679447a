package settle

import (
	"context"
	"fmt"
	"slices"

	"blockdesk/engine/rfq"
	"blockdesk/market"
	"blockdesk/settle/cosign"
)

// recall takes up atomic transactions that the desk has signed and does not know
// to have promised: the journal's tail was lost, as a crash of the machine in
// mode interval loses it, or it is an old one. The promise is made again where
// that is still possible; in any case the transaction's end is waited for. It
// looks once, at the claims that Start was told, and again at those that it could
// not look at, which hold up no others.
func (s *Settlement) recall(ctx context.Context) error {
	for {
		s.unpromised = slices.DeleteFunc(s.unpromised, func(id market.ClaimID) bool {
			if ctx.Err() != nil {
				return false
			}
			err := s.recallOne(id)
			if err != nil {
				s.log.Warn("a signed transaction was not taken up", "claim", claimText(id), "error", err)
			}
			return err == nil
		})
		if len(s.unpromised) == 0 || !sleep(ctx, s.options.RetryMax) {
			return nil
		}
	}
}

// mayBeUnpromised reports whether a claim is one that recall looks at.
func mayBeUnpromised(c *rfq.Claim) bool {
	return c.Mode == rfq.Atomic && (c.State == rfq.ClaimReserved || c.State == rfq.ClaimExpired)
}

func (s *Settlement) recallOne(id market.ClaimID) error {
	list, err := s.store.Transactions(id)
	if err != nil {
		return err
	}
	for i := range list {
		if list[i].Kind() != cosign.Cosign {
			continue
		}
		result, err := s.desk.Do(&rfq.CosignClaim{Claim: id, Proof: list[i].Hash()})
		if err != nil {
			return fmt.Errorf("claim %s: %w", claimText(id), err)
		}
		s.log.Warn("a signed transaction was found whose promise the desk has lost", "claim", claimText(id), "reason", result.Reason.String())
		if err := s.tracker.Track(list[i]); err != nil {
			return err
		}
	}
	return nil
}
