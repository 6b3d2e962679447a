package desk

import (
	"errors"
	"testing"

	"blockdesk/engine/rfq"
	"blockdesk/persist/kv/kvtest"
	"blockdesk/persist/projection"
)

// TestDiverged: a store that was damaged, or is another journal's, is not taken for
// the desk's; Reconcile makes it so.
func TestDiverged(t *testing.T) {
	t.Parallel()
	r := newRig(t).start()
	ticket := r.open(1_000_000).ID
	r.must(keyed(take(ticket, 1), 1, 1))
	r.must(keyed(take(ticket, 2), 2, 1))
	if err := r.finish(); err != nil {
		t.Fatal(err)
	}
	whole := r.store.(*kvtest.Memory)
	for name, spoil := range map[string]func(s *kvtest.Memory){
		"an answer is gone":        func(s *kvtest.Memory) { dropFirst(s, keyAnswer); dropFirst(s, keyAge) },
		"the tickets are gone":     func(s *kvtest.Memory) { dropFirst(s, keyTicket) },
		"a ticket is another's":    func(s *kvtest.Memory) { editTicket(s, func(t *rfq.Ticket) { t.CreatedAt++ }) },
		"a ticket has lost a step": func(s *kvtest.Memory) { editTicket(s, func(t *rfq.Ticket) { t.Tranches[0].Reserved = 0 }) },
	} {
		store := whole.Prefix(whole.Commits())
		spoil(store)
		r.store = store
		replica := r.recover()
		board, seq := replica.State.Desk().ReadModel(), replica.State.Seq()
		if err := r.Start(board, seq); !errors.Is(err, projection.ErrDiverged) {
			t.Errorf("%s: Start: %v; want %v", name, err, projection.ErrDiverged)
		}
		if err := r.Reconcile(board, seq); err != nil {
			t.Fatalf("%s: Reconcile: %v", name, err)
		}
		again := r.recover()
		if err := r.Start(again.State.Desk().ReadModel(), seq); err != nil {
			t.Errorf("%s: Start after Reconcile: %v", name, err)
		}
	}
}

// dropFirst takes the first entry of a kind out of the store, behind the desk's back.
func dropFirst(s *kvtest.Memory, kind byte) {
	if keys := s.Keys(string(rune(kind))); len(keys) > 0 {
		s.Drop(keys[0])
	}
}

// editTicket changes the first ticket.
func editTicket(s *kvtest.Memory, change func(*rfq.Ticket)) {
	key := s.Keys(string(rune(keyTicket)))[0]
	t, err := parseTicket([]byte(s.Content()[key]))
	if err != nil {
		panic(err)
	}
	change(t)
	s.Put(key, appendTicket(nil, t))
}
