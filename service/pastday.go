package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"blockdesk/engine"
	"blockdesk/engine/event"
	"blockdesk/fixgw/participants"
	"blockdesk/market"
	"blockdesk/persist"
	"blockdesk/service/demo"
)

// writeDemoHistory writes the journal of a new demo as if its bots had traded for the
// configured hours before now: an engine of its own, whose clock is simulated, matches their
// orders and journals them, so that the stores get trades and candles from the journal like
// all others. A demo that has a journal keeps it.
func writeDemoHistory(ctx context.Context, s *Service) error {
	if !s.cfg.Demo || s.cfg.DemoHistory == 0 {
		return nil
	}
	folder := filepath.Join(s.cfg.DataDir, JournalFolder)
	if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := s.resolveInstruments(); err != nil {
		return err
	}
	started := time.Now()
	o := s.journalOptions()
	// A sync for each of thousands of steps would take minutes; Close makes all durable.
	o.Dir, o.Mode, o.Interval, o.DiskChanged, o.Logger = folder, persist.Interval, time.Second, nil, slog.New(slog.DiscardHandler)
	journal, err := persist.Open(o)
	if err != nil {
		return err
	}
	trades, err := simulate(ctx, s, journal, started)
	if err = errors.Join(err, journal.Close()); err != nil {
		return fmt.Errorf("demo's history: %w", err)
	}
	s.log.Info("demo: history written in simulated time", "hours", s.cfg.DemoHistory, "orders_that_crossed", trades,
		"elapsed_ms", time.Since(started).Milliseconds())
	return nil
}

// simulate lets the bots trade until a time and returns the number of the taker's orders.
func simulate(ctx context.Context, s *Service, journal *persist.Store, until time.Time) (crossed int, err error) {
	replica, err := journal.Recover(0, nil)
	if err != nil {
		return 0, err
	}
	setup, err := configure(s.cfg, replica.State, s.instruments, s.o.Inputs.Participants)
	if err != nil {
		return 0, err
	}
	clock := &atomic.Int64{}
	at := until.Add(-time.Duration(s.cfg.DemoHistory) * time.Hour)
	clock.Store(at.UnixNano())
	eng, err := engine.Open(engine.Options{
		Journal: journal, MaxOrders: s.cfg.Engine.MaxOrders, DrainTimeout: drainTimeout, Clock: clock.Load,
	})
	if err != nil {
		return 0, err
	}
	events := eng.Consumer("demo's history")
	if err := eng.BeginEpoch(replica); err != nil {
		return 0, err
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	storing, stopStoring := context.WithCancel(context.WithoutCancel(ctx))
	var engines, stores errgroup.Group
	stores.Go(func() error { return journal.Run(storing) })
	engines.Go(func() error { return eng.Run(running) })
	crossed, err = simulateTrades(ctx, s, eng, events, setup, at, until, clock)
	events.Close()
	stop()
	err = errors.Join(err, engines.Wait())
	stopStoring()
	return crossed, errors.Join(err, stores.Wait())
}

// simulateTrades submits the bots' orders, a step of each instrument after the other, and moves the
// clock when the engine has matched them.
func simulateTrades(ctx context.Context, s *Service, eng *engine.Engine, events *engine.Consumer, setup []engine.Command, at, until time.Time, clock *atomic.Int64) (crossed int, err error) {
	if err := eng.SubmitAll(setup); err != nil {
		return 0, err
	}
	maker, taker := participantNumber(s, demo.Maker), participantNumber(s, demo.Taker)
	past := demo.NewSimulatedDay(s.instruments, maker, taker, eng.OrderIDs().Next)
	cancel := func(in market.InstrumentID) engine.Command {
		c := engine.Command{Kind: engine.MassCancel, Instrument: in}
		c.Order.Participant = maker
		return c
	}
	for ; past.Instruments() > 0 && at.Before(until.Add(-demo.SimulatedStep)); at = at.Add(demo.SimulatedStep) {
		for n := range past.Instruments() {
			clock.Store(at.Add(time.Duration(n) * demo.SimulatedStep / time.Duration(past.Instruments())).UnixNano())
			in, orders := past.Step(n)
			commands := []engine.Command{cancel(in)}
			for i := range orders {
				c := engine.Command{Kind: engine.NewOrder, Instrument: in, Order: orders[i].Order}
				c.SetRef([]byte(orders[i].Ref))
				commands = append(commands, c)
			}
			if err := eng.SubmitAll(commands); err != nil {
				return crossed, err
			}
			if err := awaitOrder(ctx, events, orders[len(orders)-1].ID); err != nil {
				return crossed, err
			}
			crossed++
		}
	}
	// The bots' sessions know nothing of these orders.
	return crossed, eng.SubmitAll([]engine.Command{cancel(engine.AllInstruments)})
}

// awaitOrder releases events until one of an order has come.
func awaitOrder(ctx context.Context, c *engine.Consumer, id market.OrderID) error {
	for {
		events, err := c.Next(ctx)
		if err != nil {
			return err
		}
		found := false
		for i := range events {
			found = found || events[i].Kind != event.Reference && events[i].OrderID == id
		}
		c.Release(len(events))
		if found {
			return nil
		}
	}
}

// participantNumber returns the number of a participant; 0 if there is none.
func participantNumber(s *Service, name string) market.ParticipantID {
	list := s.o.Inputs.Participants
	if i := slices.IndexFunc(list, func(p participants.Participant) bool { return p.Name == name }); i >= 0 {
		return list[i].Number
	}
	return 0
}
