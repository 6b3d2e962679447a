package quorum

import (
	"bytes"
	"sync"

	"blockdesk/persist/kv"

	"github.com/hashicorp/raft"
)

// Store is one replicated kv.Store of a term. A commit is an entry of the same log as
// the frames, so on every node a store is never ahead of the frames. Reads use this
// node's copy and see every earlier commit of this term. Safe for concurrent use.
type Store struct {
	term *Term
	name string

	mu    sync.Mutex
	moved sync.Cond // signals that done has grown or the term is over
	// Commits are numbered from 1 in the order of proposal. sets and deletions have the
	// last commit under way that touches a key.
	proposed, done uint64
	sets           map[string]uint64
	deletions      []deletion
}

type deletion struct {
	lo, hi []byte
	number uint64
}

// pendingCommit is a commit under way.
type pendingCommit struct {
	store  *Store
	number uint64
	ops    []byte
	future raft.ApplyFuture
}

func (p *pendingCommit) each(f func(op byte, a, b []byte)) {
	for ops := p.ops; len(ops) > 0; {
		op, a, b, rest, _ := nextOp(ops)
		f(op, a, b)
		ops = rest
	}
}

func newStore(t *Term, name string) *Store {
	s := &Store{term: t, name: name, sets: map[string]uint64{}}
	s.moved.L = &s.mu
	return s
}

// Get implements kv.Reader. It waits only for a commit under way that touches key.
// Errors: ErrDeposed, or the copy's.
func (s *Store) Get(key []byte) (value []byte, ok bool, err error) {
	s.mu.Lock()
	last := s.sets[string(key)]
	for i := range s.deletions {
		d := &s.deletions[i]
		if bytes.Compare(key, d.lo) >= 0 && bytes.Compare(key, d.hi) < 0 {
			last = max(last, d.number)
		}
	}
	err = s.wait(last)
	s.mu.Unlock()
	if err != nil {
		return nil, false, err
	}
	return s.term.node.local.kv.Get(prefixed(s.name, key))
}

// Scan implements kv.Reader. It waits for the commits under way.
func (s *Store) Scan(lo, hi []byte, f func(key, value []byte) bool) error {
	s.mu.Lock()
	err := s.wait(s.proposed)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	from, to := prefixed(s.name, lo), prefixed(s.name, hi)
	if hi == nil {
		to = append([]byte(s.name), 1)
	}
	return s.term.node.local.kv.Scan(from, to, func(key, value []byte) bool { return f(key[len(s.name)+1:], value) })
}

// Commit implements kv.Store. With sync it returns when a majority has it and all
// before it on disk. Without, it may be lost with the term, but only from the end: a
// commit survives whole or not at all, and only if all commits and frames before it
// survive. Errors: persist.ErrLimit if nothing was proposed; an error that wraps
// ErrDeposed is final.
func (s *Store) Commit(fill kv.Fill, sync bool) error {
	c := newCommit(s.name)
	fill(c.set, c.deleteRange)
	data, err := c.seal()
	if err != nil {
		return err
	}
	n := s.term.node
	select {
	case n.slots <- struct{}{}:
	case <-s.term.done:
		return s.term.Err()
	}
	s.mu.Lock()
	number, err := s.propose(data)
	if err == nil && sync {
		err = s.wait(number)
		s.mu.Unlock()
		return err
	}
	s.mu.Unlock()
	if err != nil {
		<-n.slots
		return s.term.fail(err)
	}
	return nil
}

// propose numbers and proposes a commit. The caller holds mu, so that the numbers are
// in the log's order.
func (s *Store) propose(data []byte) (uint64, error) {
	if err := s.term.Err(); err != nil {
		return 0, err
	}
	n := s.term.node
	future, err := n.propose(tag{kind: storeKind, termStart: s.term.start}, data)
	if err != nil {
		return 0, err
	}
	s.proposed++
	_, ops, _ := parseCommit(data) // newCommit has made it
	p := pendingCommit{store: s, number: s.proposed, ops: ops, future: future}
	p.each(func(op byte, a, b []byte) {
		if op == opSet {
			s.sets[string(a)] = p.number
		} else {
			s.deletions = append(s.deletions, deletion{lo: a, hi: b, number: p.number})
		}
	})
	n.pending <- p // there is room
	return p.number, nil
}

// wait waits until the commit number is in this node's copy, or the term is over. The
// caller holds mu.
func (s *Store) wait(number uint64) error {
	for s.done < number {
		if err := s.term.Err(); err != nil {
			return err
		}
		s.moved.Wait()
	}
	return nil
}

// complete records the result of a commit.
func (s *Store) complete(p *pendingCommit, err error) {
	if err != nil {
		s.term.end(err) // wakes the waiters
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = p.number
	p.each(func(op byte, a, _ []byte) {
		switch {
		case op == opDelete:
			s.deletions = s.deletions[1:] // they are in order
		case s.sets[string(a)] == p.number:
			delete(s.sets, string(a))
		}
	})
	s.moved.Broadcast()
}

// wake wakes the waiters, so that they check whether the term is over.
func (s *Store) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moved.Broadcast()
}

// Failed returns the end of the term, nil while it lasts.
func (s *Store) Failed() error { return s.term.Err() }
