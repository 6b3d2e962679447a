package quorum

import (
	"errors"
	"testing"

	"blockdesk/engine"
	"blockdesk/engine/book"
	"blockdesk/internal/await"
	"blockdesk/persist/journaltest"
)

// TestFormatOfNewGroup: a new group writes the newest format, and keeps it in its snapshots.
func TestFormatOfNewGroup(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	_, term := c.lead()
	if term.Format() != MaxFormat {
		t.Fatalf("format %d", term.Format())
	}
	for id, m := range c.members {
		await.True(t, id+" has it too", func() bool { return m.node.Format() == MaxFormat })
	}
	h := header{format: MaxFormat}
	if back, err := decodeHeader(h.encode()); err != nil || back.format != MaxFormat {
		t.Errorf("header %+v: %v", back, err)
	}
	h.format = MaxFormat + 1
	if _, err := decodeHeader(h.encode()); !errors.Is(err, ErrFormat) {
		t.Errorf("header of another program: %v", err)
	}
	h.format = firstFormat
	if p := h.encode(); p[4] != snapshotVersion {
		t.Errorf("version %d: 0.1.0 cannot read it", p[4])
	}
}

// TestFinalize: a group of an older program writes what that one reads; Finalize raises the
// format once all members read it.
func TestFinalize(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	id, term := c.lead()
	n := c.members[id].node
	for _, m := range c.members {
		m.node.machine.format.store(firstFormat) // as 0.1.0 has begun it
	}
	term.format = firstFormat
	ref := journaltest.NewReference(journaltest.Commands(40, 1))
	w := newWriter(t, term)
	if err := w.append(ref.Commands[:20]); err != nil {
		t.Fatal(err)
	}
	silent := ""
	for other := range c.members {
		if other != id {
			silent = other
		}
	}
	c.isolate(silent, true)
	if err := n.Finalize(); !errors.Is(err, ErrOldMember) || n.Format() != firstFormat {
		t.Errorf("with a member away: %v, format %d", err, n.Format())
	}
	c.isolate(silent, false)
	if err := n.Finalize(); err != nil {
		t.Fatal(err)
	}
	for other, m := range c.members {
		await.True(t, other+" has the format", func() bool { return m.node.Format() == MaxFormat })
		if other != id {
			if err := m.node.Finalize(); err != nil {
				t.Errorf("again, on %s: %v", other, err)
			}
		}
	}
	if err := w.append(ref.Commands[20:]); err != nil {
		t.Error(err)
	}
}

// TestFormatHeld: a command that an older member cannot read ends the term before it is
// written.
func TestFormatHeld(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, nil)
	_, term := c.lead()
	term.format = firstFormat
	newer := engine.Command{Seq: 1, At: 1, Kind: engine.NewOrder, Order: book.Order{Flags: book.FlagTerms}}
	if err := term.Append(0, []engine.Command{newer}, nil); !errors.Is(err, ErrOldMember) || !errors.Is(err, ErrDeposed) {
		t.Errorf("%v", err)
	}
	if s := c.members["n1"].node.Counts(); s.Frames != 0 {
		t.Errorf("%d frames", s.Frames)
	}
}

// TestUnknownFormat: a node stops at a format that it does not know, and applies nothing of it.
func TestUnknownFormat(t *testing.T) {
	t.Parallel()
	m := &machine{}
	if err := m.applyFormat([]byte{MaxFormat + 1, 0}); !errors.Is(err, ErrFormat) || m.format.load() != firstFormat {
		t.Errorf("%v", err)
	}
	if err := m.applyFormat([]byte{MaxFormat}); !errors.Is(err, errEntry) {
		t.Errorf("%v", err)
	}
}
