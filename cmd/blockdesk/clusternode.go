package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"blockdesk/engine"
	"blockdesk/fixgw"
	"blockdesk/httpgw"
	"blockdesk/httpgw/admin"
	"blockdesk/persist/quorum"
	"blockdesk/service/config"
)

// handOver is how long a node that is to stop waits for another one to lead.
const handOver = 2 * time.Second

// deposedGrace is what requests under way have when a term is over: whatever they ask
// of the engine is answered by then, and a client that is slow must not keep the node
// from its next term.
const deposedGrace = 250 * time.Millisecond

// clusterNode is a process of a group: its node takes part in the quorum for as long as
// it runs; the service stands on the node's terms, one after the other, and while
// another node leads the standby tells clients where that is.
type clusterNode struct {
	cfg     *config.Config
	machine machine
	log     *slog.Logger
	asJSON  bool
	out     io.Writer

	node    *quorum.Node
	lent    lender
	program program
	spares  fixgw.Spares            // FIX sessions of the services to come
	early   *fixgw.Early            // the next service's FIX sessions
	service atomic.Pointer[service] // of this node's term; nil: it does not lead
	config  *configWatch

	operators []admin.Operator // who may change the group
	// participants are the last list that was taken: a file that is refused now must
	// not end one leader after the other.
	participants []fixgw.Participant
	started      time.Time
}

func (m *clusterNode) serve(ctx context.Context) (err error) {
	m.started = time.Now()
	options, err := m.cfg.QuorumOptions(m.log)
	if err != nil {
		return err
	}
	if m.machine.disk != nil {
		m.machine.disk(&options)
	}
	if m.program, err = readProgram(m.log); err != nil {
		return err
	}
	options.DiskLow = func(low bool) {
		if s := m.service.Load(); s != nil {
			s.diskLow(low)
		}
	}
	if m.node, err = quorum.Open(options); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.lent.close(), m.node.Close()) }()
	if m.operators, err = plainOperators(m.cfg); err != nil {
		return err
	}
	if m.participants, err = loadParticipants(m.cfg); err != nil {
		return err
	}
	m.config = newConfigWatch(m.cfg, m.participants, m.log)
	if err := m.lent.bindAll(&m.cfg.Listen); err != nil {
		return err
	}
	what := "node " + m.cfg.Cluster.ID + " of a group, for the others at " + m.node.Addr()
	if err := announceLent(m.cfg, m.out, m.asJSON, what, "while it leads"); err != nil {
		return err
	}
	// The node outlives the service, which needs it for its last words.
	nodeCtx, stopNode := context.WithCancel(context.WithoutCancel(ctx))
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return named("node", m.node.Run(nodeCtx)) })
	group.Go(func() error { return newNotifier(m.stats, m.log).Run(ctx) })
	group.Go(func() error { return m.config.Run(ctx) })
	group.Go(func() error {
		defer stopNode()
		return m.turns(ctx)
	})
	err = group.Wait()
	m.spares.Close()
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return err
}

// stats are the engine's; zero while this node does not lead.
func (m *clusterNode) stats() engine.Stats {
	if s := m.service.Load(); s != nil {
		return s.eng.Stats()
	}
	return engine.Stats{}
}

// turns is standby and service by turns, until ctx ends.
func (m *clusterNode) turns(ctx context.Context) error {
	for {
		if err := m.turn(ctx); err != nil || ctx.Err() != nil {
			return err
		}
	}
}

func (m *clusterNode) turn(ctx context.Context) (err error) {
	if m.early, err = earlySessions(m.cfg, &m.spares, m.participants, m.log); err != nil {
		return err
	}
	defer m.early.Close()
	term, err := m.follow(ctx)
	if err != nil {
		return err
	}
	return m.lead(ctx, term)
}

// follow has the standby hold the addresses until this node leads.
func (m *clusterNode) follow(ctx context.Context) (term *quorum.Term, err error) {
	s := &standby{cfg: m.cfg, log: m.log, listen: m.lent.listen, leader: m.leader, admin: m.standbyAdmin()}
	err = s.while(ctx, func(ctx context.Context) error {
		term, err = m.node.Leads(ctx)
		return err
	})
	return term, err
}

