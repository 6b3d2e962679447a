package httpgw

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"blockdesk/catalog"
	"blockdesk/desk"
	"blockdesk/httpgw/gatewaytest"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/market"
)

var groupSecret = bytes.Repeat([]byte{7}, minShardSecret)

// shardRig is one of several shards, each a gateway with its own sockets.
type shardRig struct {
	name   string
	number market.ShardID
	books  *gatewaytest.Books
	desk   *gatewaytest.ScriptedDesk
	deps   Dependencies
	listen map[string]net.Listener // by address
	o      Options
	g      *Gateway
	stop   func()
}

// newShardRig binds the addresses of a shard whose symbols begin with prefix.
func newShardRig(t testing.TB, name string, number market.ShardID, prefix string) *shardRig {
	t.Helper()
	r := &shardRig{name: name, number: number, books: gatewaytest.NewBooks(t), listen: map[string]net.Listener{}}
	var list []market.Instrument
	for i := range r.books.Set.Len() {
		in := *r.books.Set.Get(market.InstrumentID(i))
		in.Base = prefix + in.Base
		in.Symbol = in.Base + "/" + in.Quote
		list = append(list, in)
	}
	var err error
	if r.books.Set, err = market.NewInstruments(list); err != nil {
		t.Fatal(err)
	}
	view := gatewaytest.FixedView()
	for _, ticket := range view.Tickets {
		ticket.ID += market.FirstTicket(number) - 1
	}
	r.desk = &gatewaytest.ScriptedDesk{Current: view, History: map[market.ClaimID]*desk.History{}}
	deps, _ := dvpDependencies()
	deps.Desk = r.desk
	facts := gatewaytest.Facts()
	for i := range facts.Pairs {
		facts.Pairs[i].Symbol = prefix + facts.Pairs[i].Symbol
	}
	deps.Facts = func() *catalog.Facts { return facts }
	r.deps, r.o = deps, testOptions(r.books)
	for _, address := range []*string{&r.o.Base, &r.o.API, &r.o.WS} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		*address = l.Addr().String()
		r.listen[*address] = l
	}
	r.o.Listen = func(_, address string) (net.Listener, error) { return r.listen[address], nil }
	return r
}

// group is how the others know it.
func (r *shardRig) group() Shard {
	g := Shard{Name: r.name, Number: r.number, Nodes: []ShardNode{{Base: "http://" + r.o.Base, API: "http://" + r.o.API}}}
	for i := range r.books.Set.Len() {
		g.Instruments = append(g.Instruments, *r.books.Set.Get(market.InstrumentID(i)))
	}
	return g
}

// shardConfig returns the configuration of all shards.
func shardConfig(own market.ShardID, all ...Shard) *Shards {
	return &Shards{Own: own, All: all, Secret: groupSecret, Timeout: runtest.HangTimeout, MaxOpen: 8}
}

// startShards runs two shards: eu with the symbols of NewBooks, us with others.
func startShards(t testing.TB, change func(eu, us *shardRig)) (eu, us *shardRig) {
	t.Helper()
	eu, us = newShardRig(t, "eu", 1, ""), newShardRig(t, "us", 2, "X")
	eu.o.Shards, us.o.Shards = shardConfig(1, eu.group(), us.group()), shardConfig(2, eu.group(), us.group())
	if change != nil {
		change(eu, us)
	}
	eu.run(t)
	us.run(t)
	return eu, us
}

// run runs the shard's gateway until stop is called or the test ends.
func (r *shardRig) run(t testing.TB) {
	t.Helper()
	var err error
	if r.g, err = New(r.o, r.books, r.deps); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.g.Run(ctx) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("group %s: %v", r.name, err)
		}
	})
	t.Cleanup(r.stop)
}

// send sends a request to a shard's base address.
func (r *shardRig) send(t testing.TB, raw string) (*http.Response, []byte) {
	t.Helper()
	return gatewaytest.Exchange(t, r.g.BaseAddr(), raw)
}

func (r *shardRig) get(t testing.TB, target string, headers ...string) (*http.Response, []byte) {
	t.Helper()
	lines := ""
	for _, h := range headers {
		lines += h + "\r\n"
	}
	return gatewaytest.Do(t, r.g.BaseAddr(), "GET", target, lines)
}

// beside runs eu with a shard us whose nodes are scripted.
func beside(t testing.TB, change func(*shardRig), nodes ...http.HandlerFunc) *shardRig {
	t.Helper()
	eu, us := newShardRig(t, "eu", 1, ""), newShardRig(t, "us", 2, "X")
	other := us.group()
	for _, l := range us.listen {
		_ = l.Close()
	}
	other.Nodes = nil
	for _, node := range nodes {
		server := httptest.NewServer(node)
		t.Cleanup(server.Close)
		other.Nodes = append(other.Nodes, ShardNode{Base: server.URL, API: server.URL})
	}
	if len(nodes) == 0 { // nothing listens there any more
		other.Nodes = us.group().Nodes
	}
	eu.o.Shards = shardConfig(1, eu.group(), other)
	if change != nil {
		change(eu)
	}
	eu.run(t)
	return eu
}

// isPartialRequest reports whether a request comes from the gateway itself.
func isPartialRequest(r *http.Request) bool {
	return len(r.URL.Path) > len(pathPartials) && r.URL.Path[:len(pathPartials)] == pathPartials
}

// awaitMerged waits until a shard's desk and facts are, or are not, in the merged
// lists.
func (r *shardRig) awaitMerged(t testing.TB, seen bool) {
	t.Helper()
	to := r.g.shards.all[0]
	await.True(t, fmt.Sprintf("the other group to be seen: %v", seen), func() bool {
		return (r.g.merged.freshDesk(to) != nil) == seen && (!seen || to.last.facts.Load() != nil)
	})
}

// quoteOf returns a valid body for a ticket.
func quoteOf(id market.TicketID) string {
	text := string(market.AppendTicketID(nil, id))
	return fmt.Sprintf(`{"order_id":%q,"tranche_id":"%s-2","fill_usd":"250","rail":"USDC"}`, text, text)
}
