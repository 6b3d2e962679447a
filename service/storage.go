package service

import (
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
	"blockdesk/internal/atomicfile"
	"blockdesk/persist"
	"blockdesk/persist/fanout"
	"blockdesk/persist/kv"
	"blockdesk/service/task"
)

// Storage is where a service keeps its data: a journal and the stores that follow
// it. A single node has its own in its data folder. The leader of a group has those
// of its term (NewStorage).
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

	FIX, Desk, History, Settlement, Mirror Store

	// backupJournal copies the journal into a folder; nil: that is not possible.
	backupJournal func(target string, progress func(done, total uint64)) error

	// parts run for as long as anything writes; close comes after them.
	parts []task.Task
	close func() error
}

// NewStorage returns a storage whose stores are what open returns for their names
// and whose lifetime is the caller's. The other fields are the caller's to set.
func NewStorage(open func(name string) Store) *Storage {
	g := &Storage{close: func() error { return nil }}
	for _, s := range g.stores() {
		*s.into = open(s.folder)
	}
	return g
}

// Journal is what a service needs of its journal: persist.Store, or the term of a
// group's leader.
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
	// Failed returns why nothing is stored any more; nil if it is.
	Failed() error
}

// namedStore is a field of Storage with the name of its folder, or of its replicated
// store, and its name in errors.
type namedStore struct {
	folder, name string
	into         *Store
}

// stores returns all of them.
func (g *Storage) stores() []namedStore {
	return []namedStore{
		{FIXFolder, "fix store", &g.FIX},
		{deskFolder, "desk store", &g.Desk},
		{historyFolder, "history store", &g.History},
		{settleFolder, "settlement store", &g.Settlement},
		{mirrorFolder, "mirror store", &g.Mirror},
	}
}

// Folders of the data folder. Those of stores are also the names of replicated
// ones.
const (
	JournalFolder = "journal"
	FIXFolder     = "fix"
	deskFolder    = "desk"
	historyFolder = "history"
	settleFolder  = "settle"
	mirrorFolder  = "mirror"
)

// openStorage opens the journal and the stores in a node's own data folder, or
// makes them.
func openStorage(dir string, o persist.Options, log *slog.Logger) (*Storage, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	g := &Storage{Files: folderFiles(dir), close: func() error { return nil }}
	if err := g.openStores(dir, log, g.stores()); err != nil {
		return nil, err
	}
	o.Dir = filepath.Join(dir, JournalFolder)
	journal, err := persist.Open(o)
	if err != nil {
		return nil, errors.Join(err, g.close())
	}
	closeStores := g.close
	g.close = func() error { return errors.Join(journal.Close(), closeStores()) }
	g.Journal, g.backupJournal = journal, journal.Backup
	g.parts = append([]task.Task{{Name: "journal", Run: journal.Run}}, g.parts...)
	return g, nil
}

// openViews returns the storage of a replica, which has no journal. Its stores are
// made anew in dir, because what they have follows from the snapshot that the replica
// begins with; only the FIX store outlives it.
func openViews(dir string, fix Store, log *slog.Logger) (*Storage, error) {
	views := filepath.Join(dir, viewsFolder)
	if err := os.RemoveAll(views); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(views, 0o700); err != nil {
		return nil, err
	}
	g := &Storage{FIX: fix, Files: folderFiles(dir), close: func() error { return nil }}
	err := g.openStores(views, log, []namedStore{{deskFolder, "desk store", &g.Desk}, {historyFolder, "history store", &g.History}})
	if err != nil {
		return nil, err
	}
	return g, nil
}

// viewsFolder has a replica's stores.
const viewsFolder = "views"

// openStores opens stores below dir. After an error none is open.
func (g *Storage) openStores(dir string, log *slog.Logger, stores []namedStore) error {
	for _, s := range stores {
		opened, err := persist.OpenKV(filepath.Join(dir, s.folder), nil, log)
		if err != nil {
			return errors.Join(fmt.Errorf("%s: %w", s.name, err), g.close())
		}
		before := g.close
		g.close = func() error { return errors.Join(before(), opened.Close()) }
		g.parts = append(g.parts, task.Task{Name: s.name, Run: opened.Run})
		*s.into = opened
	}
	return nil
}

// Notes are small texts that a service writes for its next start.
type StateFiles interface {
	// Read returns an error that is fs.ErrNotExist if there is no such note.
	Read(name string) ([]byte, error)
	// Write replaces a note whole, or leaves it as it was.
	Write(name string, text []byte) error
	// Place says for a person where a note is.
	Location(name string) string
}

// folderFiles are files.
type folderFiles string

func (f folderFiles) Location(name string) string      { return filepath.Join(string(f), name) }
func (f folderFiles) Read(name string) ([]byte, error) { return os.ReadFile(f.Location(name)) }
func (f folderFiles) Write(name string, text []byte) error {
	return atomicfile.Write(f.Location(name), text)
}

// StoreFiles returns the notes that are entries of a store, by their names.
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
