// Package cluster runs one node of a raft group, in one process.
//
// Open binds the addresses and starts the raft node, which runs until the process ends and
// outlives every service. While the node leads, Run serves its term: it opens a service on
// the term's journal, gives it the bound listeners, and waits for readiness. While another
// node leads, a standby (package standby) holds the same addresses and redirects clients to
// the leader.
//
// Invariants: at most one of service and standby uses the listeners; a service ends before
// the next term's begins; a leader that cannot serve transfers the leadership. A refused
// participants file does not end a term: the participants in force stay.
//
// A node reads its inputs (participants, operators) again at the start of each term, and
// compares its configuration with that of the other nodes every configEvery.
//
// Limits: transferTimeout bounds how long a stopping leader waits for a successor.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"blockdesk/engine"
	"blockdesk/fixgw/participants"
	"blockdesk/fixgw/session"
	"blockdesk/httpgw/admin"
	"blockdesk/persist/leadership"
	"blockdesk/persist/quorum"
	"blockdesk/service"
	"blockdesk/service/config"
	"blockdesk/service/program"
	"blockdesk/service/standby"
	"blockdesk/service/systemd"
	"blockdesk/service/task"
)

// transferTimeout is how long a stopping leader waits for another node to lead.
const transferTimeout = 2 * time.Second

// Options of a node.
type Options struct {
	Config *config.Config
	Log    *slog.Logger
	Inputs *service.Inputs // of the start; each term reads them again
	// Clock is the engine's, in Unix nanoseconds; nil: the machine's.
	Clock func() int64
	// Disk changes the options of the quorum, such as its file system; may be nil.
	Disk func(*quorum.Options)
}

// Node is a process of a group: Open, Run once, Close.
type Node struct {
	cfg   *config.Config
	log   *slog.Logger
	clock func() int64

	node    *quorum.Node
	pool    standby.Pool
	program program.Program
	spares  session.Pool                    // FIX sessions for later services
	early   *session.Prepared               // FIX sessions for the next service
	service atomic.Pointer[service.Service] // of this node's term; nil: it does not lead
	config  *configWatch

	operators []admin.Operator // who may change the group
	// participants were in force last: a refused file must not end one leader after the
	// other.
	participants []participants.Participant
	started      time.Time
}

// Open joins the group and binds the addresses; it sets the configuration to the bound
// addresses. Nothing is served yet. After an error nothing is open.
func Open(o Options) (*Node, error) {
	m := &Node{cfg: o.Config, log: o.Log, clock: o.Clock, participants: o.Inputs.Participants, started: time.Now()}
	if err := m.open(o.Disk); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

func (m *Node) open(disk func(*quorum.Options)) error {
	options, err := m.cfg.QuorumOptions(m.log)
	if err != nil {
		return err
	}
	if disk != nil {
		disk(&options)
	}
	if m.program, err = program.Read(m.log); err != nil {
		return err
	}
	options.DiskChanged = func(level quorum.DiskLevel) {
		if s := m.service.Load(); s != nil {
			s.DiskChanged(level)
		}
	}
	if m.node, err = quorum.Open(options); err != nil {
		return err
	}
	if m.operators, err = service.PlainOperators(m.cfg); err != nil {
		return err
	}
	m.config = newConfigWatch(m.cfg, m.participants, m.log)
	return m.pool.BindAll(&m.cfg.Listen)
}

// Addr returns the address for the other nodes.
func (m *Node) Addr() string { return m.node.Addr() }

// Close stops the raft node and unbinds the addresses. Call it after Run has returned, or
// without Run.
func (m *Node) Close() error {
	err := m.pool.Close()
	if m.node != nil {
		err = errors.Join(err, m.node.Close())
	}
	return err
}

// Run takes part in the group until ctx ends, and returns nil then, or until it fails.
func (m *Node) Run(ctx context.Context) error {
	// The raft node outlives the service, which needs it until its end.
	nodeCtx, stopNode := context.WithCancel(context.WithoutCancel(ctx))
	defer stopNode()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return task.Named("node", m.node.Run(nodeCtx)) })
	group.Go(func() error { return systemd.New(m.stats, m.log).Run(ctx) })
	group.Go(func() error { return m.config.Run(ctx) })
	group.Go(func() error {
		defer stopNode()
		return m.alternate(ctx)
	})
	err := group.Wait()
	m.spares.Close()
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return err
}

// stats returns the stats of the engine; zero while this node does not lead.
func (m *Node) stats() engine.Stats {
	if s := m.service.Load(); s != nil {
		return s.Stats()
	}
	return engine.Stats{}
}

// alternate is standby and leader in turn, until ctx ends.
func (m *Node) alternate(ctx context.Context) error {
	for {
		if err := m.standbyThenLead(ctx); err != nil || ctx.Err() != nil {
			return err
		}
	}
}

func (m *Node) standbyThenLead(ctx context.Context) (err error) {
	if m.early, err = m.prepareSessions(); err != nil {
		return err
	}
	defer m.early.Close()
	term, err := m.follow(ctx)
	if err != nil {
		return err
	}
	return m.lead(ctx, term)
}

// prepareSessions makes the FIX sessions of the next service.
func (m *Node) prepareSessions() (*session.Prepared, error) {
	participants, err := service.LoadParticipantsOr(m.cfg, m.participants, m.log)
	if err != nil {
		return nil, err
	}
	return m.spares.Next(session.Options{
		Address: m.cfg.Listen.FIX, CompID: m.cfg.FIX.CompID, Participants: participants, MaxSessions: m.cfg.FIX.MaxSessions, Logger: m.log,
	})
}

