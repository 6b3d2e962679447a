package httpgw

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"blockdesk/catalog"
	"blockdesk/httpgw/site"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// Instruments may be split over groups of processes, each with an engine of its
// own. A client may ask any group about any instrument: what is another's, its
// gateway forwards, and gives back the answer. A request is forwarded once at
// most, and admitted once, where it comes in: see hop.

const (
	// maxShardAnswer bounds an answer of another group, in bytes.
	maxShardAnswer = 8 << 20
	// maxForwards bounds the nodes that one request is offered to.
	maxForwards = 4
	// shardIdle is how long a connection to another group is kept unused. It is
	// shorter than IdleTimeout, so that it is not the other end that closes it.
	shardIdle = 5 * time.Second
	// retryShardS is the Retry-After where another group does not answer, in
	// seconds: what a failover takes.
	retryShardS = 1

	minShardSecret = 32 // bytes
)

// Groups are all groups of processes, alike in each of them.
type Shards struct {
	Own    market.ShardID // ours
	All    []Shard        // 2..market.MaxShards, ours too
	Secret []byte         // what gateways sign with: 32 bytes or more, alike everywhere
	// Timeout is how long a request to another group may take, all tries included.
	Timeout time.Duration
	MaxOpen int // requests under way to one group; one more is answered OVERLOADED
}

// Group is one of them.
type Shard struct {
	Name   string // lower case letters, digits and dashes
	Number market.ShardID
	// Instruments are all that it has, in its order. Their IDs are not read.
	Instruments []market.Instrument
	Nodes       []ShardNode
}

// ShardNode is one process of a group: URLs without a slash at the end. WS, which
// only pages for people get, may be empty.
type ShardNode struct{ Base, API, WS string }

// Validate reports the first thing that is not as Groups says.
func (o *Shards) Validate() error {
	switch {
	case len(o.All) < 2 || len(o.All) > market.MaxShards:
		return fmt.Errorf("httpgw: %d groups: 2 to %d", len(o.All), market.MaxShards)
	case len(o.Secret) < minShardSecret:
		return fmt.Errorf("httpgw: the groups' secret has %d bytes: %d or more", len(o.Secret), minShardSecret)
	case o.Timeout <= 0 || o.MaxOpen < 1:
		return errors.New("httpgw: groups: a limit is not positive")
	}
	numbers := map[market.ShardID]bool{}
	for i := range o.All {
		g := &o.All[i]
		if g.Name == "" || g.Number < 1 || g.Number > market.MaxShards || numbers[g.Number] || len(g.Nodes) == 0 {
			return fmt.Errorf("httpgw: group %d (%s) has no name, no nodes, or no number of its own", g.Number, g.Name)
		}
		numbers[g.Number] = true
	}
	if !numbers[o.Own] {
		return fmt.Errorf("httpgw: group %d is not among the groups", o.Own)
	}
	return nil
}

// shardRouter finds the group that a request is for, and asks it.
type shardRouter struct {
	own     market.ShardID
	name    string     // ours
	macs    *sync.Pool // see newMACs
	timeout time.Duration
	now     func() int64 // Unix nanoseconds
	// By what a client may name: numbers in ids, symbols and tickers. Ours are in
	// neither.
	byNumber map[market.ShardID]*remoteShard
	byName   map[string]*remoteShard
	all      []*remoteShard // in the order of the configuration

	forwarded *prometheus.CounterVec // by group and outcome
}

func newShardRouter(o *Shards, now func() int64) (*shardRouter, error) {
	r := &shardRouter{
		own: o.Own, macs: newMACs(o.Secret), timeout: o.Timeout, now: now,
		byNumber: map[market.ShardID]*remoteShard{}, byName: map[string]*remoteShard{},
		forwarded: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "blockdesk_http_forwarded_requests_total",
			Help: "Requests that were for another group, by that group and what became of them: answered, unreachable, overloaded.",
		}, []string{"group", "outcome"}),
	}
	for i := range o.All {
		g := &o.All[i]
		if g.Number == o.Own {
			r.name = g.Name
			continue
		}
		remote, err := newRemoteShard(g, o)
		if err != nil {
			return nil, err
		}
		remote.answered = r.forwarded.WithLabelValues(g.Name, "answered")
		r.all = append(r.all, remote)
		r.byNumber[g.Number] = remote
		for j := range g.Instruments {
			symbol := g.Instruments[j].Symbol
			r.byName[symbol], r.byName[catalog.Ticker(symbol)] = remote, remote
		}
	}
	return r, nil
}

