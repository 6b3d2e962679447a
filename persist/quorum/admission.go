package quorum

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/raft"
)

// Admission is what a node with an empty folder does before it votes. A folder that is not
// mounted, or a disk that was replaced, looks like that of a new node; but a voter that has
// forgotten its votes and its entries can elect a leader that lacks what was acknowledged.
// So such a node asks its peers (probe.go) and goes on only
//
//   - as one of the first nodes of a group, if all peers are as empty as it is, or if one
//     of them has seen this very folder empty when the group began;
//   - as a node that joins, if most peers have a log and it votes in none. It may have been
//     added already: until it votes, it has nothing to forget.

// ErrEmptyFolder means that a node has an empty folder and its group has a log: it may have
// forgotten votes and acknowledged entries, so it does not vote. Replace it under a new id.
var ErrEmptyFolder = errors.New("quorum: the data folder is empty, but the group has a log")

// errAlone says that a node with an empty folder waits for answers of its peers.
var errAlone = errors.New("the data folder is empty: waiting for peers that know whether the group has begun")

// admissionInterval is the time between two rounds of probes.
const admissionInterval = 250 * time.Millisecond

// Registers of the log. Their names are on disk and never change.
var (
	registerBirth    = []byte("blockdesk/birth")    // 16 bytes
	registerFounders = []byte("blockdesk/founders") // see encodeFounders
	registerAdmitted = []byte("blockdesk/admitted") // there once a joining node has asked its peers
)

// admit returns nil when this node may take part in the group, or ctx's error.
func (n *Node) admit(ctx context.Context) error {
	entries := logStore{n.log}
	used, err := raft.HasExistingState(entries, entries, n.snapshots)
	if err != nil || used {
		return err
	}
	others := slices.DeleteFunc(slices.Clone(n.o.Peers), func(p Peer) bool { return p.ID == n.o.ID })
	_, admitted, err := n.log.Register(registerAdmitted)
	if err != nil || admitted || n.o.Join && len(others) == 0 {
		return err
	}
	q := probeQuestion{id: n.o.ID}
	if q.birth, err = n.birth(true); err != nil {
		return err
	}
	for {
		answers, errs := n.probePeers(ctx, others, &q)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		verdict := n.judge(others, answers, errs)
		n.setAdmission(verdict)
		if verdict == nil {
			return n.recordAdmission(others, answers)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-n.broken:
			return n.Failed()
		case <-time.After(admissionInterval):
		}
	}
}

// birth returns this folder's, zero if there is none; create writes one first.
func (n *Node) birth(create bool) (b birth, err error) {
	n.births.Lock()
	defer n.births.Unlock()
	value, ok, err := n.log.Register(registerBirth)
	switch {
	case err != nil || !ok && !create:
		return b, err
	case !ok:
		_, _ = rand.Read(b[:]) // never fails
		return b, n.log.SetRegister(registerBirth, b[:])
	case len(value) != len(b):
		return b, fmt.Errorf("%w: key %s has %d bytes", errState, registerBirth, len(value))
	}
	return birth(value), nil
}

// judge returns nil if this node, whose folder is empty, may take part, and otherwise why not.
func (n *Node) judge(others []Peer, answers []probeAnswer, errs []error) error {
	empty, informed := 0, 0
	var log, silent *Peer
	for i := range others {
		switch a := &answers[i]; {
		case errors.Is(errs[i], errOldProgram):
			// It does not know. A program of that age founds no group with this one.
			informed++
			if !n.o.Join {
				log = &others[i]
			}
		case errs[i] != nil:
			silent = &others[i]
		case !a.hasLog:
			empty++
		case a.founder:
			return nil
		default:
			informed++
			if !n.o.Join || a.voter {
				log = &others[i]
			}
		}
	}
	switch {
	case log != nil:
		return fmt.Errorf("%w, which node %s has: %s may have forgotten votes and acknowledged commands and takes no part. "+
			"Put its data folder back, or replace it: blockdesk cluster replace %s NEW_ID HOST:PORT", ErrEmptyFolder, log.ID, n.o.ID, n.o.ID)
	case n.o.Join && informed > len(others)/2, !n.o.Join && empty == len(others):
		return nil
	case silent != nil:
		return fmt.Errorf("%w: no answer from node %s at %s", errAlone, silent.ID, silent.Address)
	}
	return errAlone
}

// recordAdmission makes the verdict durable, before the node has a log: a founder that is
// asked later knows the folders of the others, a joining node does not ask again.
func (n *Node) recordAdmission(others []Peer, answers []probeAnswer) error {
	if n.o.Join {
		return n.log.SetRegister(registerAdmitted, []byte{1})
	}
	var p []byte
	for i := range others {
		if b := answers[i].birth; b != (birth{}) {
			p = append(append(append(p, byte(len(others[i].ID))), others[i].ID...), b[:]...)
		}
	}
	return n.log.SetRegister(registerFounders, p)
}

// founders returns the folders that this node saw empty when it began the group's log.
func (n *Node) founders() (map[string]birth, error) {
	p, _, err := n.log.Register(registerFounders)
	if err != nil {
		return nil, err
	}
	out := map[string]birth{}
	for len(p) > 0 {
		end := 1 + int(p[0])
		if len(p) < end+birthBytes {
			return nil, fmt.Errorf("%w: key %s is incomplete", errState, registerFounders)
		}
		out[string(p[1:end])] = birth(p[end : end+birthBytes])
		p = p[end+birthBytes:]
	}
	return out, nil
}

// setAdmission records why the node takes no part yet, nil if it does, and logs a change.
func (n *Node) setAdmission(why error) {
	n.mu.Lock()
	was := n.admission
	n.admission = why
	n.mu.Unlock()
	switch {
	case why == nil || was != nil && was.Error() == why.Error():
	case errors.Is(why, ErrEmptyFolder):
		n.o.Logger.Error("node may not join its group", "node", n.o.ID, "error", why)
	default:
		n.o.Logger.Info("waiting for the peers of a new group", "node", n.o.ID, "reason", why)
	}
}

// Admission returns nil once the node takes part in its group, else why it does not: an
// error that wraps ErrEmptyFolder if it must be replaced, or another one while it waits for
// answers of its peers. Any goroutine.
func (n *Node) Admission() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.admission
}

// answerProbe says what this node has; ok is false while it cannot know.
func (n *Node) answerProbe(q *probeQuestion) (a probeAnswer, ok bool) {
	entries := logStore{n.log}
	used, err := raft.HasExistingState(entries, entries, n.snapshots)
	if err != nil {
		return a, false
	}
	a = probeAnswer{hasLog: used, reads: MaxFormat, format: n.Format()}
	if a.birth, err = n.birth(!used); err != nil || !used {
		return a, err == nil
	}
	r, err := n.running()
	if err != nil {
		return a, false
	}
	a.term, a.last = r.CurrentTerm(), r.LastIndex()
	c := r.GetConfiguration()
	if c.Error() != nil {
		return a, false
	}
	for _, s := range c.Configuration().Servers {
		a.voter = a.voter || string(s.ID) == q.id && s.Suffrage == raft.Voter
	}
	founders, err := n.founders()
	if err != nil {
		return a, false
	}
	b, found := founders[q.id]
	a.founder = found && b == q.birth
	return a, true
}
