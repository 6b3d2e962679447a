package fixgw

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"blockdesk/engine/event"
	"blockdesk/fixgw/session"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
	"blockdesk/persist/kv"
	"blockdesk/persist/projection"
)

// position is a position in the engine's events: the event after the first index events of
// the command seq.
type position struct {
	seq   uint64
	index uint32
}

func (p position) before(q position) bool {
	return p.seq < q.seq || p.seq == q.seq && p.index < q.index
}

// whole returns the Seq up to which all events lie before p.
func (p position) whole() uint64 { return p.seq - min(p.seq, 1) }

// reporter turns durable events into reports. One goroutine at a time: Replay's caller
// before Run, then Run's.
//
// The reports of a batch of events are sent when the whole batch has been processed. They,
// the orders' state, the answers and the position are committed together soon afterwards:
// see commit. After a crash, the events after the position are processed again. They give
// the same reports with the same ExecIDs, marked PossResend, because a client may have
// them.
//
// An ExecID is Seq-index-epoch. It has the epoch because a Seq may be used twice: if the
// journal has lost reported commands (mode interval, a backup), the next epoch gives their
// Seqs to other commands.
type reporter struct {
	gateway *Gateway
	store   *projection.Store
	// mu is held while events are processed, and by the committer while it commits.
	mu     sync.Mutex
	out    session.Outbox            // its Scratch only
	orders map[market.OrderID]*order // live, or closed since the last commit

	at          int64    // of the last event, Unix nanoseconds
	next        position // of the next event
	stored      position // events before it are in the store: Replay skips them
	epoch       uint64   // of the events being followed
	storedEpoch uint64   // epoch of the events before stored
	// unfinished: a Reconcile has not ended; storedUnfinished: the store records that.
	unfinished, storedUnfinished bool
	command                      commandRef
	consumer                     projection.Consumer // Run's
	step                         func()              // runInline, bound once
	// replaying: quickfix's sessions do not run yet; reports go to the message stores
	// only.
	replaying bool

	senders     []*blotter    // with reports that are not sent
	uncommitted []*blotter    // with sent reports that wait for the commit
	wake        chan struct{} // to the committer; capacity 1

	changed  []*order // since the last commit
	answers  []*request
	owners   []*blotter // of answers
	replaced []*request // whose order has another ClOrdID now
	reports  int        // since the last commit
	saved    time.Time
	key      []byte
	value    []byte
	cursor   []byte
	text     []byte
	execID   []byte
	capture  []byte // body of a TradeCaptureReport

	desk deskReports

	orphanedEvents atomic.Uint64 // of sessions that do not exist any more
}

// commandRef is the session and the ClOrdID of the command whose events are being
// followed.
type commandRef struct {
	blotter  *blotter // nil = the command came from no session
	id       market.OrderID
	text     [event.MaxText]byte
	size     int
	answered bool
	terms    event.Event // its Terms; Kind 0 = it has none
	// Of a mass quote: the set of the entry being followed, and the entries refused so far.
	quoteSet uint16
	refused  []wire.QuoteRefusal
}

// deskClient returns that of the command's session; nil where it came from none.
func (r *commandRef) deskClient() *deskClient {
	if r.blotter == nil {
		return nil
	}
	return r.blotter.desk
}

func (r *commandRef) clOrdID() []byte { return r.text[:r.size] }

// disconnectClOrdID is the ClOrdID of a cancel on disconnect.
const disconnectClOrdID = "\x01disconnect"

// cursorSize is the size of the cursor's record: Seq u64, index u32, epoch u32.
const cursorSize = 16

// open checks the store's layout and reads the cursor.
func (f *reporter) open(store kv.Store) (err error) {
	f.store, err = projection.Open(store, projection.Layout{
		Version: layoutVersion, Err: session.ErrLayout, SyncKey: keyMark,
		Load: func(value []byte) (seq uint64, err error) {
			if len(value) != cursorSize {
				return 0, fmt.Errorf("%w: cursor has %d bytes, want %d", session.ErrLayout, len(value), cursorSize)
			}
			f.stored = position{binary.BigEndian.Uint64(value), binary.BigEndian.Uint32(value[8:])}
			f.storedEpoch = uint64(binary.BigEndian.Uint32(value[12:]))
			f.epoch = f.storedEpoch
			return f.stored.whole(), nil
		},
	})
	return err
}

