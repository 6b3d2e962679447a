package desk

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"sort"
	"sync/atomic"
	"time"

	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/market"
	"blockdesk/persist/kv"
	"blockdesk/persist/projection"
)

const (
	// flushBytes is the size of the batch at which it is committed: some hundred
	// claims.
	flushBytes = 256 << 10
	// incompleteWait is how long the end of a command without an outcome may go
	// unnoticed.
	incompleteWait = time.Millisecond
	// noAnswer is projector.oldest if there are no answers.
	noAnswer = math.MaxInt64
)

// projector turns durable events into results, the store's content and views. One
// goroutine at a time uses it: the caller of Replay and Start, then Run's.
//
// It commits before it publishes: a view is published and a waiter woken when the
// store has what they contain. A commit that is repeated after a crash has the same
// bytes, because the cursor moves over whole commands only, and the projector applies
// a command from its first event.
type projector struct {
	desk    *shared
	reader  rfq.Reader
	started bool
	board   *rfq.ReadModel // before Start only its tickets are the desk's

	applied uint64 // the Seq up to which all events have been applied
	at      int64  // time of the last outcome

	// The command whose records are being applied.
	seq     uint64
	record  uint32
	key     *rfq.KeyUsed
	quote   *rfq.Quote
	payment *rfq.Payment
	claims  []*rfq.Claim

	// Since the last commit.
	batch          kv.Batch
	changedTickets map[market.TicketID]struct{}
	newAnswers     map[[16]byte]int64 // keys answered, with their time
	sales          salesLog
	committedAt    time.Time
	flushAt        int // flushBytes, less in tests

	// ready are the results to be returned once the batch is in the store.
	ready []answered

	keys      uint64 // answers in the store
	loss      error  // error if the store has lost answers, by its own count; nil = none lost
	newKeys   int    // answers added since the last prune
	oldest    int64  // time before which there is no answer
	pruneFrom []byte // lower bound of the age keys

	scratch    []byte
	keyScratch []byte

	committedKeys atomic.Uint64 // keys, as of the last commit

	// incompleteSeq is the Seq of a command that has released events that View does
	// not contain; 0 = none. See Desk.AwaitView.
	incompleteSeq atomic.Uint64

	// storeErr is the error after which the store is no longer used; nil while it
	// works.
	storeErr atomic.Pointer[error]
}

// answered is a result with the request whose waiters get it.
type answered struct {
	requestID uint64
	result    *Result
}

func (f *projector) init(d *shared) {
	f.desk = d
	f.sales.init()
	f.changedTickets = map[market.TicketID]struct{}{}
	f.newAnswers = map[[16]byte]int64{}
	f.pruneFrom = []byte{keyAge}
	f.flushAt = flushBytes
}

func (f *projector) layout() projection.Layout {
	return projection.Layout{
		Version: layoutVersion, Err: ErrLayout, SyncKey: keyMark,
		Load: func(value []byte) (seq uint64, err error) {
			f.applied, f.keys, err = parseCursor(value)
			return f.applied, err
		},
	}
}

func (f *projector) load() error {
	var tickets []*rfq.Ticket
	err := kv.Each(f.desk.store, []byte{keyTicket}, []byte{keyTicket + 1}, func(key, value []byte) error {
		t, err := parseTicket(value)
		if err == nil && !bytes.Equal(key, ticketKey(nil, t.ID)) {
			err = fmt.Errorf("%w: ticket %d is stored under the key of another ticket", ErrLayout, t.ID)
		}
		tickets = append(tickets, t)
		return err
	})
	f.board = rfq.NewReadModel(tickets)
	if err == nil {
		err = f.count()
	}
	if err == nil {
		err = f.loadSales()
	}
	f.committedKeys.Store(f.keys)
	return err
}

// count compares the number of answers with the one in the cursor, so that a damaged
// store does not forget requests that were answered.
func (f *projector) count() error {
	n := uint64(0)
	err := f.desk.store.Scan([]byte{keyAge}, []byte{keyAge + 1}, func(_, _ []byte) bool {
		n++
		return true
	})
	if err == nil && n != f.keys {
		f.loss = diverged("it has %d answers, its cursor counts %d", n, f.keys)
		f.keys = n
	}
	return err
}

// compareTickets compares the tickets with those of the recovered machine. Errors:
// projection.ErrDiverged.
func (f *projector) compareTickets(v *rfq.View) error {
	if f.loss != nil {
		return f.loss
	}
	tickets := f.board.View().Tickets
	if len(tickets) != len(v.Tickets) {
		return diverged("it has %d tickets, the journal %d", len(tickets), len(v.Tickets))
	}
	for i, t := range v.Tickets {
		if !reflect.DeepEqual(tickets[i], t) {
			return diverged("ticket %d differs from the journal", t.ID)
		}
	}
	return nil
}

// diverged returns a projection.ErrDiverged with the difference.
func diverged(format string, args ...any) error {
	return fmt.Errorf("desk store: %w: "+format, append([]any{projection.ErrDiverged}, args...)...)
}

