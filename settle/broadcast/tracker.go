package broadcast

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"blockdesk/internal/schedule"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/internal/solana/tx"
	"blockdesk/settle/binding"
	"blockdesk/settle/cosign"
	"blockdesk/settle/store"
)

// Node is the client of the RPC nodes: *rpc.Client, which documents each call. Any
// goroutine may call it. Every call must end.
type Node interface {
	Send(ctx context.Context, raw []byte, o rpc.SendOptions) (solana.Signature, error)
	Statuses(ctx context.Context, list []solana.Signature, search bool) ([]rpc.Status, uint64, error)
	Position(ctx context.Context, level rpc.Commitment) (rpc.Position, error)
	// Upstreams returns the number of configured nodes.
	Upstreams() int
	// StatusesFromEach, TransactionFromEach and SignaturesFromEach ask each configured node; their results
	// have one element for each node, in the same order.
	StatusesFromEach(ctx context.Context, list []solana.Signature) ([]rpc.NodeStatuses, error)
	TransactionFromEach(ctx context.Context, s solana.Signature, level rpc.Commitment) ([]rpc.NodeTransaction, error)
	SignaturesFromEach(ctx context.Context, a solana.Address, views []rpc.NodeStatuses, most int) []rpc.NodeHistory
}

// Tracker sends transactions until they end.
type Tracker struct {
	options Options
	node    Node
	ended   func(context.Context, Result) error

	mu          sync.Mutex
	byKey       map[key]*entry
	bySignature map[solana.Signature]*entry
	// queues are indexed by bySend and the others.
	queues [queues]schedule.Queue[*entry]
	// unexamined wait for the examiner, in order.
	unexamined []*entry
	stats      Stats

	// fresh and again have the entries to send now, fresh those for the first time;
	// reports has the entries that have ended. Each has room for MaxTracked entries;
	// if it is full of entries that ended long ago, bySend takes the rest.
	fresh, again, reports chan *entry
	// dispatchWake and examineWake wake Run's goroutines: something may be due
	// earlier.
	dispatchWake, examineWake chan struct{}
}

// New returns a tracker. It calls no node; transactions that are tracked before Run
// wait.
//
// ended is called with each end, from several goroutines, and again with a growing
// pause until it returns nil. Its context ends with Run's. After a restart, or if a
// transaction is tracked again after its end, the end is reported again. Errors:
// [ErrOptions].
func New(o Options, node Node, ended func(context.Context, Result) error) (*Tracker, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	t := &Tracker{
		options: o.withDefaults(), node: node, ended: ended,
		byKey: map[key]*entry{}, bySignature: map[solana.Signature]*entry{}, queues: newQueues(),
		fresh: make(chan *entry, MaxTracked), again: make(chan *entry, MaxTracked), reports: make(chan *entry, MaxTracked),
		dispatchWake: make(chan struct{}, 1), examineWake: make(chan struct{}, 1),
	}
	return t, nil
}

// Track tracks a signed transaction. The same one again changes nothing; one that was
// awaited gets its bytes. Errors: [ErrFull], [ErrInvalid].
func (t *Tracker) Track(k store.Transaction) error {
	if k.Claim() == 0 && k.Kind() != cosign.Refund || len(k.Bytes()) == 0 {
		return fmt.Errorf("%w: claim %s", ErrInvalid, binding.Memo(k.Claim()))
	}
	named := deskPaysFee(&k)
	t.mu.Lock()
	defer t.mu.Unlock()
	e, known := t.byKey[key{k.Claim(), k.Hash()}]
	if known && (e.raw != nil || e.result.End != 0) {
		return nil
	}
	if !known {
		e = &entry{key: key{k.Claim(), k.Hash()}, kind: k.Kind(), reference: k.Reference()}
		if err := t.add(e); err != nil {
			return err
		}
	}
	if known {
		t.stats.Missing--
	}
	e.raw, e.lastValid, e.madeAt = k.Bytes(), k.LastValid(), k.SignedAt()
	t.queues[byHeight].Set(e, int64(min(k.LastValid(), maxHeight)), 0)
	e.firstSignature, e.deskPaysFee, e.lastValidEstimated = k.Signature(), named, false
	t.bySignature[e.firstSignature] = e
	if e.signature == (solana.Signature{}) {
		e.signature = e.firstSignature
	}
	t.queues[byPoll].Set(e, t.now().Add(t.options.PollEvery).UnixNano(), 0)
	t.dispatch(e, t.fresh)
	return nil
}

// deskPaysFee reports whether the desk pays the fee, so that the first signature is
// its own.
func deskPaysFee(k *store.Transaction) bool {
	if k.Kind() != cosign.Cosign {
		return true
	}
	d, err := tx.Decode(k.Bytes())
	if err == nil {
		_, err = cosign.CheckAtomic(d.Signed, d.Message.FeePayer()) // it is the shape only with the desk as fee payer
	}
	return err == nil
}

