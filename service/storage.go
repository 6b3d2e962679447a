package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"

	"blockdesk/engine"
	"blockdesk/engine/event"
	"blockdesk/httpgw/admin"
	"blockdesk/persist"
	"blockdesk/persist/fanout"
	"blockdesk/persist/kv"
	"blockdesk/service/task"
)

// Storage is the journal of a service, the stores that follow it, and its state files:
// those of a single node's data folder, or those of a leader's term (NewStorage).
type Storage struct {
	Journal Journal
	// Term is the term of the group's leader; 0 on a single node.
	Term  uint64
	Files StateFiles
	// Metrics are those of the group, Leading is the term that this node leads in,
	// and Cluster is the group's state for operators; nil on a single node.
	Metrics []prometheus.Collector
	Leading *Leading
	Cluster admin.Cluster
	// Sizes returns the bytes that the journal and the stores take on the disk, by name; nil:
	// unknown.
	Sizes func() map[string]uint64
	// Format1 says that the group's log has the format of release 0.1.0: an upgrade is not
	// finalized.
	Format1 bool

	FIX, Desk, History, Settlement, Mirror Store

	// BackupNode backs up a node of a group into a folder; nil on a single node.
	BackupNode func(target string) error
	// backupJournal copies a single node's journal into a folder.
	backupJournal func(target string, progress func(done, total uint64)) error

	// tasks run for as long as anything writes; close comes after them.
	tasks []task.Task
	close func() error
}

// NewStorage returns a storage of the stores that open returns for their names. The
// caller closes them, and sets the other fields.
func NewStorage(open func(name string) Store) *Storage {
	s := &Storage{close: func() error { return nil }}
	for _, store := range s.stores() {
		*store.into = open(store.folder)
	}
	return s
}

// Journal is the journal of a service: persist.Store, or the term of a group's leader.
type Journal interface {
	engine.Journal
	fanout.Journal
	Recover(floor uint64, visit func([]event.Event)) (*engine.Replica, error)
	// SetFloor sets the function that returns the Seq from which on the journal's
	// events are still needed.
	SetFloor(floor func() uint64)
	Health() persist.Health
	Stats() persist.Stats
}

// Store is a store of the service: persist.KV, or a replicated store.
type Store interface {
	kv.Store
	// Failed returns why the store no longer writes; nil while it writes.
	Failed() error
}

// namedStore is a store of Storage with the name of its folder, or of the replicated
// store, and its name in errors.
type namedStore struct {
	folder, name string
	into         *Store
}

// stores returns all stores.
func (s *Storage) stores() []namedStore {
	return []namedStore{
		{FIXFolder, "fix store", &s.FIX},
		{deskFolder, "desk store", &s.Desk},
		{historyFolder, "history store", &s.History},
		{settleFolder, "settlement store", &s.Settlement},
		{mirrorFolder, "mirror store", &s.Mirror},
	}
}

// Folders of the data folder. The names of stores are also those of replicated stores.
const (
	JournalFolder = "journal"
	FIXFolder     = "fix"
	deskFolder    = "desk"
	historyFolder = "history"
	settleFolder  = "settle"
	mirrorFolder  = "mirror"
)

// openStorage opens or makes the journal and the stores of a data folder.
func openStorage(dir string, o persist.Options, log *slog.Logger) (*Storage, error) {
	if err := persist.MakeDir(o.FS, dir, 0o700); err != nil {
		return nil, err
	}
	s := &Storage{Files: folderFiles{o.FS, dir}, close: func() error { return nil }}
	// The journal first: if it is refused, nothing else has been opened, and all is as it was.
	o.Dir = filepath.Join(dir, JournalFolder)
	journal, err := persist.Open(o)
	if err != nil {
		return nil, err
	}
	if err := s.openStores(o.FS, dir, log, s.stores()); err != nil {
		return nil, errors.Join(err, journal.Close())
	}
	closeStores := s.close
	s.close = func() error { return errors.Join(journal.Close(), closeStores()) }
	s.Journal, s.backupJournal = journal, journal.Backup
	s.Sizes = func() map[string]uint64 {
		sizes := map[string]uint64{JournalFolder: journal.DiskBytes()}
		for _, store := range s.stores() {
			sizes[store.folder] = (*store.into).(*persist.KV).DiskBytes() // openStores made it
		}
		return sizes
	}
	s.tasks = append([]task.Task{{Name: "journal", Run: journal.Run}}, s.tasks...)
	return s, nil
}