// routed admits a request, or knows that another gateway has, and forwards what is
// for another group. It reports whether the request has its answer. It is called
// only where there are groups.
func (d *handler) routed(ctx *fasthttp.RequestCtx, id *wire.RequestID, r *wire.Route, query, segment []byte) bool {
	g := d.g
	from, bad := g.shards.internalRequestIn(ctx)
	if bad == nil && from == nil {
		bad = g.limits[r.Limit].Admit(ctx, g.proxies)
	}
	if bad != nil {
		g.fail(ctx, id, bad)
		return true
	}
	to := g.shardOf(ctx, r, query, segment)
	switch {
	case to == nil:
		if from != nil {
			ctx.SetUserValue(internalRequestKey{}, from)
		}
		if r.Merged != 0 {
			var buf [256]byte // of a few groups
			ctx.Response.Header.SetCanonical(shardsHeader, g.merged.appendShardAges(buf[:0], r.Merged))
		} else {
			ctx.Response.Header.SetCanonical(shardHeader, []byte(g.shards.name))
		}
		return false
	case from != nil: // the two of us have not the same list of groups
		g.fail(ctx, id, misrouted())
	case r.Stream != nil:
		g.fail(ctx, id, to.redirect(ctx))
	default:
		g.forward(ctx, id, r, to)
	}
	return true
}

// shardOf returns the group that a request is for, nil where that is ours, or
// where it is no group's: what is wrong with the request is then for the route to
// say.
func (g *Gateway) shardOf(ctx *fasthttp.RequestCtx, r *wire.Route, query, segment []byte) *remoteShard {
	switch {
	case r.Post != nil:
		return g.shardOfBody(ctx.Request.Body())
	case r.ReadOne != nil:
		return g.shardOfSegment(segment)
	case r.Stream != nil:
		return g.shards.bySymbols(query)
	case r.Read != nil:
		return g.shards.byQuery(query)
	default:
		return nil
	}
}

// queryNames are the parameters that name an instrument.
var queryNames = [...]string{"symbol", "ticker_id", "id"}

func (r *shardRouter) byQuery(query []byte) *remoteShard {
	for _, name := range queryNames {
		if raw, count := wire.Param(query, name); count == 1 {
			if to := r.byValue(raw); to != nil {
				return to
			}
		}
	}
	return nil
}

// named returns the group that has what a raw value of a query names.
func (r *shardRouter) byValue(raw []byte) *remoteShard {
	var buf [wire.MaxQueryValue]byte
	text, ok := wire.AppendUnescaped(buf[:0], raw)
	if !ok {
		return nil
	}
	return r.byName[string(text)]
}

// bySymbols returns the group that all symbols of a stream are of.
func (r *shardRouter) bySymbols(query []byte) (to *remoteShard) {
	args := fasthttp.AcquireArgs()
	defer fasthttp.ReleaseArgs(args)
	args.ParseBytes(query)
	list := args.Peek("symbols")
	if list == nil {
		list = args.Peek("symbol")
	}
	for len(list) > 0 {
		symbol, rest, _ := cutComma(list)
		of := r.byName[string(symbol)]
		if of == nil || to != nil && to != of {
			return nil
		}
		to, list = of, rest
	}
	return to
}

// shardOfSegment is for paths that end in the id of a claim or a build, or in a
// ticker.
func (g *Gateway) shardOfSegment(segment []byte) *remoteShard {
	if to := g.shards.byName[string(segment)]; to != nil {
		return to
	}
	if id, ok := market.ParseClaimID(segment); ok {
		return g.shardOfClaim(id)
	}
	if id, ok := market.ParseBuildID(segment); ok {
		return g.shardOfClaim(id)
	}
	return nil
}

