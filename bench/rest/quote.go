package rest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"blockdesk/bench"
	"blockdesk/bench/server"
)

// Round trips of each kind, and how many of one kind follow each other.
const (
	quoteTrips = 10_000
	quoteBurst = 200
)

// quotes compares the time of a quote with that of a depth read: one connection,
// one request in flight, in bursts of one kind and of the other. The client has
// a core of its own: on the server's, the kernel would hand it each answer as a
// coroutine's, which no real client gets.
func (b *restBench) quotes(ctx context.Context, depth string) error {
	return bench.OnCore(b.loadCore, func() error { return b.quotesHere(ctx, depth) })
}

func (b *restBench) quotesHere(ctx context.Context, depth string) error {
	base := b.ours.Addresses.Base
	order, tranche, err := server.FirstOffer(base)
	if err != nil {
		return err
	}
	host := strings.TrimPrefix(base, "http://")
	body := fmt.Sprintf(`{"order_id":%q,"tranche_id":%q,"fill_usd":"1000","rail":"USDC"}`, order, tranche)
	line, err := server.DialLine(host)
	if err != nil {
		return err
	}
	defer line.Socket.Close()
	kinds := []struct {
		request []byte
		series  *bench.Series
	}{
		{server.GetText(depth), &bench.Series{Name: "depth read, one in flight", Hist: bench.NewHistogram()}},
		{server.PostText(server.QuoteTarget, body), &bench.Series{Name: "quote, one in flight, interval", Hist: bench.NewHistogram()}},
	}
	uncounted := bench.NewHistogram()
	for done := -quoteBurst; done < quoteTrips; done += quoteBurst {
		for _, kind := range kinds {
			hist := kind.series.Hist
			if done < 0 {
				hist = uncounted
			}
			before, err := bench.CPUOf(b.ours.PID())
			if err != nil {
				return err
			}
			start := time.Now()
			if err := line.Trips(ctx, kind.request, quoteBurst, hist); err != nil {
				return fmt.Errorf("%s: %w", kind.series.Name, err)
			}
			elapsed := time.Since(start)
			after, err := bench.CPUOf(b.ours.PID())
			if err != nil {
				return err
			}
			if done >= 0 {
				kind.series.Ops += quoteBurst
				kind.series.Elapsed += elapsed
				kind.series.CPU += after - before
			}
		}
	}
	for _, kind := range kinds {
		kind.series.Summary = bench.Summarize(kind.series.Hist)
		b.r.Series = append(b.r.Series, kind.series)
	}
	b.r.Ratios = append(b.r.Ratios, bench.Ratio{
		Name:  "quote p50 / depth read p50, interval",
		Value: float64(kinds[1].series.Summary.P50) / float64(kinds[0].series.Summary.P50), Goal: 2, AtMost: true,
	})
	return nil
}
