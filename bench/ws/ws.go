// Package ws measures the feed: encoding, fan-out to many WebSocket clients and event
// streams, the memory of idle clients, the effect of stalled clients on the others, and
// the time from an order to its update.
//
// The feed runs in this process and its clients in another (package clients); for the last
// part the whole program runs. The yardstick of a delivery is a raw write(2) of as many
// bytes to as many connections, in alternating rounds. At most wsMostClients clients
// connect.
package ws

import (
	"context"
	"errors"
	"time"

	"blockdesk/bench"
	"blockdesk/bench/clients"
)

// Goals of the WebSocket benchmark.
const (
	goalDelivery    = 1.2      // × the CPU time of a raw write(2) of as many bytes
	goalBurst       = 0.2      // × a raw write(2), for each of ten that come at once
	goalLastP50     = 1.1      // × the last of as many raw writes
	goalLastP99     = 1.5      // the same
	goalIdle        = 10 << 10 // bytes a connection
	goalStalled     = 1.2      // × the p99 of a run without stalled clients
	goalSnapshot    = 0.05     // × encoding/json
	wsMostClients   = 20_000
	wsSendBuffer    = 32 << 10 // the feed's default
	wsBurst         = 10
	wsDefaultClient = 1000
	wsDefaultMany   = 5000
	wsDefaultRounds = 20
	wsDefaultHold   = 4 * time.Second
)

// Benchmark holds the options of the WebSocket benchmark.
type Benchmark struct {
	Exe string // the program; required
	Dir string // scratch folder; required
	// Clients of the fan-out; default 1,000.
	Clients int
	// Many is the number of clients whose memory is measured, and of the larger
	// run with stalled ones; default 5,000.
	Many int
	// Rounds that the feed and the raw writes take in turn; default 20.
	Rounds int
	// Hold is how long a run with stalled clients takes; default 4 s. They are
	// found in half of it; idle clients have a heartbeat each quarter.
	Hold time.Duration
	// Parts to run, by name; none = all.
	Parts []string
}

// wsBench is one run.
type wsBench struct {
	o       Benchmark
	report  *bench.Report
	clients *clients.Process
}

// Run measures the feed: what a delivery costs beside a raw write(2), what a
// client costs that does nothing or does not read, and how long an order takes
// to all clients of the whole program. The feed runs in this process, its
// clients in another.
func (o Benchmark) Run(ctx context.Context) (_ *bench.Report, err error) {
	for _, d := range []struct {
		value *int
		def   int
	}{{&o.Clients, wsDefaultClient}, {&o.Many, wsDefaultMany}, {&o.Rounds, wsDefaultRounds}} {
		if *d.value == 0 {
			*d.value = d.def
		}
	}
	if o.Hold == 0 {
		o.Hold = wsDefaultHold
	}
	b := &wsBench{o: o, report: bench.NewReport("ws")}
	if b.clients, err = clients.Start(ctx, o.Exe, "bench", "clients"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.clients.Close()) }()
	return b.report, b.run(ctx)
}

// run runs the selected parts.
func (b *wsBench) run(ctx context.Context) error {
	return bench.RunParts(ctx, b.o.Parts, []bench.Part{
		{Name: "encode", Run: b.encode},
		{Name: "fanout", Run: b.fanout},
		{Name: "idle", Run: b.idle},
		{Name: "stalled", Run: b.stalled},
		{Name: "order", Run: func(ctx context.Context) error { return measureOrder(ctx, b) }},
	})
}