func (f *projector) start(board *rfq.ReadModel, seq uint64) error {
	f.applied, f.board, f.started = seq, board, true
	if err := f.commit(false); err != nil {
		return err
	}
	return f.flush(false)
}

func (f *projector) run(ctx context.Context, c projection.Consumer) error {
	for {
		events, err := f.next(ctx, c)
		switch {
		case errors.Is(err, io.EOF):
			f.applied = max(f.applied, c.CompleteSeq())
			return f.flush(true)
		case err != nil:
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return errors.Join(err, f.flush(false))
		case len(events) > 0:
			if err := f.step(c, events); err != nil {
				return err
			}
		}
		// Only now have all events that c returned been applied.
		f.applied = max(f.applied, c.CompleteSeq())
		if err := f.flush(false); err != nil {
			return err
		}
		if f.incomplete() {
			f.incompleteSeq.CompareAndSwap(0, f.seq)
		}
		c.Release(len(events)) // after View contains them: see engine.Consumer.Await and Shown
	}
}

// next waits for events. Within a command it waits at most incompleteWait and may
// return none: the command may have ended without another event.
func (f *projector) next(ctx context.Context, c projection.Consumer) ([]event.Event, error) {
	if !f.incomplete() {
		return c.Next(ctx)
	}
	wait, cancel := context.WithTimeout(ctx, incompleteWait)
	defer cancel()
	events, err := c.Next(wait)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil, nil
	}
	return events, err
}

// step applies events that c has returned. If the last command may have more
// events, the commands before it are flushed first, so that only its own caller
// waits for them.
func (f *projector) step(c projection.Consumer, events []event.Event) error {
	last := &events[len(events)-1]
	if last.Seq > c.CompleteSeq() {
		n := sort.Search(len(events), func(i int) bool { return events[i].Seq >= last.Seq })
		if n > 0 {
			if err := f.follow(events[:n]); err != nil {
				return err
			}
			f.applied = max(f.applied, last.Seq-1)
			if err := f.flush(false); err != nil {
				return err
			}
			events = events[n:]
		}
	}
	return f.follow(events)
}

// incomplete reports whether the command that is being applied may have more records.
func (f *projector) incomplete() bool { return f.seq > f.applied }

