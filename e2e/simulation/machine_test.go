//go:build feed_goroutines

package simulation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"blockdesk/engine"
	"blockdesk/engine/event"
	"blockdesk/persist"
	"blockdesk/service"
	"blockdesk/service/config"
	"blockdesk/service/program"
)

// machine has a disk and runs a process, life after life.
type machine struct {
	cfg     *config.Config
	program program.Program
	network *network
	disk    *vfs.MemFS
	log     *slog.Logger
	rng     *rand.Rand

	process *process
	lives   int
	old     sync.WaitGroup // processes that were killed and still unwind
}

// process is one life of the service.
type process struct {
	service *service.Service
	stop    context.CancelFunc
	ended   chan error
	disk    *disk
}

// close waits for the end of a process that was stopped.
func (p *process) close() error {
	err := errors.Join(<-p.ended, p.service.Close())
	p.disk.FS = nil // quickfix's goroutines that stay keep the rest
	return err
}

// start starts a process on the disk as it is. It waits for the processes before it, because
// quickfix has one register of sessions a program.
func (m *machine) start() error {
	m.old.Wait()
	in, err := service.ReadInputs(m.cfg, nil, m.log)
	if err != nil {
		return err
	}
	d := &disk{FS: m.disk, before: m.rng.IntN(2) == 0}
	ctx, stop := context.WithCancel(context.Background())
	s, err := service.Open(ctx, service.Options{
		Config: m.cfg, Log: m.log, Program: m.program, Inputs: in, FS: d,
		Listen: func(_, at string) (net.Listener, error) { return m.network.listen(at) },
	})
	if err != nil {
		stop()
		return err
	}
	m.lives++
	p := &process{service: s, stop: stop, ended: make(chan error, 1), disk: d}
	go func() { p.ended <- s.Run(ctx) }()
	m.process = p
	return nil
}

// end stops the process as SIGTERM does.
func (m *machine) end() error {
	p := m.process
	m.process = nil
	p.stop()
	return p.close()
}

// kill ends the process: in the middle of one of its next operations on the disk, or, if it
// does not do so many for a while, as it waits. After a power cut a part of what was not
// synced is lost, too.
func (m *machine) kill(powerCut bool) {
	survives := vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(m.rng.Uint64(), 0))}
	if powerCut {
		survives.UnsyncedDataPercent = m.rng.IntN(100)
	}
	p := m.process
	left := make(chan *vfs.MemFS, 1)
	var once sync.Once
	p.disk.crash = func() {
		once.Do(func() {
			// The network first: nothing of what comes later is seen.
			l := &m.cfg.Listen
			m.network.cut(l.Base, l.API, l.WS, l.FIX, l.Admin)
			left <- m.disk.CrashClone(survives)
		})
	}
	p.disk.left.Store(1 + m.rng.Int64N(500))
	select {
	case m.disk = <-left:
	case <-time.After(patience):
		p.disk.crash()
		m.disk = <-left
	}
	// The rest of it runs on, on a disk that is nobody's and without a network.
	m.process = nil
	m.old.Go(func() {
		p.stop()
		_ = p.close() // it may fail without its network
	})
}

// replay returns what the journal of the stopped machine has: all events, and the state.
func (m *machine) replay() (*engine.Replica, []event.Event, error) {
	journal, err := persist.Open(persist.Options{
		Dir: m.disk.PathJoin(m.cfg.DataDir, service.JournalFolder), FS: m.disk, KeepSnapshots: persist.MaxKeepSnapshots,
		State: m.cfg.StateOptions(), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, nil, err
	}
	var events []event.Event
	replica, err := journal.Recover(0, func(of []event.Event) { events = append(events, of...) })
	if err = errors.Join(err, journal.Close()); err != nil {
		return nil, nil, fmt.Errorf("replay: %w", err)
	}
	return replica, events, nil
}
