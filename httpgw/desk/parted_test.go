package desk

import (
	"errors"
	"testing"

	"blockdesk/engine/rfq"
)

// TestParted: a store that was damaged, or is another journal's, is not taken for
// the desk's; Rebase makes it so.
func TestParted(t *testing.T) {
	t.Parallel()
	r := newRig(t).start()
	ticket := r.open(1_000_000).ID
	r.must(keyed(take(ticket, 1), 1, 1))
	r.must(keyed(take(ticket, 2), 2, 1))
	if err := r.finish(); err != nil {
		t.Fatal(err)
	}
	whole := r.store.(*memStore)
	for name, spoil := range map[string]func(s *memStore){
		"an answer is gone":        func(s *memStore) { s.drop(keyAnswer); s.drop(keyAge) },
		"the tickets are gone":     func(s *memStore) { s.drop(keyTicket) },
		"a ticket is another's":    func(s *memStore) { s.edit(func(t *rfq.Ticket) { t.CreatedAt++ }) },
		"a ticket has lost a step": func(s *memStore) { s.edit(func(t *rfq.Ticket) { t.Tranches[0].Reserved = 0 }) },
	} {
		store := whole.prefix(len(whole.log))
		spoil(store)
		r.store = store
		replica := r.recover()
		board, seq := replica.State.Desk().Board(), replica.State.Seq()
		if err := r.Start(board, seq); !errors.Is(err, ErrParted) {
			t.Errorf("%s: Start: %v; want %v", name, err, ErrParted)
		}
		if err := r.Rebase(board, seq); err != nil {
			t.Fatalf("%s: Rebase: %v", name, err)
		}
		again := r.recover()
		if err := r.Start(again.State.Desk().Board(), seq); err != nil {
			t.Errorf("%s: Start after Rebase: %v", name, err)
		}
	}
}

// drop takes the first entry of a kind out of the store, behind the desk's back.
func (s *memStore) drop(kind byte) {
	for _, key := range s.between(string(kind), string(kind+1)) {
		delete(s.values, key)
		s.keys = nil
		return
	}
}

// edit changes the first ticket.
func (s *memStore) edit(change func(*rfq.Ticket)) {
	key := s.between(string(keyTicket), string(keyTicket+1))[0]
	t, err := parseTicket(s.values[key])
	if err != nil {
		panic(err)
	}
	change(t)
	s.values[key] = appendTicket(nil, t)
}