// follow runs the standby until this node leads.
func (m *Node) follow(ctx context.Context) (term *quorum.Term, err error) {
	o := standby.Options{Config: m.cfg, Log: m.log, Pool: &m.pool, Leader: m.leader, Admin: m.standbyAdmin()}
	err = standby.Serve(ctx, o, func(ctx context.Context) error {
		term, err = m.node.AwaitTerm(ctx)
		return err
	})
	return term, err
}

// leader returns the leader that this node knows; zero if it is this node, because clients
// that its standby or an ending service redirected here would return before it serves.
func (m *Node) leader() leadership.Leader {
	id := m.node.Leader().ID
	if id == m.cfg.Cluster.ID {
		return leadership.Leader{}
	}
	return service.LeaderOf(m.cfg, id)
}

// standbyAdmin returns the options of the admin address of a standby.
func (m *Node) standbyAdmin() admin.Options {
	return admin.Options{
		Addr: m.cfg.Listen.Admin, Listen: m.pool.Listen, Logger: m.log,
		Operate: &admin.Operations{Operators: m.operators, Cluster: groupAdmin{m}, Backup: m.backup},
		Live:    m.node.Failed,
		Ready: []admin.Check{
			{Name: "node", Err: m.node.Failed},
			{Name: "leader", Err: func() error {
				if id := m.node.Leader().ID; id != "" {
					return fmt.Errorf("%s leads", id)
				}
				return errors.New("no leader: a majority of the nodes is not reachable, or an election is in progress")
			}},
		},
		Collectors: m.standbyCollectors(),
	}
}

// lead runs the service of a term until the term or ctx ends. An error means that this
// node cannot serve.
func (m *Node) lead(ctx context.Context, term *quorum.Term) error {
	began := time.Now()
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	var watch errgroup.Group
	watch.Go(func() error {
		select {
		case <-term.Done():
		case <-serving.Done():
		case <-ctx.Done(): // so that another node leads at once
			m.handOver(term)
		}
		stop()
		return nil
	})
	err := m.serve(serving, term, began)
	stop()
	err = errors.Join(err, watch.Wait())
	switch over := term.Err(); {
	case over != nil: // which explains the error of the service
		m.log.Info("term ended", "term", term.Number, "leader", m.node.Leader().ID, "reason", over, "error", err)
		err = nil
	case err != nil:
		m.log.Error("leader cannot serve: transferring the leadership", "error", err)
		err = errors.Join(err, m.node.Transfer())
	}
	return err
}

// serve opens the service of a term and runs it until ctx ends.
func (m *Node) serve(ctx context.Context, term *quorum.Term, began time.Time) (err error) {
	in, err := service.ReadInputs(m.cfg, m.participants, m.log)
	if err != nil {
		return err
	}
	s, err := service.Open(ctx, service.Options{
		Config: m.cfg, Log: m.log, Program: m.program, Inputs: in, Storage: m.storage(term), Listen: m.pool.Listen, Clock: m.clock,
		Sessions: m.early,
	})
	if err != nil {
		return err
	}
	m.participants = in.Participants
	defer func() {
		m.service.Store(nil)
		err = errors.Join(err, s.Close())
	}()
	m.service.Store(s)
	s.DiskChanged(term.Health().Disk) // later the raft node reports changes
	m.log.Info("serving as leader", "term", term.Number, "ready_ms", time.Since(began).Milliseconds())
	return s.Run(ctx)
}

// handOver transfers the leadership, and waits until another node leads.
func (m *Node) handOver(term *quorum.Term) {
	if err := m.node.Transfer(); err != nil {
		m.log.Warn("leadership not transferred", "error", err)
		return
	}
	select {
	case <-term.Done():
	case <-time.After(transferTimeout):
	}
}

// storage returns the storage of a term.
func (m *Node) storage(term *quorum.Term) *service.Storage {
	g := service.NewStorage(func(name string) service.Store { return term.Store(name) })
	g.Journal, g.Term, g.Metrics, g.Cluster = termJournal{term}, term.Number, m.collectors(), groupAdmin{m}
	g.Sizes, g.BackupNode = m.node.DiskBytes, m.backupTo
	g.Format1 = term.Format() == engine.Format1
	g.Files = service.StoreFiles(term.Store("notes"))
	g.Leading = &service.Leading{Leader: m.leader, Deposed: func() bool { return term.Err() != nil }, Confirm: term.VerifyLeader}
	return g
}

// backup backs up this node while it stands by.
func (m *Node) backup(_ context.Context, target string) error {
	if m.node.Health().Disk >= quorum.DiskCritical {
		return admin.ErrBackupDisk
	}
	return m.backupTo(target)
}

// backupTo backs up this node into an empty or missing folder. A failed backup leaves an
// empty one.
func (m *Node) backupTo(target string) error {
	if err := service.MakeBackupFolder(target); err != nil {
		return err
	}
	folder := filepath.Join(target, config.QuorumFolder)
	if err := m.node.Backup(folder); err != nil {
		return errors.Join(err, os.RemoveAll(folder))
	}
	return nil
}

// termJournal implements service.Journal.
type termJournal struct{ *quorum.Term }

// SetFloor does nothing: quorum.Options.TailEvents bounds how far the stores of a new leader
// may be behind.
func (termJournal) SetFloor(func() uint64) {}
