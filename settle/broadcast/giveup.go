package broadcast

import (
	"fmt"

	"blockdesk/internal/solana"
	"blockdesk/market"
	"blockdesk/settle/binding"
)

// OutcomesUnknown counts the transactions whose State.OutcomeUnknown is set. It visits
// all entries.
func (t *Tracker) OutcomesUnknown() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.byKey {
		if t.outcomeUnknown(e) {
			n++
		}
	}
	return n
}

// GiveUp forgets a transaction whose outcome is unknown (State.OutcomeUnknown), on the
// word of a person who has seen that it is not on the chain. No end is reported, and
// it is no longer sent or polled. If the person is wrong, the claim may be served
// twice. Errors: [ErrOutcomeKnown], after which nothing has changed.
func (t *Tracker) GiveUp(claim market.ClaimID, hash solana.Hash) (State, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, known := t.byKey[key{claim, hash}]
	if !known || !t.outcomeUnknown(e) {
		return State{}, fmt.Errorf("%w: claim %s", ErrOutcomeKnown, binding.Memo(claim))
	}
	s := t.stateOf(e)
	for i := range t.queues {
		t.queues[i].Remove(e)
	}
	if e.expired {
		t.stats.Past--
	}
	t.stats.GivenUp++
	// A worker that has the entry, or takes it from a channel, drops it by this.
	e.result.End = Expired
	t.forget(e)
	return s, nil
}