// leader is who leads, as far as this node knows.
// It is never this one: who is told of it by this node's standby, or by a service
// that ends, would come back to it before it serves.
func (m *clusterNode) leader() httpgw.Leader {
	id := m.node.Leader().ID
	if id == m.cfg.Cluster.ID {
		return httpgw.Leader{}
	}
	return leaderOf(m.cfg, id)
}

// standbyAdmin is the admin address of a node that does not lead.
func (m *clusterNode) standbyAdmin() admin.Options {
	return admin.Options{
		Addr: m.cfg.Listen.Admin, Listen: m.lent.listen, Logger: m.log,
		Operate: &admin.Operations{Operators: m.operators, Cluster: clusterDoor{m}},
		Live:    m.node.Failed,
		Ready: []admin.Check{
			{Name: "node", Err: m.node.Failed},
			{Name: "leader", Err: func() error {
				if id := m.node.Leader().ID; id != "" {
					return fmt.Errorf("%s leads", id)
				}
				return errors.New("nobody leads, as far as this node knows")
			}},
		},
		Collectors: m.standbyCollectors(),
	}
}

// lead runs the service on a term, until that ends or ctx does. An error means
// that this node cannot serve, whoever leads then.
func (m *clusterNode) lead(ctx context.Context, term *quorum.Term) error {
	began := time.Now()
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	var watch errgroup.Group
	watch.Go(func() error {
		select {
		case <-term.Done():
		case <-serving.Done():
		case <-ctx.Done(): // whoever stops a leader wants the others to go on at once
			m.handOver(term)
		}
		stop()
		return nil
	})
	err := m.stand(serving, term, began)
	stop()
	err = errors.Join(err, watch.Wait())
	switch over := term.Err(); {
	case over != nil: // and with it whatever the service failed of
		m.log.Info("the term is over", "term", term.Number, "leader", m.node.Leader().ID, "reason", over, "error", err)
		err = nil
	case err != nil:
		m.log.Error("this node leads and cannot serve", "error", err)
		err = errors.Join(err, m.node.Transfer())
	}
	return err
}

// stand builds the service on a term and runs it until ctx ends.
func (m *clusterNode) stand(ctx context.Context, term *quorum.Term, began time.Time) (err error) {
	s := &service{cfg: m.cfg, log: m.log, listenOn: m.lent.listen, early: m.early, ground: m.termGround(term), program: m.program, clock: m.machine.clock, participantsBefore: m.participants}
	defer func() {
		m.service.Store(nil)
		err = errors.Join(err, s.close())
	}()
	if err := s.open(ctx); err != nil {
		return err
	}
	m.participants = s.participants
	if err := s.listen(); err != nil {
		return err
	}
	m.service.Store(s)
	s.diskLow(term.Health().DiskLow) // of which the node tells changes only
	m.log.Info("leads", "term", term.Number, "ready_ms", time.Since(began).Milliseconds())
	return s.run(ctx)
}

// handOver makes another node the leader, where one can be.
func (m *clusterNode) handOver(term *quorum.Term) {
	if err := m.node.Transfer(); err != nil {
		m.log.Warn("no other node takes the lead", "error", err)
		return
	}
	select {
	case <-term.Done():
	case <-time.After(handOver):
	}
}

// termGround is a term as what a service stands on.
func (m *clusterNode) termGround(term *quorum.Term) *ground {
	g := &ground{
		journal: termJournal{term}, groupTerm: term.Number, group: m.collectors(), cluster: clusterDoor{m},
		notes: storeNotes{term.Store("notes")}, close: func() error { return nil },
		reign: &reign{leader: m.leader, over: func() bool { return term.Err() != nil }, confirmed: term.Verify},
	}
	for _, s := range g.stores() {
		*s.into = term.Store(s.folder)
	}
	return g
}

// termJournal is a term as a service's journal.
type termJournal struct{ *quorum.Term }

// SetFloor has nothing to hold back: quorum.Options.TailEvents says what a new
// leader's gateways may be behind.
func (termJournal) SetFloor(func() uint64) {}