// load reads the live orders, and the quotes and claims of sessions.
func (f *reporter) load() error {
	var err error
	if _, f.storedUnfinished, err = f.store.Get([]byte{keyUnfinished}); err != nil {
		return err
	}
	f.unfinished = f.storedUnfinished
	err = kv.Each(f.store, []byte{keyLive}, []byte{keyLive + 1}, func(key, value []byte) error {
		if len(value) == 0 {
			return nil
		}
		id := market.OrderID(binary.BigEndian.Uint64(key[1:]))
		o, err := parseOrderRecord(id, value, f.gateway.blotterNumbered)
		switch {
		case err != nil:
			return err
		case o == nil:
			f.orphanedEvents.Add(1)
			return nil
		}
		f.orders[id] = o
		o.owner.restoreOrder(o)
		return nil
	})
	return errors.Join(err, f.desk.load())
}

// follow applies events in their order.
func (f *reporter) follow(events []event.Event) error {
	for i := range events {
		e := &events[i]
		if e.Seq != f.next.seq {
			f.next = position{seq: e.Seq}
			f.command.blotter, f.command.answered, f.command.terms.Kind = nil, false, 0
			f.command.size, f.command.quoteSet, f.command.refused = 0, 0, f.command.refused[:0]
		}
		if err := f.apply(e); err != nil {
			return err
		}
		f.next.index++
		if err := f.commitIfFull(); err != nil {
			return err
		}
	}
	return nil
}

// apply processes one event. For an event that the store already has, it sets only the
// state that later events of the same command need.
func (f *reporter) apply(e *event.Event) error {
	switch e.Kind {
	case event.Reference:
		f.startCommand(e)
		return nil
	case event.Terms:
		f.command.terms = *e
		return nil
	case event.Quoted:
		f.command.quoteSet = uint16(e.Other)
		return nil
	case event.QuoteRejected:
		f.quoteRefused(e)
		return nil
	case event.Desk:
		return f.desk.follow(e)
	case event.EpochStarted:
		f.epoch = e.Other
		// An epoch after the store's last is never in the store, whatever its Seqs: see
		// Reconcile. A stored one comes again if another consumer of the journal
		// is further behind.
		if f.epoch > f.storedEpoch {
			f.stored = position{}
		}
	}
	if f.next.before(f.stored) {
		f.command.answered = f.command.answered || f.answersRequest(e)
		return nil
	}
	f.at = e.At
	switch e.Kind {
	case event.Accepted:
		return f.accepted(e)
	case event.Rejected:
		return f.rejected(e)
	case event.Traded:
		return f.traded(e)
	case event.Cancelled:
		return f.cancelled(e)
	case event.Reduced, event.Amended:
		return f.amended(e)
	case event.AmendRejected, event.CancelRejected:
		return f.refused(e)
	case event.MassCancelled:
		return f.massCancelled(e)
	case event.MassQuoted:
		return f.massQuoted(e)
	case event.Triggered:
		return f.triggered(e)
	case event.InstrumentSet:
		return f.gateway.statuses.Changed(e, func(s *session.Session, msgType string, firstTag int, body []byte) error {
			return f.emitType(f.gateway.blotterOf(s), msgType, firstTag, body)
		})
	}
	return nil
}

// answersRequest reports whether an event is the first answer to the command's own
// request, and not an expiry that was due before it.
func (f *reporter) answersRequest(e *event.Event) bool {
	switch e.Kind {
	case event.MassCancelled, event.MassQuoted:
		return true
	case event.Accepted, event.Rejected, event.AmendRejected, event.CancelRejected:
		return f.asked(e.OrderID)
	case event.Reduced, event.Amended:
		return f.asked(e.OrderID) && event.Reason(e.Code) != event.ReasonSelfTrade
	case event.Cancelled:
		reason := event.Reason(e.Code)
		return f.asked(e.OrderID) && (reason == event.ReasonUser || reason == event.ReasonAmendedAway)
	}
	return false
}

