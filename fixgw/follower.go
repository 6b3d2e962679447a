package fixgw

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"blockdesk/engine/event"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
	"blockdesk/persist/kv"
	"blockdesk/persist/projection"
)

// position is a place in the engine's events: the event that follows the first
// index events of the command seq.
type position struct {
	seq   uint64
	index uint32
}

func (p position) before(q position) bool {
	return p.seq < q.seq || p.seq == q.seq && p.index < q.index
}

// whole returns the Seq up to which all events lie before p.
func (p position) whole() uint64 { return p.seq - min(p.seq, 1) }

// follower turns durable events into reports. One goroutine at a time: Replay's
// caller before Run, then Run's.
//
// The reports of a batch of events are sent when the batch has been followed.
// They, the orders' state, the answers and the position are committed together,
// soon afterwards: see commit. After a crash, events past the position are
// followed again: they give the same reports with the same ExecIDs, marked
// PossResend, since a client may have seen them.
//
// An ExecID is Seq-index-epoch. The epoch is in it because a Seq may come twice:
// where the journal has lost commands that were seen (mode interval, a backup),
// the next life gives their Seqs to others, in another epoch.
type follower struct {
	gateway *Gateway
	store   *projection.Store
	// mu is held while events are followed, and by the saver while it commits.
	mu     sync.Mutex
	out    outbox                    // its scratch alone
	orders map[market.OrderID]*order // live, or closed since the last commit

	at    int64    // of the last event, Unix nanoseconds
	place position // of the next event
	done  position // events before it are in the store: Replay skips them
	epoch uint64   // of the events being followed
	ended uint64   // epoch of the events before done
	// unfinished: a Reconcile has not reached its end; storedUnfinished: the store says so.
	unfinished, storedUnfinished bool
	ref                          reference
	consumer                     projection.Consumer // Run's
	step                         func()              // lent, bound once
	// replaying: quickfix's sessions do not run yet; reports go straight into
	// the message stores.
	replaying bool

	senders []*blotter    // with reports that are not sent
	owing   []*blotter    // whose sent reports wait for the commit
	wake    chan struct{} // to the saver; capacity 1

	changed []*order // since the last commit
	answers []*ref
	owners  []*blotter // of answers
	retired []*ref     // whose order has another ClOrdID now
	reports int        // since the last commit
	saved   time.Time
	key     []byte
	value   []byte
	cursor  []byte
	text    []byte
	execID  []byte
	capture []byte // body of a TradeCaptureReport

	desk deskFollower

	lost atomic.Uint64 // events of sessions that are no more
}

// reference is the session and ClOrdID of the command whose events are being
// followed.
type reference struct {
	blotter  *blotter // nil = the command came from no session
	id       market.OrderID
	text     [event.MaxText]byte
	size     int
	answered bool
}

func (r *reference) clOrdID() []byte { return r.text[:r.size] }

// disconnectRef is the ClOrdID of a cancel on disconnect.
const disconnectRef = "\x01disconnect"

// cursorSize is the size of the cursor's record: Seq u64, index u32, epoch u32.
const cursorSize = 16

// open checks the store's layout and reads the cursor.
func (f *follower) open(store kv.Store) (err error) {
	f.store, err = projection.Open(store, projection.Layout{
		Version: layoutVersion, Err: errLayout, SyncKey: keyMark,
		Load: func(value []byte) (seq uint64, err error) {
			if len(value) != cursorSize {
				return 0, fmt.Errorf("%w: cursor of %d bytes", errLayout, len(value))
			}
			f.done = position{binary.BigEndian.Uint64(value), binary.BigEndian.Uint32(value[8:])}
			f.ended = uint64(binary.BigEndian.Uint32(value[12:]))
			f.epoch = f.ended
			return f.done.whole(), nil
		},
	})
	return err
}

// load reads the live orders and what the desk has for sessions.
func (f *follower) load() error {
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
			f.lost.Add(1)
			return nil
		}
		f.orders[id] = o
		o.owner.adopt(o)
		return nil
	})
	return errors.Join(err, f.loadDesk())
}

