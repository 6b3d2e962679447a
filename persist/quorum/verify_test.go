package quorum

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/hashicorp/raft"

	"blockdesk/engine"
	"blockdesk/persist"
	"blockdesk/persist/journaltest"
)

// TestVerify: the state of three stopped nodes is that of an undisturbed run, with the
// whole log and from a snapshot on; an entry that does not follow, or a folder without
// a log, is an error.
func TestVerify(t *testing.T) {
	for _, every := range []uint64{0, 100} {
		t.Run(fmt.Sprintf("snapshots every %d entries", every), func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 3, func(o *Options) { o.SnapshotEvery, o.TrailingEntries = every, every/2 })
			ref := journaltest.NewReference(journaltest.Commands(600, 3))
			_, term := c.lead()
			w := newWriter(t, term)
			for at := 0; at < len(ref.Commands); at += 2 {
				if err := w.append(ref.Commands[at : at+2]); err != nil {
					t.Fatal(err)
				}
			}
			c.agree(ref)
			if every > 0 {
				snapshots(t, c)
			}
			for id, m := range c.members {
				if err := c.stop(id); err != nil {
					t.Fatal(err)
				}
				var seen []engine.Command
				rep, err := Verify(VerifyOptions{ToolOptions: verifying(m), Frame: func(_, _ uint64, commands []engine.Command) error {
					seen = append(seen, commands...)
					return nil
				}})
				if err != nil {
					t.Fatalf("%s: %v", id, err)
				}
				if rep.StateHash != w.replica.State.Hash() || rep.Digest != w.replica.Digest || rep.Seq != uint64(len(ref.Commands)) ||
					rep.Base+rep.Commands != rep.Seq || len(rep.Snapshots) == 0 != (every == 0) {
					t.Errorf("%s: %+v", id, rep)
				}
				half := VerifyOptions{ToolOptions: verifying(m), To: rep.Base + rep.Commands/2} // frames are of two
				if rep, err := Verify(half); err != nil || rep.Seq != half.To && rep.Seq != half.To+1 {
					t.Errorf("%s: up to seq %d: %+v %v", id, half.To, rep, err)
				}
				if !slices.Equal(seen, ref.Commands[rep.Base:]) {
					t.Errorf("%s: shows other commands than were appended", id)
				}
			}
		})
	}
}

func verifying(m *member) persist.ToolOptions {
	return persist.ToolOptions{Dir: m.o.Dir, FS: m.disk, State: m.o.State, Logger: quiet()}
}

// snapshots makes each node take a snapshot and drop the log before it.
func snapshots(t *testing.T, c *cluster) {
	t.Helper()
	for id, m := range c.members {
		r, err := m.node.running()
		if err == nil {
			err = r.Snapshot().Error()
		}
		if err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		if first, _ := m.node.log.Bounds(); first <= 1 {
			t.Fatalf("%s: the log still begins at entry %d", id, first)
		}
	}
}

func TestVerifyFindsDamage(t *testing.T) {
	var damage *persist.DamageError
	build := func(change func(*persist.EntryLog, *engine.Replica) error) *member {
		c := newCluster(t, 1, nil)
		ref := journaltest.NewReference(journaltest.Commands(100, 4))
		id, term := c.lead()
		w := newWriter(t, term)
		if err := w.append(ref.Commands); err != nil {
			t.Fatal(err)
		}
		if err := c.stop(id); err != nil {
			t.Fatal(err)
		}
		m := c.members[id]
		log, err := persist.OpenEntryLog(persist.EntryLogOptions{
			Dir: m.o.path(logFolder), FS: m.disk, MemTableBytes: 1 << 20, SpareLogs: -1, Logger: quiet(),
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(change(log, w.replica), log.Close()); err != nil {
			t.Fatal(err)
		}
		return m
	}
	add := func(log *persist.EntryLog, data []byte) error {
		_, last := log.Bounds()
		entry := raft.Log{Index: last + 1, Term: 1, Type: raft.LogCommand, Data: data}
		for i := last; i > 0 && len(entry.Extensions) == 0; i-- { // the start of the current term
			var l raft.Log
			if err := (logStore{log}).GetLog(i, &l); err != nil {
				return err
			}
			if tag, err := decodeTag(l.Extensions); err == nil && tag.kind == frameKind {
				entry.Extensions = l.Extensions
			}
		}
		return logStore{log}.StoreLog(&entry)
	}
	for name, change := range map[string]func(*persist.EntryLog, *engine.Replica) error{
		"the first entries are gone": func(log *persist.EntryLog, _ *engine.Replica) error { return log.DeleteRange(1, 2) },
		"an entry is no frame":       func(log *persist.EntryLog, _ *engine.Replica) error { return add(log, []byte("BDFJ?")) },
	} {
		m := build(change)
		if rep, err := Verify(VerifyOptions{ToolOptions: verifying(m)}); !errors.As(err, &damage) {
			t.Errorf("%s: %+v %v", name, rep, err)
		}
	}
	m := build(func(*persist.EntryLog, *engine.Replica) error { return nil })
	stop := errors.New("stop")
	if _, err := Verify(VerifyOptions{ToolOptions: verifying(m), Frame: func(uint64, uint64, []engine.Command) error { return stop }}); !errors.Is(err, stop) {
		t.Errorf("a callback's error: %v", err)
	}
	o := verifying(m)
	o.Dir = t.TempDir()
	if _, err := Verify(VerifyOptions{ToolOptions: o}); !errors.Is(err, persist.ErrNoStore) {
		t.Errorf("an empty folder: %v", err)
	}
}
