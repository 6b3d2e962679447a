package quorum

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"

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

// errRestart ends a term so that the next one has another format.
var errRestart = errors.New("the format of the log has changed")

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
