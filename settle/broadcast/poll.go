package broadcast

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
)

// pollDue polls the due entries once, in batches. It gets the chain's position
// first, which makes more entries due.
func (t *Tracker) pollDue(ctx context.Context) {
	if t.idle() {
		return
	}
	if p, err := t.node.Position(ctx, rpc.Finalized); err == nil {
		t.chainReached(p)
	}
	list := t.due()
	e := each[[]*entry]{list: slices.Collect(slices.Chunk(list, rpc.MaxStatusesPerCall)), most: maxPolling, do: t.poll}
	e.Run(ctx)
}

func (t *Tracker) idle() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byKey) == 0
}

// chainReached makes entries due by a finalized position. One node's position is
// enough, because it only causes another poll.
func (t *Tracker) chainReached(p rpc.Position) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stats.Position = p
	now := t.now().UnixNano()
	soon := func(e *entry) {
		if !e.examining {
			t.queues[byPoll].Set(e, now, 0)
		}
	}
	slots, heights := &t.queues[bySlot], &t.queues[byHeight]
	slot, height := int64(min(p.Slot, maxHeight)), int64(min(p.Height, maxHeight))
	for e, ok := slots.Pop(slot); ok; e, ok = slots.Pop(slot) {
		soon(e)
	}
	// Those whose last block is below the height.
	for e, ok := heights.Pop(height - 1); ok; e, ok = heights.Pop(height - 1) {
		t.markPast(e)
		soon(e)
	}
}

// markPast queues an examination if a poll does not find the entry. The caller holds
// mu.
func (t *Tracker) markPast(e *entry) {
	if !e.expired {
		e.expired = true
		t.stats.Past++
	}
}

// due takes the entries that are due. Those without a signature go to the examiner.
func (t *Tracker) due() []*entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []*entry
	now, looks := t.now().UnixNano(), &t.queues[byPoll]
	for e, ok := looks.Pop(now); ok; e, ok = looks.Pop(now) {
		if e.signature == (solana.Signature{}) {
			t.queueExamination(e)
		} else {
			list = append(list, e)
		}
	}
	return list
}

// poll gets the statuses of a batch, which no other goroutine polls meanwhile.
func (t *Tracker) poll(ctx context.Context, batch []*entry) {
	signatures := make([]solana.Signature, len(batch))
	t.mu.Lock()
	for i, e := range batch {
		signatures[i] = e.signature
	}
	t.mu.Unlock()
	statuses, _, err := t.node.Statuses(ctx, signatures, false)
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, e := range batch {
		switch {
		case e.result.End != 0:
		case err != nil:
			e.problem = problemOf(err)
			t.pollIn(e, t.options.PollEvery)
		default:
			t.observe(e, &statuses[i])
		}
	}
}

// observe applies the status of an entry. The caller holds mu.
func (t *Tracker) observe(e *entry, s *rpc.Status) {
	slots := &t.queues[bySlot]
	if s.Level != rpc.Finalized && (!e.expired || s.Known) {
		e.problem = "" // otherwise the problem is the examiner's
	}
	switch {
	case !s.Known && e.level != 0:
		// A fork has dropped it, or this node lags behind the one asked before.
		e.level, e.slot = 0, 0
		slots.Remove(e)
		if e.sends() && !e.sending {
			t.later(e, 0)
		}
		t.pollIn(e, t.options.PollEvery)
	case e.expired && s.Level != rpc.Finalized:
		// All nodes are asked, also if this one has it in a block that does not become
		// final: its last block is final, as a node has said.
		e.level, e.slot = s.Level, s.Slot
		t.queueExamination(e)
	case !s.Known && t.now().Sub(e.since) < freshFor:
		t.pollIn(e, t.options.PollEvery)
	case !s.Known:
		t.pollIn(e, max(t.options.PollEvery, t.options.ResendEvery))
	case s.Level == rpc.Finalized && !s.Failed && t.node.Upstreams() == 1:
		t.end(e, Finalized, s.Slot, "") // there is no other node to ask
	case s.Level == rpc.Finalized:
		e.level, e.slot = s.Level, s.Slot
		t.queueExamination(e)
	case s.Level == rpc.Confirmed:
		e.level, e.slot, e.sendProblem = s.Level, s.Slot, ""
		t.queues[bySend].Remove(e)
		slots.Set(e, int64(min(s.Slot, math.MaxInt64)), 0)
		t.pollIn(e, settlingEvery)
	default:
		e.level, e.slot = s.Level, s.Slot
		t.pollIn(e, t.options.PollEvery)
	}
}

// pollIn schedules a poll of an entry after a pause. The caller holds mu.
func (t *Tracker) pollIn(e *entry, pause time.Duration) {
	t.queues[byPoll].Set(e, t.now().Add(pause).UnixNano(), 0)
}

func problemOf(err error) string {
	if kind := rpc.KindOf(err); kind != 0 {
		return kind.String()
	}
	return ProblemError
}

// retryAfter returns the pause that a node asks for, 0 if it asks for none.
func retryAfter(err error) time.Duration {
	if e := (*rpc.Error)(nil); errors.As(err, &e) {
		return e.RetryAfter
	}
	return 0
}