// follow applies events that follow each other and the ones before.
func (f *follower) follow(events []event.Event) error {
	for i := range events {
		e := &events[i]
		if e.Seq != f.place.seq {
			f.place = position{seq: e.Seq}
			f.ref.blotter, f.ref.answered = nil, false
		}
		if err := f.apply(e); err != nil {
			return err
		}
		f.place.index++
		if err := f.commitIfFull(); err != nil {
			return err
		}
	}
	return nil
}

// apply follows one event. Of events that the store has already, it takes only
// what later events of the same command need.
func (f *follower) apply(e *event.Event) error {
	switch e.Kind {
	case event.Reference:
		f.refer(e)
		return nil
	case event.Desk:
		return f.followDesk(e)
	case event.EpochStarted:
		f.epoch = e.Other
		// An epoch after the store's last is never in the store already, whatever
		// its Seqs: see Reconcile. One that is comes again where another follower of
		// the journal is further behind.
		if f.epoch > f.ended {
			f.done = position{}
		}
	}
	if f.place.before(f.done) {
		f.ref.answered = f.ref.answered || f.answersRequest(e)
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
	case event.InstrumentSet:
		return f.gateway.statuses.changed(f, e)
	}
	return nil
}

// answersRequest reports whether an event is the first answer to the command's
// own request, and not what the command's time has brought about before it.
func (f *follower) answersRequest(e *event.Event) bool {
	switch e.Kind {
	case event.MassCancelled:
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

func (f *follower) refer(e *event.Event) {
	r, _ := e.Reference()
	f.ref = reference{blotter: f.gateway.blotterNumbered(r.Origin), id: r.OrderID}
	f.ref.size = copy(f.ref.text[:], r.Text)
	if r.Origin == 0 && string(r.Text) == reconciledRef && !f.place.before(f.done) {
		f.unfinished = false
	}
	// A store that was lost may number the sessions in another way than the
	// journal; nobody gets another participant's reports.
	if s := f.ref.blotter; s != nil && s.participant.Number != r.Participant {
		f.ref.blotter = nil
	}
	if f.ref.blotter == nil && r.Origin != 0 {
		f.lost.Add(1)
	}
}

// asked reports whether the command being followed is a client's own and is
// about the order.
func (f *follower) asked(id market.OrderID) bool {
	return f.ref.blotter != nil && f.ref.id == id && f.ref.size > 0 && f.ref.text[0] != wire.InternalMark
}

// answer sends the first answer to the command's ClOrdID and keeps it for its
// repetitions.
func (f *follower) answer(s *blotter, msgType byte, body []byte, o *order) error {
	f.keepAnswer(s, msgType, body, o, nil)
	return f.emit(s, msgType, body)
}

// keepAnswer keeps the first answer to the command's ClOrdID, with the order or
// the claim that it has made.
func (f *follower) keepAnswer(s *blotter, code byte, body []byte, o *order, c *claim) {
	if f.ref.answered {
		return
	}
	f.ref.answered = true
	s.mu.Lock()
	r := s.refs[string(f.ref.clOrdID())]
	switch {
	case r == nil:
		r = &ref{clOrdID: string(f.ref.clOrdID())}
		s.refs[r.clOrdID] = r
	case r.answer == 0:
		s.refAnswered(r)
	}
	r.id, r.order, r.claim = f.ref.id, o, c
	f.leaving(s).answer(r, code, body)
	if o != nil && o.Live() {
		s.orders[o.ID] = o
	}
	s.mu.Unlock()
	f.answers, f.owners = append(f.answers, r), append(f.owners, s)
}

// emit sends a message, whose first field is OrderID (37), with the next deliver.
// body is in the form of draft; it is copied.
func (f *follower) emit(s *blotter, msgType byte, body []byte) error {
	return f.emitType(s, string(msgType), wire.TagOrderID, body)
}

// emitType is emit for messages that begin with another field.
func (f *follower) emitType(s *blotter, msgType string, firstTag int, body []byte) error {
	f.reports++
	s.gateway.out.Add(1)
	f.leaving(s).add(msgType, firstTag, body, f.replaying)
	return nil
}

// leaving returns the batch that goes to s with the next deliver.
func (f *follower) leaving(s *blotter) *reportBatch {
	if s.reports.empty() {
		f.senders = append(f.senders, s)
	}
	return &s.reports
}
