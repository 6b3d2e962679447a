package reports

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"sync/atomic"

	"blockdesk/engine/event"
	"blockdesk/fixgw/session"
	"blockdesk/fixgw/wire"
	"blockdesk/persist/kv"
	"blockdesk/persist/projection"
)

// maxCommitBytes is how many bytes of messages one commit takes in.
const maxCommitBytes = 4 << 20

// reconciledClOrdID is the ClOrdID of the last command of a reconciliation. It is in journals
// and must not change.
const reconciledClOrdID = "\x01rebased"

// Reporter sends and keeps the reports of durable events. The packages that make reports
// use it while Follower has them process an event, one goroutine at a time.
//
// The reports of a batch of events are sent when the whole batch has been processed. They,
// the changed state, the answers and the position are committed together soon afterwards:
// see Follower.commit. After a crash, the events after the position are processed again.
// They give the same reports with the same ExecIDs, marked PossResend, because a client may
// have them.
//
// An ExecID is Seq-index-epoch. It has the epoch because a Seq may be used twice: if the
// journal has lost reported commands (mode interval, a backup), the next epoch gives their
// Seqs to other commands.
type Reporter struct {
	Command Command // whose events are being processed
	// At is the time of the last change, Unix nanoseconds: records are deleted by its day.
	At int64
	// Replaying: quickfix's sessions do not run yet; reports go to the message stores only.
	Replaying bool
	Copies    DropCopies
	// OrphanedEvents counts events of sessions or instruments that do not exist any more.
	OrphanedEvents atomic.Uint64

	requests *Requests
	sessions session.Directory[Session]
	store    *projection.Store

	next        Position // of the event being processed
	stored      Position // events before it are in the store
	epoch       uint64   // of the events being processed
	storedEpoch uint64   // epoch of the events before stored
	// unfinished: a Reconcile has not ended; storedUnfinished: the store records that.
	unfinished, storedUnfinished bool

	senders     []*Session // with reports that are not sent
	uncommitted []*Session // with sent reports that wait for the commit
	answers     []*Request // since the last commit
	owners      []*Session // of answers
	reports     int        // since the last commit
	key, value  []byte
}

// cursorSize is the size of the position's record: Seq u64, index u32, epoch u32.
const cursorSize = 16

// OpenReporter checks the layout of the store and reads the position.
func OpenReporter(store kv.Store, requests *Requests, sessions session.Directory[Session]) (*Reporter, error) {
	f := &Reporter{requests: requests, sessions: sessions}
	var err error
	f.store, err = projection.Open(store, projection.Layout{
		Version: layoutVersion, Err: session.ErrLayout, SyncKey: keySync,
		Load: func(value []byte) (seq uint64, err error) {
			if len(value) != cursorSize {
				return 0, fmt.Errorf("%w: cursor has %d bytes, want %d", session.ErrLayout, len(value), cursorSize)
			}
			f.stored = Position{binary.BigEndian.Uint64(value), binary.BigEndian.Uint32(value[8:])}
			f.storedEpoch = uint64(binary.BigEndian.Uint32(value[12:]))
			f.epoch = f.storedEpoch
			return f.stored.whole(), nil
		},
	})
	if err != nil {
		return nil, err
	}
	_, f.storedUnfinished, err = f.store.Get([]byte{keyUnfinished})
	f.unfinished = f.storedUnfinished
	return f, err
}

// Store returns the store, with its cursor.
func (f *Reporter) Store() *projection.Store { return f.store }

// Unfinished reports whether the store records a Reconcile that has not ended.
func (f *Reporter) Unfinished() bool { return f.storedUnfinished }

// Index returns the index of the event that is being processed, among those of its command.
func (f *Reporter) Index() uint32 { return f.next.Index }

// Epoch returns the epoch of the event that is being processed.
func (f *Reporter) Epoch() uint64 { return f.epoch }

// Stored reports whether the store has the changes of the event that is being processed.
func (f *Reporter) Stored() bool { return f.next.before(f.stored) }

// begin sets the position of an event, which may be the first one of its command.
func (f *Reporter) begin(e *event.Event) {
	if e.Seq != f.next.Seq {
		f.next = Position{Seq: e.Seq}
		f.Command.Session, f.Command.answered, f.Command.size = nil, false, 0
	}
}

// beginEpoch handles the start of an epoch. One after the store's last is never in the
// store, whatever its Seqs: see Follower.Reconcile. A stored one comes again if another consumer
// of the journal is further behind.
func (f *Reporter) beginEpoch(epoch uint64) {
	f.epoch = epoch
	if epoch > f.storedEpoch {
		f.stored = Position{}
	}
}

// beginCommand handles the first event of a command that came from a session.
func (f *Reporter) beginCommand(e *event.Event) {
	r, _ := e.Reference()
	f.Command = Command{Session: f.sessions.Numbered(r.Origin), ID: r.OrderID}
	f.Command.size = copy(f.Command.text[:], r.Text)
	if r.Origin == 0 && string(r.Text) == reconciledClOrdID && !f.Stored() {
		f.unfinished = false
	}
	// After the loss of the store, session numbers may differ from the journal's; a session
	// must not get another participant's reports.
	if s := f.Command.Session; s != nil && s.Participant.Number != r.Participant {
		f.Command.Session = nil
	}
	if f.Command.Session == nil && r.Origin != 0 {
		f.OrphanedEvents.Add(1)
	}
}

// AppendExecID appends the ExecID of an event that is being processed.
func (f *Reporter) AppendExecID(dst []byte, e *event.Event) []byte {
	dst = strconv.AppendUint(dst, e.Seq, 10)
	dst = strconv.AppendUint(append(dst, '-'), uint64(f.next.Index), 10)
	return strconv.AppendUint(append(dst, '-'), f.epoch, 10)
}

