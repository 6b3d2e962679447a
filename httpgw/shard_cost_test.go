package httpgw

import (
	"bufio"
	"math"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"blockdesk/httpgw/gatewaytest"
	rfqapi "blockdesk/httpgw/rfq"
	"blockdesk/httpgw/shardwire"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// shardCosts has requests to one shard, and how many allocations more they may cost
// with another shard configured.
var shardCosts = map[string]struct {
	text string
	more float64
}{
	"read":    {getText("/api/v1/market/depth?symbol=SLUSD/USDC&limit=50"), 0},
	"tickets": {getText(rfqapi.PathTickets), 0}, // of all groups
	"symbols": {getText("/api/v1/market/symbols"), 0},
	// Its body is read first, for the shard that owns it, and has members that say
	// nothing of that.
	"write": {postText(rfqapi.PathRFQ+"quote", quoteOf(7)), 1},
}

func getText(target string) string { return "GET " + target + " HTTP/1.1\r\nHost: test\r\n\r\n" }

// shardHandlers returns the base handler of a gateway without shards, and of one with
// another shard whose state it has. Neither runs, so that nothing disturbs the
// measurement.
func shardHandlers(tb testing.TB) (without, beside *handler) {
	tb.Helper()
	of := func(r *shardRig) *handler {
		r.o.NoLimits, r.o.Market, r.o.RFQWrite = false, wire.Rate{PerMinute: 60_000_000, Burst: 1_000_000}, wire.Rate{PerMinute: 60_000_000, Burst: 1_000_000}
		r.o.Now = func() int64 { return gatewaytest.ViewTime }
		var err error
		if r.g, err = New(r.o, r.books, r.deps); err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { _ = r.g.Close() })
		return &handler{g: r.g, on: wire.OnBase, router: newRouter(r.g.routes(r.deps), wire.OnBase, newMetrics())}
	}
	eu, us := newShardRig(tb, "eu", 1, ""), newShardRig(tb, "us", 2, "X")
	without = of(newShardRig(tb, "alone", 1, ""))
	eu.o.Shards, us.o.Shards = shardConfig(1, eu.group(), us.group()), shardConfig(2, eu.group(), us.group())
	beside = of(eu)
	of(us)
	to := eu.g.shards.all[0]
	seen, err := decodePartialDesk(shardwire.AppendDesk(nil, us.g.ownDesk()), eu.g.merged.first[to], market.InstrumentID(us.books.Set.Len()))
	if err != nil {
		tb.Fatal(err)
	}
	seen.at = eu.g.opts.Clock() + int64(time.Hour) // for as long as this takes
	to.last.desk.Store(seen)
	return without, beside
}

// parsed returns a request as a server parses it.
func parsed(tb testing.TB, text string) *fasthttp.RequestCtx {
	tb.Helper()
	ctx := gatewaytest.RequestFrom("192.0.2.1")
	if err := ctx.Request.Read(bufio.NewReader(strings.NewReader(text))); err != nil {
		tb.Fatal(err)
	}
	return ctx
}

// serveWithoutShards is serve for a valid request, without any code for shards.
func (d *handler) serveWithoutShards(ctx *fasthttp.RequestCtx) {
	id := d.g.ids.Next()
	stats := d.router.unknown
	defer func() { stats.observe(ctx.Response.StatusCode(), time.Since(ctx.Time())) }()
	defer d.g.recoverPanic(ctx, &id)
	m, bad := d.match(ctx)
	stats = m.stats
	if bad == nil {
		bad = d.g.limits[m.endpoint.Limit].Admit(ctx, d.g.proxies)
	}
	if bad != nil {
		d.g.fail(ctx, &id, bad)
		return
	}
	d.answer(ctx, &id, &m)
}

// A gateway without shards pays nothing for them. With shards, a read of a cached
// document, of this shard or merged, allocates nothing more. The smallest of several
// counts is used, because background work of earlier tests is counted too.
func TestShardsCostNoAllocation(t *testing.T) {
	without, beside := shardHandlers(t)
	allocs := func(serve func(*fasthttp.RequestCtx), text string) float64 {
		ctx := parsed(t, text)
		least := math.Inf(1)
		for range 10 {
			least = min(least, testing.AllocsPerRun(20, func() {
				ctx.Response.Reset()
				serve(ctx)
			}))
		}
		if ctx.Response.StatusCode() != 200 {
			t.Fatalf("%.40s: %d %s", text, ctx.Response.StatusCode(), ctx.Response.Body())
		}
		return least
	}
	for name, c := range shardCosts {
		bare, none, some := allocs(without.serveWithoutShards, c.text), allocs(without.serve, c.text), allocs(beside.serve, c.text)
		if none != bare || some > bare+c.more {
			t.Errorf("%s: %.0f allocations without groups and %.0f beside one, want %.0f and at most %.0f more", name, none, some, bare, c.more)
		}
	}
}

// BenchmarkGroups measures the time inside the handler.
func BenchmarkGroups(b *testing.B) {
	without, beside := shardHandlers(b)
	for name, c := range shardCosts {
		for _, way := range []struct {
			name  string
			serve func(*fasthttp.RequestCtx)
		}{{"bare", without.serveWithoutShards}, {"without", without.serve}, {"beside", beside.serve}} {
			b.Run(name+"/"+way.name, func(b *testing.B) {
				ctx := parsed(b, c.text)
				b.ReportAllocs()
				for b.Loop() {
					ctx.Response.Reset()
					way.serve(ctx)
				}
			})
		}
	}
}

// BenchmarkForwarded is a read that the other shard answers: two gateways and a socket
// between them.
func BenchmarkForwarded(b *testing.B) {
	eu, _ := startShards(b, nil)
	c := wire.NewClientConn(&endlessConn{
		b: b, peer: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)},
		request: getText("/api/v1/market/depth?symbol=XSLUSD/USDC&limit=50"),
	}, time.Second)
	b.ReportAllocs()
	if err := eu.g.servers[0].http.ServeConn(c); err != nil {
		b.Fatal(err)
	}
}
