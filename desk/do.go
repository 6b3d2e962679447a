package desk

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"

	"blockdesk/engine"
	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// Submitter is the part of engine.Engine that the desk needs. Any goroutine may
// call it.
type Submitter interface {
	// SubmitAll submits neighbouring commands without waiting, and keeps none of
	// them: engine.Engine.SubmitAll.
	SubmitAll([]engine.Command) error
}

// Do submits r and returns its durable outcome. It sets r's RequestID, and owns r until it
// returns. Any goroutine; it blocks at most Options.Timeout.
//
// With a key that is not zero r happens at most once in KeyTTL, over all callers,
// restarts and crashes: the same key and body get the first answer, a refusal by the
// rules too; another body gets ErrConflict. An error is no answer: after ErrUnknown,
// repeat the request.
//
// Errors: ErrBusy, ErrReadOnly, ErrStopped, ErrTimeout, ErrConflict; errors of encoding
// r and of the store.
func (d *Desk) Do(r rfq.Request) (*Result, error) {
	select {
	case <-d.stopped:
		return nil, ErrStopped
	default:
	}
	w := d.table.acquire()
	if w == nil {
		d.counts.busy.Add(1)
		return nil, ErrBusy
	}
	var result *Result
	var err error
	slotInUse := false
	quote, ok := r.(*rfq.RequestQuote)
	indicative := ok && quote.Indicative
	if head := r.Head(); head.Key == (rfq.IdempotencyKey{}) {
		result, err = d.doUnkeyed(r, w)
	} else {
		result, slotInUse, err = d.doKeyed(r, &head.Key, w)
	}
	d.table.release(w, slotInUse)
	if d.o.Format1 && indicative && result != nil && result.Quote != nil {
		result = result.asIndicative()
	}
	return result, err
}

// asIndicative returns r with a quote that is no promise: the caller has no chain now, and
// release 0.1.0 cannot record that.
func (r *Result) asIndicative() *Result {
	c, q := *r, *r.Quote
	q.Indicative = true
	c.Quote = &q
	return &c
}

func (d *Desk) doUnkeyed(r rfq.Request, w *waiter) (*Result, error) {
	f := &w.unkeyed
	f.waiters = append(f.waiters[:0], w)
	if err := d.send(f, r, w); err != nil {
		return nil, err
	}
	result, _, err := d.await(f, w)
	return result, err
}

// doKeyed is Do with a key: it asks the store, then the requests in flight, then the
// engine. slotKept: w's slot belongs to the request in flight now.
func (d *Desk) doKeyed(r rfq.Request, key *rfq.IdempotencyKey, w *waiter) (result *Result, slotInUse bool, err error) {
	seen := d.table.completed(&key.ID)
	if result, err = d.storedAnswer(key); result != nil || err != nil {
		return result, false, err
	}
	f, storeStale := d.table.join(key, w, seen)
	switch {
	case f == nil:
		// Another body is in flight. The key's answer may be stored by now.
		if result, err = d.storedAnswer(key); result == nil && err == nil {
			err = d.conflict()
		}
		return result, false, err
	case w.joined:
		return d.await(f, w)
	}
	if storeStale {
		result, err = d.storedAnswer(key)
	}
	if result == nil && err == nil {
		err = d.send(f, r, w)
	}
	if result != nil || err != nil {
		d.table.close(f, result, err)
		<-w.done
		return result, false, err
	}
	return d.await(f, w)
}

// Answered reports whether Do would answer a request with this key from the store. Any
// goroutine. Errors: ErrConflict if the stored answer has another body, and errors of the
// store.
func (d *Desk) Answered(key rfq.IdempotencyKey) (bool, error) {
	a, err := d.lookUp(&key)
	return a != nil, err
}

// storedAnswer returns the answer that the store has for the key, or nil.
func (d *Desk) storedAnswer(key *rfq.IdempotencyKey) (*Result, error) {
	result, err := d.lookUp(key)
	if errors.Is(err, ErrConflict) {
		d.counts.conflicts.Add(1)
	}
	if result != nil {
		d.counts.replayed.Add(1)
	}
	return result, err
}