// AppendOwnID appends an ExecID for a report that no event causes.
func (f *Reporter) AppendOwnID(dst []byte) []byte { return f.requests.IDs.Append(dst) }

// Answered records that the event being processed is the first answer to the command's
// request. Its reports are in the store.
func (f *Reporter) Answered() { f.Command.answered = true }

// Answer sends the first answer to the command's request and keeps it for repetitions.
func (f *Reporter) Answer(s *Session, msgType byte, body []byte, subject Subject) {
	f.KeepAnswer(s, msgType, body, subject)
	f.Emit(s, string(msgType), wire.TagOrderID, body)
}

// KeepAnswer keeps the first answer to the command's request, with the order or the claim
// that the command has made; nil = none.
func (f *Reporter) KeepAnswer(s *Session, code byte, body []byte, subject Subject) {
	if f.Command.answered {
		return
	}
	f.Command.answered = true
	s.mu.Lock()
	r := s.requests[string(f.Command.ClOrdID())]
	switch {
	case r == nil:
		r = &Request{ClOrdID: string(f.Command.ClOrdID())}
		s.requests[r.ClOrdID] = r
	case r.answer == 0:
		s.answered(r)
	}
	r.ID, r.Subject = f.Command.ID, subject
	f.nextBatch(s).answer(r, code, body)
	s.mu.Unlock()
	f.answers, f.owners = append(f.answers, r), append(f.owners, s)
}

// Emit adds a message to the next delivery. body has the form of session.Batch.Add; it is
// copied.
func (f *Reporter) Emit(s *Session, msgType string, firstTag int, body []byte) {
	f.reports++
	f.nextBatch(s).Add(msgType, firstTag, body, f.Replaying)
}

// nextBatch returns the batch that goes to s with the next delivery.
func (f *Reporter) nextBatch(s *Session) *batch {
	if s.batch.empty() {
		f.senders = append(f.senders, s)
	}
	return &s.batch
}

// Deliver sends the reports of one batch of events, a session's in one go. While replaying
// it only stores them.
func (f *Reporter) Deliver() error {
	for _, s := range f.senders {
		deliver := s.Deliver
		if f.Replaying {
			deliver = s.Store
		}
		if err := deliver(&s.batch.Batch); err != nil {
			return err
		}
		s.batch.clear()
		if !s.uncommitted {
			s.uncommitted = true
			f.uncommitted = append(f.uncommitted, s)
		}
	}
	f.senders = f.senders[:0]
	return nil
}

// saveMessages commits the messages alone, session by session, if they are too many for one
// commit. Messages may be stored ahead of the position.
func (f *Reporter) saveMessages() error {
	waiting := 0
	for _, s := range f.uncommitted {
		waiting += s.Messages.UnsavedBytes()
	}
	if waiting <= maxCommitBytes {
		return nil
	}
	for _, s := range f.uncommitted {
		if err := s.Messages.Save(); err != nil {
			return err
		}
	}
	return nil
}

// lock locks the message stores of uncommitted for a commit: a resend then finds each
// message either waiting or stored.
func (f *Reporter) lock() {
	for _, s := range f.uncommitted {
		s.Messages.Lock()
	}
}

// unlock ends lock. err is the commit's.
func (f *Reporter) unlock(err error) error {
	for _, s := range f.uncommitted {
		if failed := s.Messages.Filled(err); err == nil {
			err = failed
		}
		s.uncommitted = false
		s.Messages.Unlock()
	}
	f.uncommitted = f.uncommitted[:0]
	return err
}

// fill adds messages and answers to a commit, after lock.
func (f *Reporter) fill(set func(key, value []byte), deleteRange func(lo, hi []byte)) {
	for _, s := range f.uncommitted {
		s.Messages.Fill(set, deleteRange)
	}
	day := DayOf(f.At)
	for i, r := range f.answers {
		number := f.owners[i].Number
		f.requests.answers.filter.add(day, number, []byte(r.ClOrdID))
		f.key = answerKey(f.key[:0], day, number, []byte(r.ClOrdID))
		f.value = appendAnswer(f.value[:0], answer{request: r.MsgType, id: r.ID, msgType: r.answer, content: r.Content, body: r.body})
		set(f.key, f.value)
	}
	if key := []byte{keyUnfinished}; f.unfinished {
		set(key, nil)
	} else if f.storedUnfinished {
		deleteRange(key, kv.After(key))
	}
}

// committed forgets the changes that the commit has stored.
func (f *Reporter) committed() {
	f.storedUnfinished = f.unfinished
	for i, r := range f.answers {
		f.owners[i].answerStored(r)
	}
	f.answers, f.owners, f.reports = f.answers[:0], f.owners[:0], 0
}

// position returns the larger of next and stored, and its epoch.
func (f *Reporter) position() (Position, uint64) {
	if f.next.before(f.stored) {
		return f.stored, f.storedEpoch
	}
	return f.next, f.epoch
}

// Copy sends a TradeCaptureReport to the drop copies of the owner's participant; custom: see
// Capture.
func (f *Reporter) Copy(owner *Session, body, custom []byte) {
	for _, s := range f.Copies.all() {
		if s.Participant.Number == owner.Participant.Number {
			f.Capture(s, body, custom)
		}
	}
}

// Capture sends a TradeCaptureReport to s, with the custom fields behind it where the
// session takes them.
func (f *Reporter) Capture(s *Session, body, custom []byte) {
	if s.Custom.Load() {
		body = append(body, custom...)
	}
	f.Emit(s, "AE", wire.TagTradeReportID, body)
}
