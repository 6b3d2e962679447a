package quorum

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/hashicorp/raft"
)

// Finalize ends an upgrade: it raises the log's format to the newest, after which no older
// program can be a member. The current term keeps its format; the caller starts the next
// one. Errors: ErrOldMember if a member does not read it or does not answer; an error that
// wraps ErrDeposed unless this node leads.
func (n *Node) Finalize() error {
	if n.Format() == MaxFormat {
		return nil
	}
	r, err := n.running()
	if err != nil {
		return err
	}
	n.mu.Lock()
	term := n.term
	n.mu.Unlock()
	if r.State() != raft.Leader || term == nil || term.Err() != nil {
		return &DeposedError{Leader: n.Leader(), Err: raft.ErrNotLeader}
	}
	c := r.GetConfiguration()
	if err := c.Error(); err != nil {
		return err
	}
	for _, s := range c.Configuration().Servers {
		if string(s.ID) == n.o.ID {
			continue
		}
		a, err := n.probe(string(s.Address), &probeQuestion{id: n.o.ID})
		switch {
		case errors.Is(err, errOldProgram):
			return fmt.Errorf("%w: node %s runs a program that reads format %d, not %d: upgrade it", ErrOldMember, s.ID, firstFormat, MaxFormat)
		case err != nil:
			return fmt.Errorf("%w: node %s does not answer: %w", ErrOldMember, s.ID, err)
		case a.reads < MaxFormat:
			return fmt.Errorf("%w: node %s reads up to format %d, not %d: upgrade it", ErrOldMember, s.ID, a.reads, MaxFormat)
		}
	}
	if err := n.raiseFormat(term.start); err != nil {
		return term.fail(err)
	}
	return nil
}

// Restart ends the current term; this node or another begins the next one. Error: one that
// wraps ErrDeposed unless this node leads.
func (n *Node) Restart() error {
	n.mu.Lock()
	term := n.term
	n.mu.Unlock()
	if term == nil || term.Err() != nil {
		return &DeposedError{Leader: n.Leader(), Err: raft.ErrNotLeader}
	}
	term.end(errRestart)
	return nil
}

// checkReads refuses a node that is to be added and cannot read the log. A node that
// does not answer yet may be added: it stops at the entry that raised the format.
func (n *Node) checkReads(p Peer) error {
	if _, err := n.running(); err != nil {
		return err
	}
	if n.Format() == firstFormat || p.ID == n.o.ID {
		return nil
	}
	a, err := n.probe(p.Address, &probeQuestion{id: n.o.ID})
	if errors.Is(err, errOldProgram) || err == nil && a.reads < n.Format() {
		return fmt.Errorf("%w: node %s has an older program: upgrade it", ErrOldMember, p.ID)
	}
	return nil
}

func (n *Node) raiseFormat(termStart uint64) error {
	_, err := n.commit(tag{kind: formatKind, termStart: termStart}, binary.LittleEndian.AppendUint16(nil, MaxFormat))
	return err
}
