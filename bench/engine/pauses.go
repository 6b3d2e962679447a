package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"blockdesk/bench"
	"blockdesk/bench/flow"
	"blockdesk/engine"
	"blockdesk/engine/book"
	"blockdesk/market"
)

const (
	// pauseOrders is how many orders end at once.
	pauseOrders = 100_000
	// pauseRate is the commands a second beside, pauseCommands their number.
	pauseRate     = 20_000
	pauseCommands = 40_000
	// pauseGoal is how many µs longer p99.9 may be than without the disturbance.
	pauseGoal = 100
)

// pauseOwner is the participant of those orders; the mix does not have it.
const pauseOwner market.ParticipantID = 1000

// disturbance is what happens in the middle of a run.
type disturbance struct {
	name    string
	act     engine.Command // in place of the middle command
	expires bool           // the orders expire when the clock jumps, in the middle
}

// pauses measures how long commands wait while 100,000 orders of one participant end at
// once, beside a run where nothing happens.
func pauses(ctx context.Context, r *bench.Report) error {
	tick := engine.Command{Kind: engine.Tick}
	cancel := engine.Command{Kind: engine.MassCancel, Order: book.Order{Participant: pauseOwner}}
	quiet := int64(0)
	for _, d := range []disturbance{
		{name: "nothing", act: tick},
		{name: "a mass cancel of 100,000 orders", act: cancel},
		{name: "100,000 orders that expire at once", act: tick, expires: true},
	} {
		s, err := pause(ctx, r, d)
		if err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
		if quiet == 0 {
			quiet = s.Summary.P999
			continue
		}
		r.Ratios = append(r.Ratios, bench.Ratio{
			Name:  "µs of p99.9 above the quiet run: " + d.name,
			Value: max(0, float64(s.Summary.P999-quiet)/1e3), Goal: pauseGoal, AtMost: true,
		})
	}
	r.Notes = append(r.Notes, fmt.Sprintf(
		"beside …: command to event over both rings without a journal, at %d/s for %d s; the disturbance comes once, in the middle",
		pauseRate, pauseCommands/pauseRate))
	return nil
}

// pause measures one run.
func pause(ctx context.Context, r *bench.Report, d disturbance) (_ *bench.Series, err error) {
	mix, err := flow.NewMix(flow.MixOptions{Seed: 6, References: true})
	if err != nil {
		return nil, err
	}
	replica, err := crowdedReplica(mix, d.expires, time.Now().Add(time.Hour))
	if err != nil {
		return nil, err
	}
	var jump atomic.Int64 // when the clock jumps by two hours; 0 = never
	eng, err := engine.New(engine.Options{IngressSize: 1 << 16, EgressSize: 1 << 18, Clock: func() int64 {
		now := time.Now().UnixNano()
		if at := jump.Load(); at != 0 && now >= at {
			now += int64(2 * time.Hour)
		}
		return now
	}}, replica)
	if err != nil {
		return nil, err
	}
	consumer := eng.Consumer("bench")
	run, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- eng.Run(run) }()
	commands := mix.Take(pauseCommands)
	commands[pauseCommands/2] = d.act
	for i := range commands {
		if commands[i].RefLen == 0 {
			commands[i].SetRef([]byte("tick"))
		}
	}
	Settled(eng)
	if d.expires {
		jump.Store(time.Now().Add(time.Second * pauseCommands / pauseRate / 2).UnixNano())
	}
	s, err := driveDurable(run, r, eng, consumer, commands, durableRunOptions{Name: "beside " + d.name, Rate: pauseRate, Referenced: true})
	stop()
	return s, errors.Join(err, <-ended)
}

// crowdedReplica returns the state after the mix's setup, with pauseOrders more, far from
// the market.
func crowdedReplica(mix *flow.Mix, expire bool, at time.Time) (*engine.Replica, error) {
	limits, err := engine.SetRiskCommand(pauseOwner, engine.AllInstruments, engine.Limits{
		MaxQty: market.MaxQty, MaxNotional: market.Uint128{Hi: 1 << 40}, MaxOpenOrders: pauseOrders, BandBps: engine.MaxBandBps,
	})
	if err != nil {
		return nil, err
	}
	commands := append(mix.Setup(), limits)
	for i := range pauseOrders {
		o := book.Order{
			ID: market.OrderID(1<<50 + i), Participant: pauseOwner, Side: market.Buy, Type: book.Limit, TIF: book.GTC,
			Price: market.Price(1 + i%1000), Qty: 1, STP: book.STPCancelNewest,
		}
		if expire {
			o.TIF, o.ExpireAt = book.GTD, at.UnixNano()
		}
		commands = append(commands, engine.Command{Kind: engine.NewOrder, Order: o})
	}
	replica := engine.NewReplica(engine.StateOptions{MaxOrders: 1 << 20})
	for i := range commands {
		commands[i].Seq, commands[i].At = uint64(i+1), 1
		replica.Apply(&commands[i], nil)
	}
	rest := 0
	replica.State.Orders(0, func(o book.LiveOrder) {
		if o.Participant == pauseOwner {
			rest++
		}
	})
	if rest != pauseOrders {
		return nil, fmt.Errorf("%d orders rest, want %d", rest, pauseOrders)
	}
	return replica, nil
}