// lookUp is storedAnswer without counting.
func (d *Desk) lookUp(key *rfq.IdempotencyKey) (*Result, error) {
	value, ok, err := d.store.Get(answerKey(make([]byte, 0, answerKeySize), &key.ID))
	if err != nil || !ok {
		return nil, err
	}
	a, err := parseAnswer(value)
	switch {
	case err != nil:
		return nil, err
	case d.o.Now().UnixNano()-a.result.At >= int64(d.o.KeyTTL):
		return nil, nil
	case a.body != key.Body:
		return nil, ErrConflict
	}
	a.result.Replayed = true
	return &a.result, nil
}

func (d *Desk) conflict() error {
	d.counts.conflicts.Add(1)
	return ErrConflict
}

// send gives f a request ID and submits r to the engine. After an error f is not in flight.
func (d *Desk) send(f *inflight, r rfq.Request, w *waiter) error {
	if d.projector.storeFailed() {
		return ErrReadOnly
	}
	if d.o.Format1 {
		if err := rfq.FitFormat1(r); err != nil {
			return fmt.Errorf("desk: %w", err)
		}
	}
	f.requestID = NewRequestID(d.o.Group)
	r.Head().RequestID = f.requestID
	f.claim = claimOf(r)
	commands, err := engine.DeskCommands(w.commands[:0], r)
	if err != nil {
		return fmt.Errorf("desk: %w", err)
	}
	w.commands = commands
	d.table.add(f)
	if err := d.submit.SubmitAll(commands); err != nil {
		d.table.remove(f)
		return d.submitError(err)
	}
	return nil
}

// submitError returns the desk's error for an error of the engine.
func (d *Desk) submitError(err error) error {
	switch {
	case errors.Is(err, engine.ErrFull):
		d.counts.busy.Add(1)
		return ErrBusy
	case errors.Is(err, engine.ErrReadOnly):
		return ErrReadOnly
	case errors.Is(err, engine.ErrStopped):
		return ErrStopped
	}
	return fmt.Errorf("desk: cannot submit the request: %w", err)
}

// await waits for the outcome of f, which was sent.
func (d *Desk) await(f *inflight, w *waiter) (result *Result, slotInUse bool, err error) {
	w.timer.Reset(d.o.Timeout)
	defer w.timer.Stop()
	endRequest := false
	select {
	case <-w.done:
		return w.result, false, w.err
	case <-w.timer.C:
		err = ErrTimeout
	case <-d.failed:
		err, endRequest = errFailedWaiting, true
	case <-d.stopped:
		err, endRequest = errStoppedWaiting, true
	}
	slotInUse, left := d.table.abandon(f, w, endRequest)
	if !left {
		<-w.done
		return w.result, false, w.err
	}
	if !endRequest {
		d.counts.timeouts.Add(1)
	}
	return nil, slotInUse, err
}

// NewRequestID returns a random ID, not 0, that contains the group. The ids of quotes
// and claims are request IDs, and a client that knows a quote's id can take it, so it must
// not be guessable. The engine refuses an ID that it remembers, which is too unlikely
// to plan for. Any goroutine.
func NewRequestID(group market.ShardID) uint64 {
	for {
		var b [8]byte
		_, _ = rand.Read(b[:]) // never fails: it ends the program instead
		if id := market.ShardWord(group, binary.LittleEndian.Uint64(b[:])); id != 0 {
			return id
		}
	}
}

// claimOf returns the claim that r, which has its ID, makes or names; 0 = none.
func claimOf(r rfq.Request) market.ClaimID {
	switch r := r.(type) {
	case *rfq.TakeClaim:
		return market.ClaimID(r.RequestID)
	case *rfq.ProvePayment:
		return r.Claim
	case *rfq.BeginDelivery:
		return r.Claim
	case *rfq.ExpireDelivery:
		return r.Claim
	case *rfq.SettleClaim:
		return r.Claim
	case *rfq.CosignClaim:
		return r.Claim
	case *rfq.ReleaseClaim:
		return r.Claim
	case *rfq.AbandonDelivery:
		return r.Claim
	}
	return 0
}