// openViews returns the storage of a replica, which has no journal. Its stores in dir are
// recreated, because they follow from the snapshot that the replica begins with; only
// the FIX store survives.
func openViews(dir string, fix Store, log *slog.Logger) (*Storage, error) {
	views := filepath.Join(dir, viewsFolder)
	if err := os.RemoveAll(views); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(views, 0o700); err != nil {
		return nil, err
	}
	s := &Storage{FIX: fix, Files: folderFiles{nil, dir}, close: func() error { return nil }}
	err := s.openStores(nil, views, log, []namedStore{{deskFolder, "desk store", &s.Desk}, {historyFolder, "history store", &s.History}})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// viewsFolder, in the data folder, has a replica's stores.
const viewsFolder = "views"

// openStores opens stores in dir. After an error none is open.
func (s *Storage) openStores(disk persist.FS, dir string, log *slog.Logger, stores []namedStore) error {
	for _, store := range stores {
		opened, err := persist.OpenKV(filepath.Join(dir, store.folder), disk, log)
		if err != nil {
			return errors.Join(fmt.Errorf("%s: %w", store.name, err), s.close())
		}
		before := s.close
		s.close = func() error { return errors.Join(before(), opened.Close()) }
		s.tasks = append(s.tasks, task.Task{Name: store.name, Run: opened.Run})
		*store.into = opened
	}
	return nil
}

// StateFiles are small files that a service writes for its next start.
type StateFiles interface {
	// Read returns fs.ErrNotExist if there is no such file.
	Read(name string) ([]byte, error)
	// Write replaces a file atomically.
	Write(name string, text []byte) error
	// Location returns where a file is, for messages to a person.
	Location(name string) string
}

// folderFiles are the files of a folder.
type folderFiles struct {
	fs  persist.FS // nil: the disk
	dir string
}

func (f folderFiles) Location(name string) string { return filepath.Join(f.dir, name) }

func (f folderFiles) Read(name string) ([]byte, error) {
	return persist.ReadFile(f.fs, f.Location(name))
}

func (f folderFiles) Write(name string, text []byte) error {
	return persist.ReplaceFile(f.fs, f.Location(name), text)
}

// StoreFiles returns state files that are entries of a store.
func StoreFiles(store Store) StateFiles { return storeFiles{store} }

type storeFiles struct{ store Store }

func (s storeFiles) Location(name string) string { return "the group's " + name }

func (s storeFiles) Read(name string) ([]byte, error) {
	text, ok, err := s.store.Get([]byte(name))
	if err == nil && !ok {
		err = fs.ErrNotExist
	}
	return text, err
}

func (s storeFiles) Write(name string, text []byte) error {
	return s.store.Commit(func(set func(key, value []byte), _ func(lo, hi []byte)) { set([]byte(name), text) }, true)
}

// awaitEndIfFailed returns err. If a task has ended because its store failed, as on a full disk,
// awaitEndIfFailed waits for ctx first: readers are served, and readiness reports the store.
func awaitEndIfFailed(ctx context.Context, log *slog.Logger, name string, err error) error {
	if errors.Is(err, persist.ErrFailed) && ctx.Err() == nil {
		log.Error("store failed: component stopped until a restart", "part", name, "error", err)
		<-ctx.Done()
	}
	return err
}
