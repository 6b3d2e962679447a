package quorum

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/raft"

	"blockdesk/engine"
	"blockdesk/persist"
)

// ErrNoBackup says that a folder has no backup of a group.
var ErrNoBackup = errors.New("the folder has no backup of a group")

const (
	// backupCatchUp bounds how long a backup waits for what the leader had at its begin.
	backupCatchUp = 30 * time.Second
	backupPause   = 50 * time.Millisecond
)

// Backup writes the node's folder as of one applied entry into an empty or missing folder
// on the disk, and verifies it: raft's snapshot with the frames' state and all stores, and
// an empty log. The node goes on, in any role: a standby first applies all that its leader's
// log has. Any goroutine. After an error the folder may have files, but no snapshot.
func (n *Node) Backup(dir string) error {
	r, err := n.running()
	if err != nil {
		return err
	}
	meta, content, err := n.snapshotNow(r)
	if err != nil {
		return err
	}
	copied := writeFolder(dir, meta, meta.Configuration, content, n.o.Logger)
	if err := errors.Join(copied, content.Close()); err != nil {
		return err
	}
	_, err = Verify(VerifyOptions{ToolOptions: persist.ToolOptions{Dir: dir, State: n.o.State, Logger: n.o.Logger}})
	return err
}

// snapshotNow takes a snapshot with all that the leader's log has. Without a leader nothing
// is acknowledged, and it has what this node has applied.
func (n *Node) snapshotNow(r *raft.Raft) (*raft.SnapshotMeta, io.ReadCloser, error) {
	last := uint64(0)
	if address, _ := r.LeaderWithID(); r.State() != raft.Leader && address != "" {
		leader, err := n.probe(string(address), &probeQuestion{id: n.o.ID})
		if err != nil {
			return nil, nil, fmt.Errorf("asking the leader where its log ends: %w", err)
		}
		last = leader.last
	}
	for end := time.Now().Add(backupCatchUp); ; time.Sleep(backupPause) {
		if r.AppliedIndex() < last && time.Now().Before(end) {
			continue
		}
		taken := r.Snapshot()
		if err := taken.Error(); err != nil {
			return nil, nil, fmt.Errorf("taking a snapshot: %w", err)
		}
		meta, content, err := taken.Open()
		if err != nil {
			return nil, nil, fmt.Errorf("reading the snapshot: %w", err)
		}
		whole, err := n.hasAll(r, meta.Index, last)
		if whole {
			return meta, content, nil
		}
		if err = errors.Join(err, content.Close()); err != nil || time.Now().After(end) {
			return nil, nil, errors.Join(err, fmt.Errorf("%w: it has applied entry %d, the leader's log ends at %d", ErrNotReady, meta.Index, last))
		}
	}
}

// hasAll reports whether a snapshot of entry index lacks nothing up to entry last: raft's
// machine may be a moment behind AppliedIndex, and does not see a leader's empty entries.
func (n *Node) hasAll(r *raft.Raft, index, last uint64) (bool, error) {
	if r.AppliedIndex() < last {
		return false, nil
	}
	for i := index + 1; i <= last; i++ {
		var entry raft.Log
		if err := (logStore{n.log}).GetLog(i, &entry); err != nil {
			return false, err
		}
		if entry.Type == raft.LogCommand {
			return false, nil
		}
	}
	return true, nil
}

// RestoreOptions are the options of Restore.
type RestoreOptions struct {
	From, To string // folders; To is empty or missing
	// Peers are the voters of the restored group. They may differ from those that the
	// backup was made in, also in number.
	Peers  []Peer
	State  engine.StateOptions
	Logger *slog.Logger
}

// Restore writes the folder of one node of a group that begins with a backup's state, and
// verifies it. Every node of the group must get the same backup, and no node may have a
// later log. Errors: ErrNoBackup, persist.ErrNotEmpty, *persist.DamageError.
func Restore(o RestoreOptions) error {
	o.Logger = cmp.Or(o.Logger, slog.Default())
	if list, err := os.ReadDir(o.To); err == nil && len(list) > 0 {
		return fmt.Errorf("%w: %s", persist.ErrNotEmpty, o.To)
	}
	path := filepath.Join(o.From, logFolder)
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("%w: %w", ErrNoBackup, err)
	}
	store, err := raft.NewFileSnapshotStoreWithLogger(path, 1, newRaftLog(o.Logger))
	if err != nil {
		return err
	}
	list, err := store.List()
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return fmt.Errorf("%w: %s has no snapshot", ErrNoBackup, path)
	}
	meta, content, err := store.Open(list[0].ID) // which verifies raft's checksum
	if err != nil {
		return &persist.DamageError{Dir: o.From, Where: path, Err: err, Advice: "use another backup"}
	}
	var group raft.Configuration
	for _, p := range o.Peers {
		group.Servers = append(group.Servers, raft.Server{ID: raft.ServerID(p.ID), Address: raft.ServerAddress(p.Address)})
	}
	if err := errors.Join(writeFolder(o.To, meta, group, content, o.Logger), content.Close()); err != nil {
		return err
	}
	_, err = Verify(VerifyOptions{ToolOptions: persist.ToolOptions{Dir: o.To, State: o.State, Logger: o.Logger}})
	return err
}

// writeFolder writes a node's folder that has a snapshot and an empty log. The snapshot
// comes last: without it the folder is that of a node without a log.
func writeFolder(dir string, meta *raft.SnapshotMeta, members raft.Configuration, content io.Reader, log *slog.Logger) error {
	path := filepath.Join(dir, logFolder)
	entries, err := persist.OpenEntryLog(persist.EntryLogOptions{Dir: path, SpareLogs: -1, Logger: log, Advice: DamageAdvice})
	if err != nil {
		return err
	}
	// Raft begins elections above this term.
	err = logStore{entries}.SetUint64([]byte("CurrentTerm"), meta.Term)
	if err := errors.Join(err, entries.Close()); err != nil {
		return err
	}
	store, err := raft.NewFileSnapshotStoreWithLogger(path, 1, newRaftLog(log))
	if err != nil {
		return err
	}
	_, addresses := raft.NewInmemTransport("") // only encodes addresses, for old versions of raft
	sink, err := store.Create(meta.Version, meta.Index, meta.Term, members, meta.ConfigurationIndex, addresses)
	if err != nil {
		return err
	}
	if _, err := io.Copy(sink, content); err != nil {
		return errors.Join(fmt.Errorf("copying the snapshot: %w", err), sink.Cancel())
	}
	return sink.Close()
}