func (f *reporter) startCommand(e *event.Event) {
	r, _ := e.Reference()
	f.command = commandRef{blotter: f.gateway.blotterNumbered(r.Origin), id: r.OrderID, refused: f.command.refused[:0]}
	f.command.size = copy(f.command.text[:], r.Text)
	if r.Origin == 0 && string(r.Text) == reconciledClOrdID && !f.next.before(f.stored) {
		f.unfinished = false
	}
	// After the loss of the store, session numbers may differ from the journal's; a session
	// must not get another participant's reports.
	if s := f.command.blotter; s != nil && s.Participant.Number != r.Participant {
		f.command.blotter = nil
	}
	if f.command.blotter == nil && r.Origin != 0 {
		f.orphanedEvents.Add(1)
	}
}

// asked reports whether the command being followed is a client's own and is about the
// order.
func (f *reporter) asked(id market.OrderID) bool {
	return f.command.blotter != nil && f.command.id == id && f.command.size > 0 && f.command.text[0] != wire.InternalPrefix
}

// answer sends the first answer to the command's ClOrdID and keeps it for repetitions.
func (f *reporter) answer(s *blotter, msgType byte, body []byte, o *order) error {
	f.keepAnswer(s, msgType, body, o, nil)
	return f.emit(s, msgType, body)
}

// keepAnswer keeps the first answer to the command's ClOrdID, with the order or the claim
// that the command has made.
func (f *reporter) keepAnswer(s *blotter, code byte, body []byte, o *order, c *claim) {
	if f.command.answered {
		return
	}
	f.command.answered = true
	s.mu.Lock()
	r := s.requests[string(f.command.clOrdID())]
	switch {
	case r == nil:
		r = &request{clOrdID: string(f.command.clOrdID())}
		s.requests[r.clOrdID] = r
	case r.answer == 0:
		s.requestAnswered(r)
	}
	r.id, r.order, r.claim = f.command.id, o, c
	f.leaving(s).answer(r, code, body)
	if o != nil && o.Live() {
		s.orders[o.ID] = o
	}
	s.mu.Unlock()
	f.answers, f.owners = append(f.answers, r), append(f.owners, s)
}

// emit adds a message whose first field is OrderID (37) to the next deliver. body has the
// form of draft; it is copied.
func (f *reporter) emit(s *blotter, msgType byte, body []byte) error {
	return f.emitType(s, string(msgType), wire.TagOrderID, body)
}

// emitType is emit for messages with another first field.
func (f *reporter) emitType(s *blotter, msgType string, firstTag int, body []byte) error {
	f.reports++
	f.leaving(s).Add(msgType, firstTag, body, f.replaying)
	return nil
}

// leaving returns the batch that goes to s with the next deliver.
func (f *reporter) leaving(s *blotter) *reportBatch {
	if s.reports.empty() {
		f.senders = append(f.senders, s)
	}
	return &s.reports
}

// Run follows c until it ends or a store fails.
func (f *reporter) Run(ctx context.Context, c projection.Consumer) error {
	if err := f.desk.start(); err != nil {
		return err
	}
	f.consumer = c
	for {
		events, err := c.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return f.end(c.CompleteSeq())
		case err != nil:
			return errors.Join(err, f.end(0))
		}
		if err := f.process(events, c); err != nil {
			return err
		}
	}
}

// end commits the rest. All commands up to whole have been processed, also those without
// events, so a restart begins at the snapshot of a clean stop.
func (f *reporter) end(whole uint64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if whole > 0 && whole >= f.next.seq {
		f.next = position{seq: whole + 1}
	}
	return f.commit()
}

// runInline does the work of Run while Run waits. engine.Engine.RunInline calls it.
func (f *reporter) runInline() {
	if err := f.process(f.consumer.Poll(), f.consumer); err != nil {
		f.gateway.Fail(err)
	}
}

// process applies events, and those that arrive meanwhile, and sends their reports.
func (f *reporter) process(events []event.Event, c projection.Consumer) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for ; len(events) > 0; events = c.Poll() {
		if err := errors.Join(f.follow(events), f.deliver()); err != nil {
			return err
		}
		c.Release(len(events))
	}
	if f.commitDue() {
		select {
		case f.wake <- struct{}{}:
		default:
		}
	}
	return nil
}
