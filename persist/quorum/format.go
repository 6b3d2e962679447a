package quorum

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"blockdesk/engine"
	"blockdesk/persist"
)

// Formats of a group's log. In format 1 it has only what release 0.1.0 reads, so that a
// group whose nodes are upgraded one by one never applies an entry differently, and can go
// back. Finalize raises it. A new group begins with the newest, because all its first
// nodes have answered probes.
const (
	firstFormat = engine.Format1
	// MaxFormat is the newest format that this program reads.
	MaxFormat = engine.Format2
)

var (
	// ErrFormat says that the log has a format that this program does not read. The node
	// stops and must be started with the program of the other nodes.
	ErrFormat = errors.New("quorum: unknown log format")
	// ErrOldMember says that a member does not read a format, or does not answer.
	ErrOldMember = errors.New("quorum: a member cannot read the log's format")
)

func unknownFormat(format uint32) error {
	return fmt.Errorf("%w %d: this program reads up to %d: start this node with the program of the other nodes", ErrFormat, format, MaxFormat)
}

// logFormat is the log's format as far as it is applied. The zero value is format 1.
type logFormat struct{ v atomic.Uint32 }

func (f *logFormat) load() uint16   { return uint16(max(firstFormat, f.v.Load())) }
func (f *logFormat) store(v uint16) { f.v.Store(uint32(v)) }

// Format returns the format of the log as far as this node has applied it. Any goroutine.
func (n *Node) Format() uint16 { return n.machine.format.load() }

// Format returns the format in which the term's journal is written.
func (t *Term) Format() uint16 { return t.format }

// applyFormat raises the format: two bytes, little-endian.
func (m *machine) applyFormat(data []byte) error {
	if len(data) != 2 {
		return fmt.Errorf("%w: the log's format has %d bytes", errEntry, len(data))
	}
	v := binary.LittleEndian.Uint16(data)
	if v > MaxFormat {
		return unknownFormat(uint32(v))
	}
	m.format.store(max(v, m.format.load()))
	return nil
}

// beginFormat raises the format if no member can have an older program: programs with
// probes have begun the group and it has no frames, or the state is of the newest format.
func (n *Node) beginFormat(b termStarted) error {
	if n.Format() == MaxFormat {
		return nil
	}
	newest, err := n.stateFormat()
	if err == nil && newest < MaxFormat && b.at == persist.Genesis() {
		var founded bool
		if _, founded, err = n.log.Register(registerFounders); founded {
			newest = MaxFormat
		}
	}
	if err != nil || newest < MaxFormat {
		return err
	}
	return n.raiseFormat(b.index)
}

// stateFormat returns the format that the standby replica's state needs.
func (n *Node) stateFormat() (uint16, error) {
	format := make(chan uint16, 1)
	err := n.standby.enqueue(job{call: func(w *standby) error { format <- w.replica.State.Desk().Format(); return nil }})
	if err != nil {
		return 0, ErrStopped
	}
	select {
	case f := <-format:
		return f, nil
	case <-n.standby.stopped:
		return 0, ErrStopped
	}
}

func (n *Node) raiseFormat(termStart uint64) error {
	_, err := n.commit(tag{kind: formatKind, termStart: termStart}, binary.LittleEndian.AppendUint16(nil, MaxFormat))
	return err
}

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

// errRestart ends a term so that the next one has another format.
var errRestart = errors.New("the format of the log has changed")

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

// checkFormat refuses commands that the term's format lacks. The gateways make none; a
// follower with an older program must never get one.
func (t *Term) checkFormat(a, b []engine.Command) error {
	if t.format == MaxFormat {
		return nil
	}
	for _, commands := range [2][]engine.Command{a, b} {
		for i := range commands {
			if need := t.check.Format(&commands[i]); need > t.format {
				return fmt.Errorf("%w: command %d needs format %d, the log has %d until the upgrade is finalized",
					ErrOldMember, commands[i].Seq, need, t.format)
			}
		}
	}
	return nil
}