// follow applies events in their order. It skips those of commands that the store has.
func (f *projector) follow(events []event.Event) error {
	for i := range events {
		e := &events[i]
		if e.Seq <= f.applied {
			continue
		}
		f.applied = e.Seq - 1
		if e.Kind != event.Desk {
			continue
		}
		rec, seq, ok := f.reader.Add(e)
		if !ok {
			continue
		}
		if err := f.apply(rec, seq); err != nil {
			return err
		}
		if f.batch.Size() >= f.flushAt {
			if err := f.flush(false); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *projector) apply(rec rfq.Record, seq uint64) error {
	if seq != f.seq {
		f.seq, f.record = seq, 0
		f.resetRequest()
	}
	f.record++
	if !f.board.CanApply(rec) {
		return fmt.Errorf("%w: seq %d: change of an unknown ticket: events are missing: restore the desk store from a backup", ErrLayout, seq)
	}
	f.board.Apply(rec, seq)
	switch r := rec.(type) {
	case *rfq.KeyUsed:
		f.resetRequest() // earlier records are not of this request
		f.key = r
	case *rfq.Quote:
		f.quote = r
	case *rfq.Claim:
		f.claims = append(f.claims, r)
		f.desk.count(r.State)
		if r.State == rfq.ClaimSettled {
			if err := f.fail(f.writeSale(r)); err != nil {
				return err
			}
		}
		f.writeHistory(r.ID, r)
	case *rfq.Payment:
		f.payment = r
		f.writeHistory(r.Claim, r)
		f.writePaymentClaim(r)
	case *rfq.Ticket:
		f.changedTickets[r.ID] = struct{}{}
	case *rfq.TicketTranche:
		f.changedTickets[r.Ticket] = struct{}{}
	case *rfq.Removed:
		if r.What == rfq.TagTicket {
			f.changedTickets[market.TicketID(r.ID)] = struct{}{}
		}
	case *rfq.Outcome:
		return f.outcome(r)
	}
	return nil
}

func (f *projector) resetRequest() {
	f.key, f.quote, f.payment = nil, nil, nil
	clear(f.claims)
	f.claims = f.claims[:0]
}

// outcome ends a request's records.
func (f *projector) outcome(o *rfq.Outcome) error {
	f.applied = f.seq
	f.at = max(f.at, o.At)
	claim, wanted := f.desk.table.find(o.RequestID)
	keyed := f.key != nil && f.key.RequestID == o.RequestID
	if !keyed && !wanted {
		return nil
	}
	r := &Result{Outcome: *o, Quote: f.quote, Claim: f.claimOf(claim), Ticket: f.board.Ticket(o.Ticket), Payment: f.payment}
	if r.Ticket == nil && o.Ticket != 0 && o.Reason == event.ReasonNone {
		return fmt.Errorf("%w: seq %d: ticket %d is unknown: events are missing: restore the desk store from a backup", ErrLayout, f.seq, o.Ticket)
	}
	if wanted {
		f.ready = append(f.ready, answered{o.RequestID, r})
	}
	if keyed && !f.storeFailed() {
		return f.fail(f.writeAnswer(r))
	}
	return nil
}

// claimOf returns the claim among the request's records, or nil. Records of claims
// that the command has expired come before KeyUsed; without a key the claim is id, the
// one that the request names.
func (f *projector) claimOf(id market.ClaimID) *rfq.Claim {
	for i := len(f.claims) - 1; i >= 0; i-- {
		if c := f.claims[i]; f.key != nil || c.ID == id {
			return c
		}
	}
	return nil
}

// flush commits the batch, publishes the view, and gives the results that are ready.
// Within a command, and before Start, it only commits.
func (f *projector) flush(sync bool) error {
	if sync || f.batch.Len() > 0 || len(f.changedTickets) > 0 || time.Since(f.committedAt) > f.desk.o.SyncEvery {
		if err := f.fail(f.commit(sync)); err != nil {
			return err
		}
	}
	if f.started && !f.incomplete() {
		if v := f.board.View(); v != f.desk.view.Load() {
			f.desk.view.Store(v)
			f.desk.o.OnView()
		}
		if len(f.sales.fresh) > 0 {
			f.desk.o.OnSales(f.sales.fresh)
			f.sales.fresh = nil
		}
		f.incompleteSeq.Store(0)
		if !f.storeFailed() {
			for i := range f.ready {
				f.desk.table.complete(f.ready[i].requestID, f.ready[i].result)
			}
		}
		clear(f.ready)
		f.ready = f.ready[:0]
	}
	if f.storeFailed() {
		return nil
	}
	return f.fail(f.prune())
}

// fail keeps an error of the store, so that the desk continues to follow events
// without the store. Before Start it returns the error.
func (f *projector) fail(err error) error {
	if err == nil || !f.started {
		return err
	}
	f.storeErr.CompareAndSwap(nil, &err)
	return nil
}

func (f *projector) storeFailed() bool { return f.storeErr.Load() != nil }

func (f *projector) storeError() error {
	if err := f.storeErr.Load(); err != nil {
		return *err
	}
	return nil
}

// commit writes the batch, the changed tickets and the cursor in one step. It does not
// write to a store that has failed: Replay restores what it lacks.
func (f *projector) commit(sync bool) error {
	if f.storeFailed() {
		f.batch.Reset()
		clear(f.changedTickets)
		return nil
	}
	for id := range f.changedTickets {
		f.keyScratch = ticketKey(f.keyScratch[:0], id)
		if t := f.board.Ticket(id); t == nil {
			f.batch.Delete(f.keyScratch)
		} else {
			f.scratch = appendTicket(f.scratch[:0], t)
			f.batch.Set(f.keyScratch, f.scratch)
		}
	}
	clear(f.changedTickets)
	f.scratch = appendCursor(f.scratch[:0], f.applied, f.keys)
	if err := f.desk.store.Commit(f.applied, f.scratch, f.batch.Fill, sync); err != nil {
		return err
	}
	f.batch.Reset()
	clear(f.newAnswers)
	clear(f.sales.settled)
	f.committedAt = time.Now()
	f.committedKeys.Store(f.keys)
	return nil
}

// A prune deletes at most twice as many answers as were added since the last one, and
// pruneExtra more, and at most pruneMax: more than one commit can add.
const (
	pruneExtra = 256
	pruneMax   = 16 << 10
)

// prune deletes answers older than KeyTTL, by the time of the last outcome, and the
// oldest ones beyond MaxKeys; a bounded number. The batch must be empty.
func (f *projector) prune() error {
	budget := min(2*f.newKeys+pruneExtra, pruneMax)
	f.newKeys = 0
	if !f.overLimit() && !f.expired(f.oldest) {
		return nil
	}
	f.oldest = noAnswer
	var last []byte
	err := kv.Each(f.desk.store, f.pruneFrom, []byte{keyAge + 1}, func(key, _ []byte) error {
		if len(key) != ageKeySize {
			return fmt.Errorf("%w: the key %x in the index of answers by age", ErrLayout, key)
		}
		at := int64(binary.BigEndian.Uint64(key[1:]))
		if budget == 0 || !f.overLimit() && !f.expired(at) {
			f.oldest = at
			return kv.ErrStop
		}
		budget--
		f.keys--
		f.batch.Delete(key)
		f.batch.Delete(answerKey(f.keyScratch[:0], (*[16]byte)(key[9:])))
		last = append(last[:0], key...)
		return nil
	})
	if err != nil || last == nil {
		return err
	}
	// A scan from the start would pass over all tombstones.
	f.pruneFrom = kv.After(last)
	return f.commit(false)
}

func (f *projector) overLimit() bool { return f.keys > uint64(f.desk.o.MaxKeys) }