// shardOfClaim is for the claim in its number. One that was made before the
// instruments were split may have any number, and is ours if we know it.
func (g *Gateway) shardOfClaim(id market.ClaimID) *remoteShard {
	to := g.shards.byNumber[id.Shard()]
	if to == nil || g.desk == nil {
		return to
	}
	if _, ours, err := g.desk.Claim(id); ours && err == nil {
		return nil
	}
	return to
}

// routedMembers are what a body says of the group that it is for.
var routedMembers = []wire.Member{
	{Name: "order_id", Kind: wire.TextMember, MaxLen: wire.MaxSegment, Optional: true},
	{Name: "build_id", Kind: wire.TextMember, MaxLen: wire.MaxSegment, Optional: true},
}

// shardOfBody reads of a body only what it is about. Everything else that may be
// wrong with it is for the route to say, here or there.
func (g *Gateway) shardOfBody(body []byte) *remoteShard {
	var m wire.Members
	if bad := wire.DecodeObject(body, routedMembers, &m); bad != nil && bad.Code == wire.CodeInvalidJSON {
		return nil
	}
	if ticket, ok := market.ParseTicketID(m.Get(0)); ok {
		return g.shards.byNumber[ticket.Shard()]
	}
	if build, ok := market.ParseBuildID(m.Get(1)); ok {
		return g.shardOfClaim(build)
	}
	return nil
}

// redirect sends a stream to the group that has all its symbols: it may last for
// days, and costs its own connection in any case.
func (to *remoteShard) redirect(ctx *fasthttp.RequestCtx) *wire.Problem {
	raw := wire.RawTarget(ctx)
	if !wire.IsSafeTarget(raw) {
		return wire.UnknownRoute(nil)
	}
	return &wire.Problem{
		Status: fasthttp.StatusTemporaryRedirect, Code: wire.CodeOtherGroup, Reason: "other_group", Location: to.nodes[0].base + string(raw),
		Text: "Another group serves these symbols. Its stream is where Location says.",
	}
}

func shardUnreachable(reason, text string) *wire.Problem {
	return &wire.Problem{Status: fasthttp.StatusServiceUnavailable, Code: wire.CodeGroupUnreachable, Reason: reason, RetryS: retryShardS, Text: text}
}

// misrouted is the answer to another gateway that has sent us what is not ours.
func misrouted() *wire.Problem {
	return &wire.Problem{
		Status: fasthttp.StatusMisdirectedRequest, Code: wire.CodeOtherGroup, Reason: "misrouted",
		Text: "This group does not serve what was forwarded to it: the groups are not configured alike.",
	}
}

// clientOf returns whom a request's limits count for: the other gateway's word,
// where one has admitted it.
func (g *Gateway) clientOf(ctx *fasthttp.RequestCtx) netip.Addr {
	if g.shards != nil {
		if h, ok := ctx.UserValue(internalRequestKey{}).(*internalRequest); ok {
			return h.client
		}
	}
	return g.proxies.Client(ctx)
}

// takerOf returns the key whose token a request carries, or had where it came in.
func (g *Gateway) takerOf(ctx *fasthttp.RequestCtx) (market.Address, *wire.Problem) {
	if g.shards != nil {
		if h, ok := ctx.UserValue(internalRequestKey{}).(*internalRequest); ok && h.taker != (market.Address{}) {
			return h.taker, nil
		}
	}
	return g.dvp.Taker(&ctx.Request.Header)
}

// hostOf splits a URL that has nothing behind its host.
func hostOf(text string) (host string, secure bool, err error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", false, fmt.Errorf("httpgw: %q is no address of a group", text)
	}
	host, secure = u.Host, u.Scheme == "https"
	if u.Port() == "" {
		host = fasthttp.AddMissingPort(host, secure)
	}
	return host, secure, nil
}

// boardShards returns the other groups at the first node of each, where clients are
// sent.
func boardShards(o *Shards) []site.BoardShard {
	if o == nil {
		return nil
	}
	var others []site.BoardShard
	for i := range o.All {
		g := &o.All[i]
		if g.Number == o.Own {
			continue
		}
		one := site.BoardShard{Name: g.Name, Base: g.Nodes[0].Base, WS: g.Nodes[0].WS}
		for j := range g.Instruments {
			one.Symbols = append(one.Symbols, g.Instruments[j].Symbol)
		}
		others = append(others, one)
	}
	return others
}
