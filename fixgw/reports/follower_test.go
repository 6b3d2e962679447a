package reports

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"blockdesk/engine/event"
	"blockdesk/fixgw/session"
	"blockdesk/fixgw/wire"
	"blockdesk/persist/kv/kvtest"
)

// TestReplayFromBeforeTheStore: the journal is replayed from further back than the store
// where another projection is behind. Events that the store has are not applied again, also when an
// epoch began in it. An epoch that the store has not seen is all new, whatever its Seqs.
func TestReplayFromBeforeTheStore(t *testing.T) {
	t.Parallel()
	store := kvtest.New()
	server, err := session.New(session.Options{Address: "127.0.0.1:0"}.WithDefaults(), store)
	if err == nil {
		err = server.Open(nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	f, err := OpenReporter(store, NewRequests(store, time.Now), session.NewDirectory(server, func(session.Handler) *Session { return nil }))
	if err != nil {
		t.Fatal(err)
	}
	var applied []event.Kind
	v := NewFollower(f, time.Hour, func(e *event.Event) error {
		if !f.Stored() {
			applied = append(applied, e.Kind)
		}
		return nil
	})
	f.stored, f.epoch, f.storedEpoch, f.unfinished = Position{Seq: 10}, 2, 2, true
	begins := func(seq, epoch uint64) event.Event {
		return event.Event{Seq: seq, Kind: event.EpochStarted, Other: epoch}
	}
	var reconciled event.Event
	reconciled.SetReference(7, event.Ref{Text: []byte(reconciledClOrdID)})
	cancelled := event.Event{Seq: 8, Kind: event.Cancelled, OrderID: 1}
	if err := v.Replay([]event.Event{begins(4, 1), begins(6, 2), reconciled, cancelled}); err != nil {
		t.Fatal(err)
	}
	if at, epoch := f.position(); len(applied) != 0 || !f.unfinished || at != f.stored || epoch != 2 {
		t.Errorf("what the store has was applied again: %v, at %+v in epoch %d, unfinished %v", applied, at, epoch, f.unfinished)
	}
	if err := v.Replay([]event.Event{begins(9, 3)}); err != nil {
		t.Fatal(err)
	}
	if at, epoch := f.position(); len(applied) != 1 || at != (Position{Seq: 9, Index: 1}) || epoch != 3 {
		t.Errorf("a new epoch was not applied: %v, at %+v in epoch %d", applied, at, epoch)
	}
}

// kept is a consumer whose events stay until they are released.
type kept struct{ events []event.Event }

func (c *kept) Next(context.Context) ([]event.Event, error) {
	if len(c.events) == 0 {
		return nil, io.EOF
	}
	return c.events, nil
}
func (c *kept) Poll() []event.Event { return c.events }
func (c *kept) Release(n int)       { c.events = c.events[n:] }
func (c *kept) CompleteSeq() uint64 { return 0 }

// TestNothingAfterAFailure: whichever event fails, inline or not, no event is processed
// twice and nothing is committed, though the consumer still has the events.
func TestNothingAfterAFailure(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for fails := range 3 {
		store := kvtest.New()
		server, err := session.New(session.Options{Address: "127.0.0.1:0"}.WithDefaults(), store)
		if err != nil {
			t.Fatal(err)
		}
		f, err := OpenReporter(store, NewRequests(store, time.Now), session.NewDirectory(server, func(session.Handler) *Session { return nil }))
		if err != nil {
			t.Fatal(err)
		}
		processed := map[uint64]int{}
		v := NewFollower(f, time.Hour, func(e *event.Event) error {
			if processed[e.Seq]++; int(e.Seq) == 1+fails {
				return broken
			}
			return nil
		})
		c := &kept{events: []event.Event{{Seq: 1}, {Seq: 2}, {Seq: 3}}}
		v.consumer = c
		for _, err := range []error{v.RunInline(), v.Run(t.Context(), c), v.Commit(true)} {
			if !errors.Is(err, broken) {
				t.Errorf("after a failure: %v", err)
			}
		}
		for seq, n := range processed {
			if n != 1 {
				t.Errorf("event %d failed: %d was processed %d times", 1+fails, seq, n)
			}
		}
		if len(processed) != 1+fails || f.Store().Cursor() != 0 {
			t.Errorf("event %d failed: %d were processed, the store is at %d", 1+fails, len(processed), f.Store().Cursor())
		}
	}
}

// TestAnswerRecords: answers are read as they were written, those of version 1 too.
func TestAnswerRecords(t *testing.T) {
	t.Parallel()
	if a, err := parseAnswer(append([]byte{1, 'D', 0, 0, 0, 0, 0, 0, 0, 9, '8'}, "body"...)); err != nil || a.content != 0 || string(a.body) != "body" || a.id != 9 {
		t.Errorf("an answer of version 1: %+v, %v", a, err)
	}
	first := answer{request: 'D', id: 9, msgType: '8', content: 77, body: []byte("body")}
	if a, err := parseAnswer(appendAnswer(nil, first)); err != nil || a.content != 77 || string(a.body) != "body" {
		t.Errorf("an answer: %+v, %v", a, err)
	}
	if _, err := parseAnswer([]byte{1, 2}); err == nil {
		t.Error("a short answer passed")
	}
}

// TestPendingRequests: requests without an answer are bounded, and QuoteRequests are counted
// among them.
func TestPendingRequests(t *testing.T) {
	t.Parallel()
	q := NewRequests(kvtest.New(), time.Now)
	q.MaxPending = 2
	s := q.NewSession(&session.Session{})
	first := &Request{ClOrdID: wire.QuoteReqPrefix + "0", MsgType: 'R'}
	for i, r := range []*Request{first, {ClOrdID: wire.QuoteReqPrefix + "1", MsgType: 'R'}, {ClOrdID: "2", MsgType: 'D'}} {
		if err := s.Register(r); (err != nil) != (i == 2) {
			t.Errorf("request %d: %v", i, err)
		}
	}
	if got := s.Counts(); got != (Counts{Known: 2, Pending: 2, PendingQuotes: 2}) {
		t.Errorf("%+v", got)
	}
	s.Unregister(first, nil)
	if got := s.Counts(); got != (Counts{Known: 1, Pending: 1, PendingQuotes: 1}) {
		t.Errorf("%+v", got)
	}
}