// Await tracks a transaction whose bytes are lost. The same one again, or one that is
// tracked, changes nothing. Errors: [ErrFull], [ErrInvalid].
func (t *Tracker) Await(m Missing) error {
	if m.Claim == 0 && m.Kind != cosign.Refund || m.Hash == (solana.Hash{}) || m.Reference == (solana.Address{}) {
		return fmt.Errorf("%w: claim %s", ErrInvalid, binding.Memo(m.Claim))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.byKey[key{m.Claim, m.Hash}]; known {
		return nil
	}
	e := &entry{key: key{m.Claim, m.Hash}, kind: m.Kind, reference: m.Reference, lastValid: m.LastValid, madeAt: m.AllowedAt}
	if err := t.add(e); err != nil {
		return err
	}
	t.stats.Missing++
	if e.lastValidEstimated = m.LastValid == 0; e.lastValidEstimated {
		t.queueExamination(e) // to learn the heights of the nodes
		return nil
	}
	t.queues[byHeight].Set(e, int64(min(m.LastValid, maxHeight)), 0)
	return nil
}

// maxHeight is where heights are clamped: no chain gets there.
const maxHeight = 1<<63 - 1

// add adds a new entry. The caller holds mu.
func (t *Tracker) add(e *entry) error {
	if len(t.byKey) >= MaxTracked {
		return fmt.Errorf("%w: %d: claim %s has to wait", ErrFull, len(t.byKey), binding.Memo(e.claim))
	}
	e.since = t.now()
	t.byKey[e.key] = e
	return nil
}

// forget removes an entry that needs no more work. The caller holds mu.
func (t *Tracker) forget(e *entry) {
	if e.raw == nil {
		t.stats.Missing--
	}
	delete(t.byKey, e.key)
	delete(t.bySignature, e.signature)
	delete(t.bySignature, e.firstSignature)
}

func (t *Tracker) now() time.Time { return t.options.Now() }

// end records how a transaction ended, and queues the report. The caller holds mu.
func (t *Tracker) end(e *entry, end End, slot uint64, failure string) {
	if e.result.End != 0 {
		return
	}
	for i := range t.queues {
		t.queues[i].Remove(e)
	}
	e.problem = ""
	e.result = Result{Claim: e.claim, Kind: e.kind, Hash: e.hash, Signature: e.signature, End: end, Slot: slot, Error: failure}
	switch end {
	case Finalized:
		t.stats.Finalized++
	case Failed:
		t.stats.Failed++
	case Expired:
		t.stats.Expired++
	}
	if e.expired {
		t.stats.Past--
	}
	t.stats.Reporting++
	t.dispatch(e, t.reports)
}

// dispatch gives an entry to a worker. The caller holds mu.
func (t *Tracker) dispatch(e *entry, to chan *entry) {
	select {
	case to <- e:
		e.sending = true
	default:
		t.later(e, t.options.ResendEvery)
	}
}

// later schedules an entry to be sent or reported after a pause. The caller holds
// mu.
func (t *Tracker) later(e *entry, pause time.Duration) {
	t.queues[bySend].Set(e, t.now().Add(pause).UnixNano(), 0)
	wake(t.dispatchWake)
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // a wake-up is pending
	}
}

// State returns the progress of a transaction; ok is false if it is not tracked.
func (t *Tracker) State(sig solana.Signature) (s State, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, ok := t.bySignature[sig]
	if !ok {
		return s, false
	}
	return t.stateOf(e), true
}

// Unresolved lists transactions whose end all nodes must agree on: they are
// finalized or past their last block according to at least one node, or their height
// is unknown. It returns at most limit, in no order. It visits all entries.
func (t *Tracker) Unresolved(limit int) []State {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []State
	for _, e := range t.byKey {
		if len(list) >= limit {
			break
		}
		if (e.expired || e.lastValidEstimated || e.level == rpc.Finalized) && e.result.End == 0 {
			list = append(list, t.stateOf(e))
		}
	}
	return list
}

func (t *Tracker) stateOf(e *entry) State {
	return State{
		Claim: e.claim, Kind: e.kind, Hash: e.hash, Signature: e.signature, LastValid: e.lastValid, Since: e.since, Sent: e.sent, Problem: cmp.Or(e.problem, e.sendProblem),
		Level: e.level, Slot: e.slot, Past: e.expired, OutcomeUnknown: t.outcomeUnknown(e), End: e.result.End,
	}
}

// Stats returns the counts.
func (t *Tracker) Stats() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.stats
	s.Tracked, s.Landed = len(t.byKey), t.queues[bySlot].Len()
	return s
}

// queueExamination queues an entry, so that every node is asked about it. The
// caller holds mu.
func (t *Tracker) queueExamination(e *entry) {
	if e.examining || e.result.End != 0 {
		return
	}
	e.examining = true
	t.queues[byPoll].Remove(e)
	t.queues[bySlot].Remove(e)
	t.unexamined = append(t.unexamined, e)
	wake(t.examineWake)
}

// outcomeUnknown reports whether an entry waits for a person: it is past its last
// block, as enough nodes say, no node has it in a block, and the nodes answer but cannot
// tell whether it has landed. The caller holds mu.
func (t *Tracker) outcomeUnknown(e *entry) bool {
	if !e.past || e.level != 0 || e.result.End != 0 {
		return false
	}
	return e.problem == ProblemTooOld || e.problem == ProblemHistoryLong || e.problem == ProblemUnread
}
