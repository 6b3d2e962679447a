package ws

import (
	"context"
	"io"
	"math"
	"testing"
	"time"

	"blockdesk/bench"
	"blockdesk/bench/clients"
	"blockdesk/internal/runtest"
)

// Every part that needs no program of its own measures something, with clients
// in this process: the wire between them is the same.
func TestWSMeasures(t *testing.T) {
	orders, in := io.Pipe()
	out, answers := io.Pipe()
	ended := make(chan error, 1)
	ctx, cancel := context.WithTimeout(context.Background(), runtest.HangTimeout)
	defer cancel()
	go func() { ended <- clients.Serve(ctx, orders, answers) }()
	b := &wsBench{
		o: Benchmark{
			Clients: 20, Many: 40, Rounds: 1, Hold: 400 * time.Millisecond,
			Parts: []string{"encode", "fanout", "idle", "stalled"},
		},
		report:  bench.NewReport("ws"),
		clients: clients.Over(in, out, func() error { return <-ended }),
	}
	if err := b.run(ctx); err != nil {
		t.Fatal(err)
	}
	if err := b.clients.Close(); err != nil {
		t.Fatal(err)
	}
	for _, s := range b.report.Series {
		if s.Ops == 0 || s.Elapsed == 0 {
			t.Errorf("%s: %d operations in %v", s.Name, s.Ops, s.Elapsed)
		}
	}
	goals := 0
	for _, q := range b.report.Ratios {
		if q.Goal != 0 {
			goals++
		}
		// A difference to a base line may be negative by the noise of a busy machine.
		if math.IsNaN(q.Value) || math.IsInf(q.Value, 0) {
			t.Errorf("%s: %v", q.Name, q.Value)
		}
	}
	if goals < 10 {
		t.Errorf("%d goals are judged", goals)
	}
}
