package settle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/market"
	"blockdesk/settle/broadcast"
	"blockdesk/settle/cosign"
)

// Doubtful is a claim whose signed transaction can land no more, and of which the
// nodes will never tell by themselves whether it has landed.
type Doubtful struct {
	Claim rfq.Claim
	Since int64 // Unix ns: when it was tracked first, as far as is known since the start
	Word  string
	// Signature is the one that the desk has sent; zero where its bytes are lost.
	Signature solana.Signature
}

// Doubtful lists such claims by their number, from the first one after that one; at
// most limit. It looks at all that is under way: for people. Errors: those of the
// desk.
func (s *Settlement) Doubtful(from market.ClaimID, limit int) ([]Doubtful, error) {
	states := slices.DeleteFunc(s.tracker.Unresolved(broadcast.MaxTracked), func(x broadcast.State) bool {
		return !x.OutcomeUnknown || x.Claim <= from
	})
	slices.SortFunc(states, func(a, b broadcast.State) int { return cmp.Compare(a.Claim, b.Claim) })
	var list []Doubtful
	for i := range states {
		x := &states[i]
		if len(list) >= limit {
			break
		}
		claim, err := s.claim(x.Claim)
		if err != nil {
			return nil, err
		}
		if outOf(claim) && claim.Proof == x.Hash {
			list = append(list, Doubtful{Claim: *claim, Since: x.Since.UnixNano(), Word: x.Problem, Signature: x.Signature})
		}
	}
	return list, nil
}

// DoubtfulCount is how many Doubtful lists in all, but for what the desk does not
// know as out. It asks nobody.
func (s *Settlement) DoubtfulCount() int { return s.tracker.OutcomesUnknown() }

// outOf reports whether a transaction of the claim, which may be nil, is out.
func outOf(c *rfq.Claim) bool {
	return c != nil && (c.State == rfq.ClaimCosigned || c.State == rfq.ClaimDelivering)
}

// Release ends what waits for ever, on the word of an operator who has looked: the
// transaction of a claim that [Settle.Doubtful] lists is not on the chain. An
// atomic claim is released; the delivery of a paid one lapses, and the next one is
// signed at once. Where the word was wrong, the desk delivers twice. A refusal by
// the rules is a Result with a Reason. Errors: [desk.ErrOutcomeKnown]; ctx's; those of the
// desk, after which the claim waits as before.
func (s *Settlement) Release(ctx context.Context, by desk.OperatorRequest, id market.ClaimID) (*desk.Result, error) {
	// No submission, and nobody who would track it again.
	unlock, err := s.locks.lock(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("claim %s: %w", claimText(id), err)
	}
	defer unlock()
	c, err := s.claim(id)
	if err != nil {
		return nil, err
	}
	if !outOf(c) {
		return nil, fmt.Errorf("%w: claim %s", desk.ErrOutcomeKnown, claimText(id))
	}
	was, err := s.tracker.GiveUp(id, c.Proof)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", desk.ErrOutcomeKnown, err)
	}
	s.log.Warn("an operator gives up a transaction in doubt", "claim", claimText(id), "operator", by.Name,
		"signature", was.Signature.String(), "last_valid", was.LastValid, "word", was.Problem)
	result, err := s.giveBack(by, c, was.Signature)
	if err != nil {
		return nil, errors.Join(err, s.takeUpAgain(c))
	}
	return result, nil
}

// giveBack tells the desk that a claim's transaction never landed.
func (s *Settlement) giveBack(by desk.OperatorRequest, c *rfq.Claim, signature solana.Signature) (*desk.Result, error) {
	if c.State == rfq.ClaimCosigned {
		return s.counted(by, &rfq.ReleaseClaim{Claim: c.ID}, &s.counts.released)
	}
	// Before the desk knows: else its job would take up the same one again.
	s.work.lapsed(c.ID, c.Proof, signature != (solana.Signature{}), wordGivenUp)
	return s.counted(by, &rfq.ExpireDelivery{Claim: c.ID, Proof: c.Proof}, &s.counts.lapsed)
}

func (s *Settlement) counted(by desk.OperatorRequest, r rfq.Request, count *counter) (*desk.Result, error) {
	result, err := s.act(by, r)
	if err == nil && result.Reason == 0 {
		count.Add(1)
	}
	return result, err
}

// takeUpAgain has the tracker wait on for what the desk did not give back.
func (s *Settlement) takeUpAgain(c *rfq.Claim) error {
	if c.State == rfq.ClaimCosigned {
		return s.resumeLocked(c)
	}
	return s.resume(c, cosign.Deliver, 0)
}
