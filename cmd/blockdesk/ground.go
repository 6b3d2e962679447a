package main

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
)

// ground is what a service stands on: a journal and the stores that follow it. A
// single node has its own (openGround), a leader of a group those of its term.
type ground struct {
	journal journal
	// groupTerm is that of the group's leader; 0 on a single node. See service.term.
	groupTerm uint64
	notes     notes
	// group are the metrics of the group that the ground is of, and reign what its
	// gateways ask; nil: it is of none.
	group []prometheus.Collector
	reign *reign
	// cluster is its node's door for operators; nil on a single node.
	cluster admin.Cluster

	fixStore, deskStore, settleStore, historyStore, mirrorStore durableMap

	// backupJournal copies the journal into a folder; nil: that is not possible.
	backupJournal func(target string, progress func(done, total uint64)) error

	// parts have to run for as long as anybody writes; close comes after them.
	parts []part
	close func() error
}

// part is something that runs until its context ends.
type part struct {
	name string
	run  func(context.Context) error
}

// journal is what a service needs of its journal: persist.Store, or the term of
// a group's leader.
type journal interface {
	engine.Journal
	fanout.Journal
	Recover(floor uint64, visit func([]event.Event)) (*engine.Replica, error)
	// SetFloor says from which Seq on the journal's events are still needed.
	SetFloor(floor func() uint64)
	Health() persist.Health
	Stats() persist.Stats
}

// durableMap is a store of the service: persist.KV, or a replicated store.
type durableMap interface {
	kv.Store
	// Failed is why nothing is kept any more.
	Failed() error
}

// storeOf is a field of ground with the folder, or the replicated store, that is
// in it, and what people call it.
type storeOf struct {
	folder, name string
	into         *durableMap
}

// stores are all of them.
func (g *ground) stores() []storeOf {
	return []storeOf{
		{fixFolder, "fix store", &g.fixStore},
		{deskFolder, "desk store", &g.deskStore},
		{historyFolder, "history store", &g.historyStore},
		{settleFolder, "settlement store", &g.settleStore},
		{mirrorFolder, "mirror store", &g.mirrorStore},
	}
}

// Folders of the data folder. Those of stores are also the names of replicated
// ones.
const (
	journalFolder = "journal"
	fixFolder     = "fix"
	deskFolder    = "desk"
	historyFolder = "history"
	settleFolder  = "settle"
	mirrorFolder  = "mirror"
)

// openGround opens the journal and the stores in a node's own data folder, or
// makes them.
func openGround(dir string, o persist.Options, log *slog.Logger) (*ground, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	g := &ground{notes: folderNotes(dir)}
	var closers []func() error
	g.close = func() (err error) {
		for _, c := range closers {
			err = errors.Join(err, c())
		}
		return err
	}
	for _, s := range g.stores() {
		opened, err := persist.OpenKV(filepath.Join(dir, s.folder), nil, log)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", s.name, err), g.close())
		}
		closers = append(closers, opened.Close)
		g.parts = append(g.parts, part{s.name, opened.Run})
		*s.into = opened
	}
	o.Dir = filepath.Join(dir, journalFolder)
	journal, err := persist.Open(o)
	if err != nil {
		return nil, errors.Join(err, g.close())
	}
	closers = append([]func() error{journal.Close}, closers...)
	g.journal, g.backupJournal = journal, journal.Backup
	g.parts = append([]part{{"journal", journal.Run}}, g.parts...)
	return g, nil
}

// notes are small texts that a service writes for its next start.
type notes interface {
	// read returns an error that is fs.ErrNotExist where there is none.
	read(name string) ([]byte, error)
	// write replaces it whole, or leaves it as it was.
	write(name string, text []byte) error
	// where is what a person calls it.
	where(name string) string
}

// folderNotes are files.
type folderNotes string

func (f folderNotes) where(name string) string             { return filepath.Join(string(f), name) }
func (f folderNotes) read(name string) ([]byte, error)     { return os.ReadFile(f.where(name)) }
func (f folderNotes) write(name string, text []byte) error { return replaceFile(f.where(name), text) }

// storeNotes are entries of a store, by their names.
type storeNotes struct{ store durableMap }

func (s storeNotes) where(name string) string { return "the group's " + name }

func (s storeNotes) read(name string) ([]byte, error) {
	text, ok, err := s.store.Get([]byte(name))
	if err == nil && !ok {
		err = fs.ErrNotExist
	}
	return text, err
}

func (s storeNotes) write(name string, text []byte) error {
	return s.store.Commit(func(set func(key, value []byte), _ func(lo, hi []byte)) { set([]byte(name), text) }, true)
}
